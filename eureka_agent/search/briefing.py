"""What the designers of a generation are told: plans, parents with what was learned from them, failures, and who is to answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from eureka_agent.archive.artefacts import write_analysis
from eureka_agent.archive.run_folder import Run
from eureka_agent.critic.review import EXPLOIT
from eureka_agent.designer.interface import DesignRequest, FailureSummary, ParentSummary, TunedReward, prefers_failures
from eureka_agent.ranking import ranked
from eureka_agent.records import Attempt, Diagnosis, Operator, Stage
from eureka_agent.search.attempts import attempt_id, failures
from eureka_agent.search.seeds import derive_seed
from eureka_agent.search.sharing import share
from eureka_agent.search.strategies.interface import ProposalPlan, Strategy

FAILURES_SHOWN = 4
"""Failures that a designer is reminded of, newest first."""
MEMORY_SHOWN = 4
"""Good attempts beside the parents that a designer is shown in brief."""


class Analyses(Protocol):
    """Somebody who reads trainings: `eureka_agent.analysis.analyst.Analyst`."""

    async def analyse(self, attempt: str, source: str, diagnosis: Diagnosis) -> str:
        """What was learned from the training of an attempt; empty where there is nothing to be had."""
        ...


class Briefing:
    """Turns a generation's history into its design requests; a function of the history, whoever asks and when."""

    def __init__(
        self, run: Run, strategy: Strategy, models: Sequence[str] = (), analyst: Analyses | None = None
    ) -> None:
        """`models`: names of the models that share the proposals."""
        self._run = run
        self._strategy = strategy
        self._models = models
        self._analyst = analyst

    async def requests(
        self, iteration: int, samples: range, history: Sequence[Attempt], progress: float
    ) -> list[DesignRequest]:
        """One request for each sample. `progress`: part of a training after which the history's fitness was taken."""
        seed = self._run.settings.seed
        plans = self._strategy.plan(iteration, history, len(samples))
        known = {attempt.id: attempt for attempt in history}
        analyses = await self._analyses(plans, known)
        best = ranked(history)
        trained = tuple(
            TunedReward(attempt.id, attempt.proposal.source, attempt.fitness)
            for attempt in history
            if attempt.stage is Stage.TRAINED and attempt.fitness is not None
        )
        misleading = tuple(attempt.proposal.source for attempt in history if prefers_failures(attempt.verdict))
        answering = self._answering(plans, history, iteration, samples)
        requests = []
        for sample, plan, model in zip(samples, plans, answering, strict=True):
            # fresh ones are to owe nothing to what is there
            shown = [] if plan.operator is Operator.FRESH else best
            others = [attempt for attempt in shown if attempt.id not in plan.parents][:MEMORY_SHOWN]
            requests.append(
                DesignRequest(
                    description=self._run.description,
                    sentence=self._run.sentence,
                    operator=plan.operator,
                    parents=tuple(
                        _parent(known[parent], progress, analyses.get(parent, "")) for parent in plan.parents
                    ),
                    failures=tuple(_failure(attempt) for attempt in failures(history)[:FAILURES_SHOWN]),
                    memory=tuple(_parent(attempt, progress) for attempt in others),
                    seed=derive_seed(seed, "design", iteration, sample),
                    attempt=attempt_id(iteration, sample, 0),
                    model=model,
                    trained=trained if plan.operator is Operator.TUNE_WEIGHTS else (),
                    misleading=misleading,
                )
            )
        return requests

    def _answering(
        self, plans: Sequence[ProposalPlan], history: Sequence[Attempt], iteration: int, samples: range
    ) -> list[str]:
        """The model of each proposal; none for those that an optimiser makes."""
        if len(self._models) < 2:
            return [""] * len(samples)
        asking = [
            sample for sample, plan in zip(samples, plans, strict=True) if plan.operator is not Operator.TUNE_WEIGHTS
        ]
        shared = share(self._models, history, iteration, asking, self._run.settings.seed)
        models = dict(zip(asking, shared, strict=True))
        return [models.get(sample, "") for sample in samples]

    async def _analyses(self, plans: Sequence[ProposalPlan], known: dict[str, Attempt]) -> dict[str, str]:
        """The analyst's words on each attempt that a model is to start from, by id."""
        if self._analyst is None:
            return {}
        starts = (plan.parents[0] for plan in plans if plan.parents and plan.operator is not Operator.TUNE_WEIGHTS)
        parents = [known[parent] for parent in dict.fromkeys(starts)]
        texts = await asyncio.gather(*(self._analyse(parent) for parent in parents))
        return {parent.id: text for parent, text in zip(parents, texts, strict=True)}

    async def _analyse(self, parent: Attempt) -> str:
        if self._analyst is None or parent.diagnosis is None:
            return ""
        text = await self._analyst.analyse(parent.id, parent.proposal.source, parent.diagnosis)
        archived = self._run.archive.attempt(parent.id)  # read again: more is known of it than what is planned with
        if text and archived is not None and archived.analysis != text:
            archived = archived.model_copy(update={"analysis": text})
            write_analysis(self._run.folder, archived)
            self._run.archive.put_attempt(archived)
        return text


def _parent(attempt: Attempt, progress: float, analysis: str = "") -> ParentSummary:
    return ParentSummary(
        attempt.id,
        attempt.proposal.source,
        attempt.fitness,
        attempt.diagnosis,
        attempt.proposal.reasoning,
        attempt.fitness_per_seed,
        progress,
        analysis,
        _exploits(attempt),
    )


def _exploits(attempt: Attempt) -> tuple[str, ...]:
    findings = () if attempt.verdict is None else attempt.verdict.findings
    return tuple(finding.message for finding in findings if finding.code == EXPLOIT)


def _failure(attempt: Attempt) -> FailureSummary:
    return FailureSummary(attempt.id, attempt.proposal.source, attempt.stage.value, attempt.reason)
