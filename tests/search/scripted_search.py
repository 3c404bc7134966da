"""A search without workers: scripted proposals, trials from a table, and a fuse that kills all of
it at a chosen call."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from outcomes import make_outcome

from eureka_agent.archive.artefacts import POLICY
from eureka_agent.archive.cache import BaselineCache
from eureka_agent.archive.files import write_text
from eureka_agent.archive.run_folder import Run
from eureka_agent.boundary.events import TransitionsScored
from eureka_agent.critic.critic import Critic
from eureka_agent.critic.memory import NOTHING_KNOWN, Memory
from eureka_agent.designer.interface import DesignRequest
from eureka_agent.journal.entries import Observer
from eureka_agent.records import Finding, Proposal, Verdict
from eureka_agent.rewards import CodeReward, RewardSpecification
from eureka_agent.search.assembly import assembled
from eureka_agent.search.briefing import Briefing
from eureka_agent.search.deadline import Deadline
from eureka_agent.search.recorder import Recorder
from eureka_agent.search.seeing import Judging, RunAnalyst
from eureka_agent.search.strategies import Greedy, Strategy
from eureka_agent.search.trial import Trial, TrialRequest


class Killed(BaseException):
    """The end of the process, as far as the search can tell."""


class Fuse:
    """Counts calls by kind and raises Killed at the n-th one of a kind, and at every one after
    it."""

    def __init__(self, kind: str = "", number: int = 0) -> None:
        self.calls: Counter[str] = Counter()
        self._at = (kind, number)
        self._blown = False

    def __call__(self, kind: str) -> None:
        self.calls[kind] += 1
        if self._blown or (kind, self.calls[kind]) == self._at:
            self._blown = True
            raise Killed


class ScriptedDesigner:
    """Gives the listed sources in the order in which it is asked, and mends rejected ones from a
    table."""

    name = "scripted"

    def __init__(
        self,
        sources: Sequence[str],
        mended: Mapping[str, str] | None = None,
        *,
        concurrent: bool = False,
        fuse: Fuse | None = None,
    ) -> None:
        self.concurrent = concurrent
        self.requests: list[DesignRequest] = []
        self.revisions: list[tuple[DesignRequest, str, Verdict]] = []
        """Request, rejected source and verdict of every revision that was asked for."""
        self._sources = sources
        self._mended = mended or {}
        self._fuse = fuse or Fuse()

    async def propose(self, request: DesignRequest) -> Proposal:
        self._fuse("propose")
        source = self._sources[len(self.requests)]
        self.requests.append(request)
        await asyncio.sleep(0)
        return self._proposal(source, request)

    async def revise(
        self, request: DesignRequest, rejected: Proposal, verdict: Verdict
    ) -> Proposal:
        self._fuse("revise")
        self.revisions.append((request, rejected.reward.source, verdict))
        await asyncio.sleep(0)
        return self._proposal(self._mended[rejected.reward.source], request)

    def _proposal(self, source: str, request: DesignRequest) -> Proposal:
        parents = tuple(parent.id for parent in request.parents)
        return Proposal(
            reward=CodeReward(source=source, author=self.name),
            reasoning="scripted",
            operator=request.operator,
            parents=parents,
        )


class TableTrials:
    """Stand-in for the trial runner: looks up a fitness, or the words of a failure, by source and
    seed, else by source."""

    def __init__(
        self, table: Mapping[str | tuple[str, int], float | str], fuse: Fuse | None = None
    ) -> None:
        self.requests: list[TrialRequest] = []
        self.most_at_once = 0
        self._running = 0
        self._table = table
        self._fuse = fuse or Fuse()

    async def run(self, request: TrialRequest) -> Trial:
        self._fuse("trial")
        self.requests.append(request)
        self._running += 1
        self.most_at_once = max(self.most_at_once, self._running)
        await asyncio.sleep(0)
        self._running -= 1
        keys = ((request.reward.source, request.seed), request.reward.source)
        result = next(self._table[key] for key in keys if key in self._table)
        if not isinstance(result, str):
            write_text(request.folder / POLICY, f"policy of {request.job}")
        self._fuse("trained")
        if isinstance(result, str):
            return Trial(None, (), None, result, 0)
        return Trial(make_outcome(result), (), None, "", 0)

    def withdraw(self, request: TrialRequest, reason: str, *, ended: bool) -> None:
        """Delete the policy."""
        (request.folder / POLICY).unlink(missing_ok=True)

    def settle(self, request: TrialRequest) -> None:
        """Do nothing, since nothing was saved."""

    @property
    def labels(self) -> list[str]:
        """Labels of the trainings, in order."""
        return [request.label for request in self.requests]


class CountingCritic(Critic):
    """The real critic behind a fuse."""

    def __init__(self, run: Run, fuse: Fuse, reviewer: Any | None = None) -> None:
        settings = run.settings
        super().__init__(
            run.description,
            CleanDryRun(),
            novelty=settings.novelty,
            reviewer=reviewer,
        )
        self._fuse = fuse

    async def judge(self, reward: RewardSpecification, memory: Memory = NOTHING_KNOWN) -> Verdict:
        self._fuse("judge")
        await asyncio.sleep(0)
        return await super().judge(reward, memory)


class CleanDryRun:
    """A dry run that finds nothing."""

    async def dry_run(self, reward: RewardSpecification) -> tuple[Finding, ...]:
        return ()

    async def score(
        self, reward: RewardSpecification, episodes: Mapping[str, Path]
    ) -> TransitionsScored:
        return TransitionsScored(job="none", reason="nothing runs here")


@dataclass
class Scripted:
    """Advisers of a scripted search."""

    designer: ScriptedDesigner
    spent: Callable[[], bool]
    distributions: Any
    models: tuple[str, ...] = ()
    analyst: Any = None
    judge: Any = None


class ScriptedSearch:
    """Engine and final trainings of a run, put together as a session does."""

    def __init__(
        self,
        run: Run,
        designer: ScriptedDesigner,
        trials: TableTrials,
        *,
        fuse: Fuse | None = None,
        observer: Observer | Callable[[Any], None] = lambda event: None,
        deadline: Deadline | None = None,
        strategy: Strategy | None = None,
        analyst: RunAnalyst | None = None,
        reviewer: Any | None = None,
        spent: Callable[[], bool] = lambda: False,
        judge: Callable[[Run, Observer], Judging] | None = None,
        writer: Any = None,
    ) -> None:
        self.run = run
        self.designer = designer
        self.trials: Any = trials  # the runner's place, without its pool and evaluator
        recorder = Recorder(run, observer)
        self.cache = BaselineCache(run.folder.parent, run.description, run.settings)
        advisers: Any = Scripted(designer, spent, distributions=writer)
        search = assembled(
            run,
            recorder,
            advisers,
            CountingCritic(run, fuse or Fuse(), reviewer),
            self.trials,
            deadline or Deadline(run, None, lambda: 0.0, recorder),
            self.cache,
            maker=None,  # type: ignore[arg-type]
        )
        search.briefing = Briefing(run, strategy or Greedy(), recorder, analyst=analyst)
        search.judging = None if judge is None else judge(run, recorder)
        self.engine, self.finals, self.randomising = search, search.finals, search.randomising

    async def see_through(self) -> None:
        """Generations and final trainings, with the baselines beside them."""
        self.run.settings = self.run.settings.model_copy(update={"baselines": True})
        await self.engine.all_trainings()


def reward(weight: float) -> str:
    """A reward that the critic accepts."""
    return f"""def compute_reward(cart_position):
    closeness = -{weight} * cart_position.abs()
    return closeness, {{"closeness": closeness}}
"""


IMPORTING = "import os\n" + reward(1)
"""Rejected with A201: an import of something else than torch, math and typing."""
MISSPELT = reward(1).replace("cart_position", "cart_postion")
"""Rejected with C303: an argument is no variable of the environment."""
BROKEN = "def compute_reward(cart_position:\n"
"""Rejected with P103: not valid Python."""


def rows(run: Run) -> list[tuple[str, str, str, float | None]]:
    """Id, stage, source and fitness of every attempt in the archive."""
    return [
        (attempt.id, attempt.stage.value, attempt.proposal.reward.source, attempt.fitness)
        for attempt in run.archive.attempts()
    ]
