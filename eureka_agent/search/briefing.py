"""What the designers of a generation are told: plans, parents with what was learned from them,
failures, and who is to answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from eureka_agent.analysis.text import without_findings
from eureka_agent.archive.artefacts import write_analysis
from eureka_agent.archive.run_folder import Run
from eureka_agent.critic.review import EXPLOIT
from eureka_agent.designer.interface import (
    DesignRequest,
    FailureSummary,
    ParentSummary,
    TunedReward,
    prefers_failures,
)
from eureka_agent.journal.entries import Analysed, BaselinesTold, Observer
from eureka_agent.ranking import ranked
from eureka_agent.records import BASELINES, Attempt, Diagnosis, Operator, Score, Stage
from eureka_agent.search.attempts import attempt_id, failures
from eureka_agent.search.lineage import changes, last_score, seed_spread, vain_findings
from eureka_agent.search.scoring import score_table
from eureka_agent.search.seeds import derive_seed
from eureka_agent.search.sharing import share
from eureka_agent.search.strategies.interface import ProposalPlan, Strategy

FAILURES_SHOWN = 4
"""Failures that a designer is reminded of, newest first."""
MEMORY_SHOWN = 3
"""Good attempts beside the parents that a designer is shown in short."""
STOPPED_SHOWN = 2
"""Attempts that racing stopped, which it is shown besides: weaker ones, not mistakes."""


class Analyses(Protocol):
    """Somebody who reads trainings: `eureka_agent.analysis.analyst.Analyst`."""

    async def analyse(self, attempt: str, source: str, diagnosis: Diagnosis) -> str:
        """What was learned from the training of an attempt; empty where there is nothing to be
        had."""
        ...


class Briefing:
    """Turns a generation's history into its design requests; a function of the history, whoever
    asks and when."""

    def __init__(
        self,
        run: Run,
        strategy: Strategy,
        observer: Observer,
        models: Sequence[str] = (),
        analyst: Analyses | None = None,
    ) -> None:
        """`models`: names of the models that share the proposals."""
        self._run = run
        self._observer = observer
        self._strategy = strategy
        self._models = models
        self._analyst = analyst

    async def requests(
        self, iteration: int, samples: range, history: Sequence[Attempt], progress: float
    ) -> list[DesignRequest]:
        """One request for each sample. `progress`: part of a training after which the history's
        fitness was taken."""
        seed = self._run.settings.seed
        plans = self._strategy.plan(iteration, history, len(samples))
        known = {attempt.id: attempt for attempt in history}
        analyses = await self._analyses(plans, known)
        best = ranked(history)
        stopped = sorted(
            (
                attempt
                for attempt in history
                if attempt.stage is Stage.STOPPED and last_score(attempt) is not None
            ),
            key=lambda attempt: (
                -attempt.rungs[-1].env_steps,
                -(last_score(attempt) or 0.0),
                attempt.id,
            ),
        )
        refused = [attempt for attempt in failures(history) if attempt.stage is not Stage.STOPPED]
        trained = tuple(
            TunedReward(attempt.id, attempt.proposal.source, attempt.fitness)
            for attempt in history
            if attempt.stage is Stage.TRAINED and attempt.fitness is not None
        )
        misleading = tuple(
            attempt.proposal.source for attempt in history if prefers_failures(attempt.verdict)
        )
        answering = self._answering(plans, history, iteration, samples)
        references = self._references(iteration)
        spread = seed_spread(history, references)
        requests = []
        for sample, plan, model in zip(samples, plans, answering, strict=True):
            # fresh ones are to owe nothing to what is there
            fresh = plan.operator is Operator.FRESH
            others = (
                []
                if fresh
                else [attempt for attempt in best if attempt.id not in plan.parents][:MEMORY_SHOWN]
            )
            weaker = [] if fresh else stopped[:STOPPED_SHOWN]
            requests.append(
                DesignRequest(
                    description=self._run.description,
                    sentence=self._run.sentence,
                    operator=plan.operator,
                    parents=tuple(
                        replace(
                            self._summary(without_vain(known[parent], history), progress),
                            analysis=analyses.get(parent, ""),
                            changes=changes(known[parent], history),
                        )
                        for parent in plan.parents
                    ),
                    failures=tuple(_failure(attempt) for attempt in refused[:FAILURES_SHOWN]),
                    memory=(
                        *(
                            self._summary(without_vain(attempt, history), progress)
                            for attempt in others
                        ),
                        *(self._stopped(attempt) for attempt in weaker),
                    ),
                    number=sample + 1,
                    angle=iteration * self._run.settings.samples + sample,
                    seed_spread=seed_spread((), references) if fresh else spread,
                    seed=derive_seed(seed, "design", iteration, sample),
                    attempt=attempt_id(iteration, sample, 0),
                    model=model,
                    settings=self._run.settings,
                    references=references,
                    trained=trained if plan.operator is Operator.TUNE_WEIGHTS else (),
                    misleading=misleading,
                )
            )
        return requests

    def _references(self, iteration: int) -> tuple[Score, ...]:
        """Scores of the baselines: none in the first generation, where it depends on timing and
        earlier runs which are known.

        They are kept as they were told first: a resumed run, also one with other final seeds, makes
        the same prompts.
        """
        if iteration == 0 or not self._models:
            return ()
        archive = self._run.archive
        if archive.state.baselines_told is None:
            told = [name for name in BASELINES if name != "human" or not self._run.settings.blind]
            scores = tuple(
                each
                for each in score_table(archive.trainings())
                if each.name in told and each.mean is not None
            )
            self._observer(BaselinesTold(scores=scores))
        return archive.state.baselines_told or ()

    def _answering(
        self,
        plans: Sequence[ProposalPlan],
        history: Sequence[Attempt],
        iteration: int,
        samples: range,
    ) -> list[str]:
        """The model of each proposal; none for those that an optimiser makes."""
        if len(self._models) < 2:
            return [""] * len(samples)
        asking = [
            sample
            for sample, plan in zip(samples, plans, strict=True)
            if plan.operator is not Operator.TUNE_WEIGHTS
        ]
        shared = share(self._models, history, iteration, asking, self._run.settings.seed)
        models = dict(zip(asking, shared, strict=True))
        return [models.get(sample, "") for sample in samples]

    async def _analyses(
        self, plans: Sequence[ProposalPlan], known: dict[str, Attempt]
    ) -> dict[str, str]:
        """The analyst's words on each attempt that a model is to start from, by id."""
        if self._analyst is None:
            return {}
        starts = (
            plan.parents[0]
            for plan in plans
            if plan.parents and plan.operator is not Operator.TUNE_WEIGHTS
        )
        parents = [known[parent] for parent in dict.fromkeys(starts)]
        texts = await asyncio.gather(*(self._analyse(parent) for parent in parents))
        return {parent.id: text for parent, text in zip(parents, texts, strict=True)}

    async def _analyse(self, parent: Attempt) -> str:
        if self._analyst is None or parent.diagnosis is None:
            return ""
        text = await self._analyst.analyse(parent.id, parent.proposal.source, parent.diagnosis)
        known = self._run.archive.attempt(parent.id)
        if text and known is not None and known.analysis != text:
            self._observer(Analysed(attempt=parent.id, text=text))
            write_analysis(self._run.folder, known.model_copy(update={"analysis": text}))
        return text

    def _summary(self, attempt: Attempt, progress: float) -> ParentSummary:
        settings = self._run.settings
        return ParentSummary(
            id=attempt.id,
            source=attempt.proposal.source,
            fitness=attempt.fitness,
            diagnosis=attempt.diagnosis,
            reasoning=attempt.proposal.reasoning,
            fitness_per_seed=attempt.fitness_per_seed,
            progress=progress,
            exploits=_exploits(attempt),
            episodes=settings.scoring_episodes if progress < 1 else settings.evaluation_episodes,
        )

    def _stopped(self, attempt: Attempt) -> ParentSummary:
        """An attempt that racing stopped, with its score at the rung where that was."""
        settings = self._run.settings
        progress = attempt.rungs[-1].env_steps / (
            settings.updates * settings.horizon * settings.num_envs
        )
        summary = self._summary(attempt, min(progress, 1.0))
        return replace(
            summary, fitness=last_score(attempt), fitness_per_seed=(), stopped=attempt.reason
        )


def without_vain(attempt: Attempt, history: Sequence[Attempt]) -> Attempt:
    """The attempt with a diagnosis that does not repeat what was advised in vain."""
    vain = vain_findings(attempt, history)
    if not vain or attempt.diagnosis is None:
        return attempt
    return attempt.model_copy(update={"diagnosis": without_findings(attempt.diagnosis, vain)})


def _exploits(attempt: Attempt) -> tuple[str, ...]:
    findings = () if attempt.verdict is None else attempt.verdict.findings
    return tuple(finding.message for finding in findings if finding.code == EXPLOIT)


def _failure(attempt: Attempt) -> FailureSummary:
    return FailureSummary(attempt.id, attempt.proposal.source, attempt.stage.value, attempt.reason)
