"""The report's view of a run, from its archive alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from eureka_agent.analysis import standing
from eureka_agent.archive.run_folder import Run
from eureka_agent.feedback_records import Given
from eureka_agent.journal.state import RunState
from eureka_agent.ranking import ranked
from eureka_agent.records import Attempt, FinalTraining, Message, Outcome, Stage
from eureka_agent.report.ledger import NOTHING_ASKED, Ledger, LedgerLine
from eureka_agent.report.metric import same_words
from eureka_agent.report.run_report import BASELINES, ByModel, ByStrength, RunCost, RunReport
from eureka_agent.search.budget import time_limit
from eureka_agent.search.scoring import score_table
from eureka_agent.settings import UNMEASURED, SearchSettings, judge_of
from eureka_agent.wording import plural


def best_attempt(run: Run, attempts: Sequence[Attempt] | None = None) -> Attempt | None:
    """The first of the finalists (`score_table`), else the best of the search; where strengths
    rank, the strongest, with its strength. `attempts` are all of the run, with theirs."""
    feedback = run.archive.facts.feedback
    if standing.what_ranks(feedback) == "fitness":
        for score in score_table(run.archive.trainings()):
            if score.name not in BASELINES and score.mean is not None:
                return run.archive.attempt(score.name)
    if attempts is None:
        attempts = standing.with_strengths(run.archive.attempts(), feedback)
    trained = ranked(attempts)
    return in_full(run, trained[0]) if trained else None


def in_full(run: Run, attempt: Attempt) -> Attempt | None:
    """An attempt in full, with the strength that it has in a list."""
    found = run.archive.attempt(attempt.id)
    return None if found is None else found.model_copy(update={"strength": attempt.strength})


def attempt_of(run: Run, name: str) -> Attempt | None:
    """An attempt in full, with its strength where strengths rank; None for an unknown name."""
    known = run.archive.attempts_in_brief()
    searched = [each for each in known if each.is_ranked]
    attempts = (*standing.with_strengths(searched, run.archive.facts.feedback), *known)
    return next((in_full(run, each) for each in attempts if each.id == name), None)


def run_report(run: Run) -> RunReport:
    """All data of a run's report."""
    known = run.archive.state.by_id.values()
    in_order = sorted(known, key=lambda each: (each.iteration, each.sample, each.revision))
    return _report(run, in_order, run.archive.account())


def run_overview(run: Run, *, costs: bool = True) -> RunReport:
    """The same for a list or the terminal: attempts in brief. `costs`: with the requests."""
    messages = run.archive.account() if costs else ()
    return _report(run, run.archive.attempts_in_brief(), messages)


def _report(run: Run, known: Sequence[Attempt], messages: Sequence[Message]) -> RunReport:
    state = run.archive.facts
    trainings, ledger = state.trainings(), Ledger(tuple(messages))
    searched = [each for each in known if each.is_ranked]
    attempts = standing.with_strengths(searched, state.feedback)
    best = best_attempt(run, attempts)
    designer = state.designer or ", ".join(run.settings.model)
    words_agree = same_words(run.sentence, run.description.sentence)
    not_understood: tuple[str, ...] = ()
    # imported on use, since they read the offline designer's vocabulary
    if not words_agree:
        from eureka_agent.search.sentence import agrees

        words_agree = agrees(run.sentence, run.description)
    if designer == "offline":
        from eureka_agent.designer.offline import wishes

        not_understood = wishes.not_understood(run.description, run.sentence)
    return RunReport(
        run_name=run.name,
        folder=run.folder,
        description=run.description,
        sentence=run.sentence,
        sentence_agrees=words_agree,
        not_understood=not_understood,
        settings=run.settings,
        status=run.status,
        started=state.created,
        seconds=run.seconds,
        designer=designer,
        wall=state.wall or run.settings.sandbox,
        devices=state.devices,
        attempts=attempts,
        randomised=tuple(each for each in known if not each.is_ranked),
        scores=score_table(trainings),
        final_trainings=trainings,
        best=best,
        by_strength=_by_strength(attempts, state.feedback, best),
        by_model=_by_model(run, attempts, state.feedback),
        cost=run_cost(known, trainings, ledger.total),
        ledger=ledger,
        versions=state.began.versions,
        git_commit=state.began.git_commit,
        command=state.began.command,
        message=state.message,
        budget=budget_texts(run),
        card=state.began.card,
        chosen=state.finalists,
        no_finals=state.no_finals,
        remarks=remarks(run),
        written_fitness=run.written_fitness if run.settings.fitness not in UNMEASURED else None,
        fitness_origin=run.fitness_origin,
    )


