"""Design requests: plans, parents with what was learned from them, and failures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from eureka_agent.analysis import standing
from eureka_agent.analysis.wishes import measure_words, measured_attempts, measured_wishes
from eureka_agent.archive.artefacts import write_analysis
from eureka_agent.archive.run_folder import Run
from eureka_agent.critic.review import EXPLOIT
from eureka_agent.designer.interface import (
    DesignRequest,
    FailureSummary,
    Measured,
    ParentSummary,
    Told,
    given_reward,
)
from eureka_agent.feedback_records import Edit, Given, Mark
from eureka_agent.journal.entries import Analysed, Observer, Planned
from eureka_agent.journal.state import RunState
from eureka_agent.llm.tool_calls import arguments_of
from eureka_agent.ranking import ranked
from eureka_agent.records import BASELINES, Attempt, FinalTraining, Operator, Score, Stage
from eureka_agent.search.attempts import attempt_id, failures
from eureka_agent.search.scoring import changes, coverage_so_far, score_table, seed_spread
from eureka_agent.search.seeds import derive_seed
from eureka_agent.search.seeing import RunAnalyst
from eureka_agent.search.strategies import ProposalPlan, Strategy
from eureka_agent.settings import schedule_of

FAILURES_SHOWN = 4
"""Failures in a request, newest first."""
MEMORY_SHOWN = 3
"""Good attempts besides the parents in a request."""


ASKED_SHOWN = 12
"""Answers to others in a request, the first ones."""
SIBLINGS_SHOWN = 6
"""Proposals on their way in a request, the newest ones."""


class Briefing:
    """Plans proposals and turns plans into design requests. A request depends on the recorded plan
    and the entries that this was made from alone, so a resumed run makes the same requests."""

    def __init__(
        self,
        run: Run,
        strategy: Strategy,
        observer: Observer,
        models: Sequence[str] = (),
        analyst: RunAnalyst | None = None,
        *,
        refining: Strategy | None = None,
    ) -> None:
        """`refining`: the strategy from a person's first word on, if it is another one."""
        self._run, self._observer, self._strategy = run, observer, strategy
        self._refining = refining or strategy
        self._models = models
        self._analyst = analyst

    def plan(self, iteration: int, samples: range) -> list[Planned]:
        """Plans for these samples: the recorded ones, and new ones from the present state."""
        archive = self._run.archive
        recorded = archive.state.plans
        known = {
            each: recorded[iteration, each] for each in samples if (iteration, each) in recorded
        }
        if len(known) < len(samples):
            # plans that a killed process did not record are made from the same state
            seen = next((plan.seen for plan in known.values()), None)
            number, state = archive.view() if seen is None else (seen, archive.state_at(seen))
            for plan in self._plans(iteration, samples, state, number):
                if plan.sample not in known:
                    self._observer(plan)
                    known[plan.sample] = plan
        return [known[sample] for sample in samples]

    def _plans(
        self, iteration: int, samples: range, state: RunState, seen: int
    ) -> Iterator[Planned]:
        """Take these samples from the strategy's plan; a person's rewards take the first."""
        size = state.given_alone.get(iteration, self._run.settings.samples)
        history = standing.judged(state.attempts(), state.feedback)
        whole = range(samples.start // size * size, -(-samples.stop // size) * size)
        edits = dict(zip(whole, _pending(state), strict=False))
        plans = self._from_strategy(iteration, history, len(whole), state)
        many = len(self._models)
        for sample, plan in zip(whole, plans, strict=True):
            if sample in samples and sample in edits:
                yield _edit_plan(iteration, sample, edits[sample], state, seen)
            elif sample in samples:
                yield Planned(
                    iteration=iteration,
                    sample=sample,
                    operator=plan.operator,
                    parents=plan.parents,
                    model=self._models[sample % many] if many > 1 else "",
                    seen=seen,
                )

    def _from_strategy(
        self, iteration: int, history: Sequence[Attempt], size: int, state: RunState
    ) -> Sequence[ProposalPlan]:
        """The strategy's plan. Once wishes stand, every second proposal, from the first on, is made
        from attempts that know all of them: the best by fitness may be one that ignores them."""
        strategy = self._refining if state.feedback else self._strategy
        plans = strategy.plan(iteration, history, size)
        knowing = [
            each
            for each in history
            if knows_wishes(each, state)
            and each.stage is Stage.TRAINED
            and each.fitness is not None
        ]
        if (
            not knowing
            or not standing.standing_wishes(state.feedback)
            or standing.what_ranks(state.feedback) == "choices"
        ):
            return plans
        after = strategy.plan(iteration, knowing, size)
        return [after[place] if place % 2 == 0 else plan for place, plan in enumerate(plans)]

    def asked(self, plan: Planned, attempts: Sequence[str]) -> tuple[str, ...]:
        """Answers to what these attempts have asked about a plan's parents, one attempt after the
        other: they ask at the same time."""
        answers = self._run.archive.state.answers.values()
        found: dict[str, None] = {}
        for each in (each for name in attempts for each in answers if each.attempt == name):
            about = arguments_of(each.call).get("attempt")
            if about in plan.parents and not each.pictures:
                found[each.text] = None
        return tuple(found)[:ASKED_SHOWN]

    def pending(self) -> Sequence[Given]:
        """Given rewards that no plan has taken yet."""
        return _pending(self._run.archive.state)

    async def request(self, plan: Planned) -> DesignRequest:
        """The design request for a plan, after the analyst has read the parents' trainings."""
        settings, state = self._run.settings, self._run.archive.state_at(plan.seen)
        history = standing.judged(state.attempts(), state.feedback)
        known = {attempt.id: attempt for attempt in history}
        analyses = {each: await self._analysis(plan, known[each]) for each in plan.parents}
        feedback = told(self._run, state, plan)
        references = self._references(plan, state.trainings())
        lacking = coverage_so_far(self._run, state)
        fresh = plan.operator is Operator.FRESH
        said = (each.feedback for each in state.feedback if each.number == plan.feedback)
        edit = next((each for each in said if isinstance(each, Edit)), None)
        return DesignRequest(
            description=self._run.description,
            sentence=self._run.sentence,
            operator=plan.operator,
            parents=tuple(
                replace(
                    self._summary(known[parent]),
                    analysis=analyses.get(parent, ""),
                    changes=changes(known[parent], history),
                )
                for parent in plan.parents
            ),
            failures=tuple(
                FailureSummary(each.id, each.proposal.reward, each.stage.value, each.reason)
                for each in failures(history)[:FAILURES_SHOWN]
            ),
            memory=() if fresh else self._memory(plan, history, feedback),
            number=plan.sample + 1,
            angle=plan.iteration * settings.samples + plan.sample,
            seed_spread=seed_spread(() if fresh else history, references),
            seed=derive_seed(settings.seed, "design", plan.iteration, plan.sample),
            attempt=attempt_id(plan.iteration, plan.sample, 0),
            model=plan.model,
            settings=settings,
            references=references,
            told=feedback,
            coverage="" if lacking is None else lacking.fact,
            given=None if edit is None else given_reward(edit.source),
            why="" if edit is None else edit.why,
            siblings=self._siblings(plan, state),
        )

    def _siblings(self, plan: Planned, state: RunState) -> tuple[str, ...]:
        """Sources that were on their way when this was planned in a steady search. One of
        generations gives those of its own."""
        if schedule_of(self._run.settings) != "steady":
            return ()
        under_way = (Stage.PROPOSED, Stage.ACCEPTED)
        return tuple(
            each.proposal.reward.source
            for each in state.attempts()
            if each.stage in under_way
            and (each.iteration, each.sample) != (plan.iteration, plan.sample)
        )[-SIBLINGS_SHOWN:]

    def _memory(
        self, plan: Planned, history: Sequence[Attempt], feedback: Told
    ) -> tuple[ParentSummary, ...]:
        """The best attempts besides the parents, after those that meet the last wish best."""
        best = {each.id: each for each in ranked(history)}
        nearest = (
            list(feedback.measures[max(feedback.measures)].values) if feedback.measures else []
        )
        order = dict.fromkeys((*nearest[: MEMORY_SHOWN - 1], *best))
        others = [best[name] for name in order if name in best and name not in plan.parents]
        return tuple(map(self._summary, others[:MEMORY_SHOWN]))

    def _references(self, plan: Planned, trainings: Sequence[FinalTraining]) -> tuple[Score, ...]:
        """Scores of the baselines for a model; none in the first generation."""
        if plan.iteration == 0 or not self._models:
            return ()
        shown = [name for name in BASELINES if name != "human" or not self._run.settings.blind]
        scores = score_table(trainings)
        return tuple(each for each in scores if each.name in shown and each.mean is not None)

    async def _analysis(self, plan: Planned, parent: Attempt) -> str:
        """The analysis of a parent, for a model."""
        if plan.operator is Operator.EDIT or self._analyst is None:
            return ""
        if parent.diagnosis is None:
            return ""
        text = await self._analyst.analyse(parent.id, parent.proposal.reward, parent.diagnosis)
        latest = self._run.archive.state.by_id[parent.id]
        if text and latest.analysis != text:
            self._observer(Analysed(attempt=parent.id, text=text))
            write_analysis(self._run.folder, latest.model_copy(update={"analysis": text}))
        return text

    def _summary(self, attempt: Attempt) -> ParentSummary:
        findings = () if attempt.verdict is None else attempt.verdict.findings
        return ParentSummary(
            id=attempt.id,
            reward=attempt.proposal.reward,
            fitness=attempt.fitness,
            diagnosis=attempt.diagnosis,
            reasoning=attempt.proposal.reasoning,
            fitness_per_seed=attempt.fitness_per_seed,
            exploits=tuple(each.message for each in findings if each.code == EXPLOIT),
            episodes=self._run.settings.evaluation_episodes,
            order=None if attempt.verdict is None else attempt.verdict.order,
        )


def _pending(state: RunState) -> Sequence[Given]:
    taken = {plan.feedback for plan in state.plans.values() if plan.feedback is not None}
    return standing.pending_edits(state.feedback, taken)


def _edit_plan(iteration: int, sample: int, edit: Given, state: RunState, seen: int) -> Planned:
    """The plan that takes a person's reward."""
    assert isinstance(edit.feedback, Edit)  # see pending_edits
    parent = edit.feedback.attempt
    return Planned(
        iteration=iteration,
        sample=sample,
        operator=Operator.EDIT,
        parents=(parent,) if parent in state.by_id else (),
        seen=seen,
        feedback=edit.number,
    )


def told(run: Run, state: RunState, plan: Planned) -> Told:
    """A person's feedback for a plan's request; nothing in a search that nobody refines."""
    feedback = state.feedback
    if not feedback:
        return Told()
    attempts, chosen, ranks = (
        state.attempts(),
        standing.choices_of(feedback),
        standing.what_ranks(feedback),
    )
    by_model = ranks == "model" and standing.comparisons_of_model(feedback)
    wishes = standing.standing_wishes(feedback)
    seen = min((_seen(state, parent) for parent in plan.parents), default=0)
    return Told(
        wishes=wishes,
        heeded=frozenset(each.number for each in wishes if each.number <= seen),
        measures=_measures(run, wishes, state),
        importance=standing.latest_importance(feedback),
        marks=tuple(each for each in feedback if isinstance(each.feedback, Mark)),
        choices=len(chosen),
        strengths=standing.preferences_of(attempts, feedback).in_order() if chosen else (),
        by_choices=ranks == "choices",
        judged=standing.preferences_of(attempts, feedback, "model").in_order() if by_model else (),
    )


def _measures(run: Run, wishes: Sequence[Given], state: RunState) -> dict[int, Measured]:
    """Measures of the wishes in the trained attempts."""
    names = [each.id for each in state.attempts() if each.stage is Stage.TRAINED]
    return {
        number: Measured(
            measure_words(measure, run.description), measured_attempts(measure, run.folder, names)
        )
        for number, measure in measured_wishes(wishes)
    }


def knows_wishes(attempt: Attempt, state: RunState) -> bool:
    """True for an attempt that was planned after all standing wishes were said."""
    seen = _seen(state, attempt.id)
    return all(given.number <= seen for given in standing.standing_wishes(state.feedback))


def _seen(state: RunState, attempt: str) -> int:
    """Number of the last entry that was known to an attempt's plan; 0 without a plan."""
    known = state.by_id.get(attempt)
    plan = None if known is None else state.plans.get((known.iteration, known.sample))
    return 0 if plan is None else plan.seen
