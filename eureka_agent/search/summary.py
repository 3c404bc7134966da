"""A run as its report shows it, read from its archive alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from eureka_agent.archive.run_folder import Run
from eureka_agent.ranking import ranked
from eureka_agent.records import Attempt, FinalTraining, Message, Stage
from eureka_agent.report.ledger import ledger
from eureka_agent.report.run_report import BASELINES, RunCost, RunReport
from eureka_agent.search.scoring import score_table
from eureka_agent.search.sentence import agrees
from eureka_agent.search.time_limit import time_limit
from eureka_agent.settings import SearchSettings

DEVICES_FACT = "devices"
"""Where the archive keeps what the trainings ran on, `"cpu"` or `"cuda:0 and cuda:1"`: one entry
for each time that it changed."""
BUDGET_FACT = "budget"
"""Where the archive keeps what a budget came to: `text`, and `seconds_before` the first
generation."""
STOPPED_FACT = "stopped_by_budget"
"""Where it keeps after how many `iterations` a budget ended the search, of which `budget` that was
decided, and a `text`."""
GATE_FACT = "gate_loosened"
"""Where it keeps from which `iteration` and `sample` on the trajectory gate's findings are
warnings, and a `text`."""
ENDED_EARLY_FACT = "ended_early"
"""Where it keeps why the search ended before its last generation, in words; empty where it did
not."""
CHANGES_FACT = "settings_changes"
"""Where it keeps which settings changed when the run was resumed: `time`, `name`, and the values
`before` and `now`."""
NOT_AWAITED_FACT = "baselines_not_awaited"
"""Where it keeps the limit in wall time that was reached before the baselines were there: from then
on nothing is decided by them."""
SPENT_FACT = "budget_for_models_spent"
"""Where it keeps that a request to a model was turned down, under which `limits`, and a `text`."""


def best_attempt(run: Run) -> Attempt | None:
    """The finalist with the highest mean over the final seeds; the best of the search where there
    was no final."""
    for score in score_table(run.archive.trainings()):
        if score.name not in BASELINES and score.mean is not None:
            return run.archive.attempt(score.name)
    trained = ranked(run.archive.attempts())
    return trained[0] if trained else None


def run_report(run: Run) -> RunReport:
    """Everything that a report of this run is made from."""
    attempts, trainings, messages = (
        run.archive.attempts(),
        run.archive.trainings(),
        run.archive.account(),
    )
    return RunReport(
        run_name=run.name,
        folder=run.folder,
        description=run.description,
        sentence=run.sentence,
        sentence_agrees=agrees(run.sentence, run.description),
        settings=run.settings,
        status=run.status,
        started=run.archive.fact("created", ""),
        seconds=run.seconds,
        designer=run.archive.fact("designer", ", ".join(run.settings.model)),
        wall=run.archive.fact("wall", run.settings.sandbox),
        devices=tuple(run.archive.fact(DEVICES_FACT, ())),
        attempts=attempts,
        scores=score_table(trainings),
        best=best_attempt(run),
        cost=run_cost(attempts, trainings, messages),
        ledger=ledger(messages),
        versions=run.archive.fact("versions", {}),
        git_commit=run.archive.fact("git_commit"),
        command=tuple(run.archive.fact("command", ())),
        message=run.archive.fact("message", ""),
        budget=budget_texts(run),
        remarks=remarks(run),
        written_fitness=run.written_fitness,
        fitness_origin=run.fitness_origin,
    )


def remarks(run: Run) -> tuple[str, ...]:
    """Differences from what the settings said at first: settings changed by a person, a gate that
    was loosened, generations that are missing."""
    changes = [
        f"when it was resumed, {change_text(change)}"
        for change in run.archive.fact(CHANGES_FACT, [])
    ]
    told = (run.archive.fact(GATE_FACT, {}).get("text"), run.archive.fact(ENDED_EARLY_FACT))
    return (*changes, *(text for text in told if text))


def change_text(change: Mapping[str, Any]) -> str:
    """`gate changed from True to False`."""
    return f"{change['name']} changed from {change['before']} to {change['now']}"


def budget_texts(run: Run) -> tuple[str, ...]:
    """What the run's budget came to, and where it ended the search; empty for a run without one."""
    told, stopped = run.archive.fact(BUDGET_FACT), run.archive.fact(STOPPED_FACT)
    limit = time_limit(run.settings)
    if stopped is not None and (
        limit is None or stopped["budget"] != limit.text
    ):  # there is another one since
        stopped = None
    spent = run.archive.fact(SPENT_FACT)
    if spent is not None and spent["limits"] != model_limits(run.settings):
        spent = None
    return tuple(fact["text"] for fact in (told, stopped, spent) if fact is not None)


def model_limits(settings: SearchSettings) -> dict[str, str]:
    """The limits on what is spent on models, as the archive keeps them: to tell whether they were
    changed since."""
    limits = {
        "max_cost": settings.max_cost,
        "max_tokens": settings.max_tokens,
        "max_time": settings.max_time,
    }
    return {name: str(value) for name, value in limits.items() if value is not None}


def run_cost(
    attempts: Sequence[Attempt], trainings: Sequence[FinalTraining], messages: Sequence[Message]
) -> RunCost:
    """What the run has used: trainings, environment steps, tokens and money. Money is None where
    any request's is unknown."""
    searched = [
        attempt
        for attempt in attempts
        if attempt.stage in (Stage.TRAINED, Stage.FAILED, Stage.STOPPED)
    ]
    paid = [training for training in trainings if not training.cached]
    repeats = [repeat for attempt in attempts for repeat in attempt.repeats]
    outcomes = [attempt.outcome for attempt in searched]
    outcomes += [repeat.outcome for repeat in repeats] + [training.outcome for training in paid]
    asked = ledger(messages).total
    return RunCost(
        search_trainings=len(searched) + len(repeats),
        final_trainings=sum(training.name not in BASELINES for training in paid),
        baseline_trainings=sum(training.name in BASELINES for training in paid),
        final_restarts=sum(training.retries for training in paid),
        env_steps=sum(outcome.env_steps for outcome in outcomes if outcome is not None),
        requests=asked.requests,
        prompt_tokens=asked.prompt_tokens,
        completion_tokens=asked.completion_tokens,
        uncounted=asked.uncounted,
        money=asked.money,
    )