def _by_strength(
    attempts: Sequence[Attempt], feedback: Sequence[Given], best: Attempt | None
) -> ByStrength | None:
    """The best attempt's place by strength, where strengths rank the attempts."""
    if best is None or best.strength is None:
        return None
    by = best.strength.by
    chance = standing.preferences_of(attempts, feedback, by).chance_best[best.id]
    answers = len(
        standing.comparisons_of_model(feedback) if by == "model" else standing.choices_of(feedback)
    )
    return ByStrength(by, answers, best.strength.mean, best.strength.deviation, chance)


def _by_model(run: Run, attempts: Sequence[Attempt], feedback: Sequence[Given]) -> ByModel | None:
    comparisons = len(standing.comparisons_of_model(feedback))
    if not comparisons:
        return None
    agreement, sub_goals = standing.agreement(attempts, feedback), standing.sub_goals_of(feedback)
    return ByModel(judge_of(run.settings), comparisons, agreement, sub_goals or ())


def remarks(run: Run) -> tuple[str, ...]:
    """Remarks on a run: changed settings, missing generations."""
    state = run.archive.facts
    changes = [f"when it was resumed, {change.text}" for _, change in state.changes]
    trained = state.began.card_text if state.began.card is None else ""
    return (*changes, *filter(None, (trained, state.ended_early)), *_pruned(state))


def _pruned(state: RunState) -> list[str]:
    """A remark for each day on which attempts were pruned."""
    days = Counter(time[:10] for time in state.pruned.values())
    text = "policies, episodes and pictures of {} were pruned on {}"
    return [text.format(plural(many, "attempt"), day) for day, many in sorted(days.items())]


def budget_texts(run: Run) -> tuple[str, ...]:
    """The plan of the run's budget, and how it ended the search; empty without a budget."""
    state, limit = run.archive.facts, time_limit(run.settings)
    texts = [state.began.budget]
    reached, spent = state.deadline_reached, state.budget_spent
    # only under the present limits, which may have been changed on resume
    if reached is not None and limit is not None and reached.limit == limit.text:
        texts.append(reached.text)
    if spent is not None and _own(spent.limits) == model_limits(run.settings):
        texts.append(spent.text)
    return tuple(filter(None, texts))


def _own(limits: Mapping[str, str]) -> dict[str, str]:
    """The run's limits among those behind a refusal."""
    return {name: limits[name] for name in limits if name in SearchSettings.model_fields}


def model_limits(settings: SearchSettings) -> dict[str, str]:
    """The limits on models in the archive's form, to detect changes."""
    limits = ((name, getattr(settings, name)) for name in ("max_cost", "max_tokens", "max_time"))
    return {name: str(value) for name, value in limits if value is not None}


def run_cost(
    attempts: Sequence[Attempt],
    trainings: Sequence[FinalTraining],
    asked: LedgerLine = NOTHING_ASKED.total,
) -> RunCost:
    """The run's trainings, env steps, tokens and money; None where a request's price is unknown."""
    outcomes: dict[bool, list[Outcome | None]] = {True: [], False: []}
    for attempt in attempts:
        if attempt.stage in (Stage.TRAINED, Stage.FAILED):
            outcomes[attempt.is_ranked].append(attempt.outcome)
        outcomes[attempt.is_ranked] += [repeat.outcome for repeat in attempt.repeats]
    paid = [training for training in trainings if not training.cached]
    made = [*outcomes[True], *outcomes[False], *(training.outcome for training in paid)]
    return RunCost(
        search_trainings=len(outcomes[True]),
        final_trainings=sum(training.name not in BASELINES for training in paid),
        baseline_trainings=sum(training.name in BASELINES for training in paid),
        randomised_trainings=len(outcomes[False]),
        final_restarts=sum(training.retries for training in paid),
        env_steps=sum(outcome.env_steps for outcome in made if outcome is not None),
        requests=asked.requests,
        prompt_tokens=asked.prompt_tokens,
        completion_tokens=asked.completion_tokens,
        uncounted=asked.uncounted,
        money=asked.money,
    )
