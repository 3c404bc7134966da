"""Trainings with curves and scores at rungs, in the trial runner's place."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from scripted_search import Fuse, TableTrials

from eureka_agent.records import CurvePoint, EpisodeSummary, Evaluation
from eureka_agent.search.trial import Trial, TrialRequest
from eureka_agent.summaries import summarize

SIZES: dict[str, Any] = {"env_steps": 1000, "num_envs": 10, "horizon": 10}
"""10 iterations of 10 × 10 steps with a checkpoint after each."""
RUNGS = {**SIZES, "rungs": (0.4, 0.7), "confirm": 0, "finalists": 0}
"""Rungs at 400 and 700 env steps."""


def point(env_steps: int, fitness: float) -> CurvePoint:
    numbers = dict.fromkeys(
        set(CurvePoint.model_fields) - {"env_steps", "fitness", "episodes"}, 0.0
    )
    empty: dict[str, Any] = {
        name: {} for name in numbers if name.startswith("component") or name == "terminations"
    }
    return CurvePoint.model_validate(
        {**numbers, **empty, "env_steps": env_steps, "fitness": fitness, "episodes": 1}
    )


class RungTrials(TableTrials):
    """1,000 env steps in 10 iterations, a checkpoint after each. The curve and the final score are
    the table's."""

    def __init__(
        self,
        table: Mapping[str, float],
        fuse: Fuse | None = None,
        at_rungs: Mapping[str, float] | None = None,
    ) -> None:
        """`at_rungs`: scores at the rungs by source, where they are not the table's."""
        super().__init__(dict(table), fuse)
        self._fitness = table
        self._at_rungs = at_rungs or {}
        self._rung_fuse = fuse or Fuse()

    async def run(self, request: TrialRequest) -> Trial:
        fitness = self._fitness[request.reward.source]
        score = self._at_rungs.get(request.reward.source, fitness)
        for rung in request.rungs:
            assert request.score_rung is not None
            self._rung_fuse("rung")
            await request.score_rung(rung, Path(f"{score}.policy"))
        await self.before_the_end(request)
        trial = await super().run(request)
        assert trial.outcome is not None
        points = self._points(1000, fitness)
        checkpoints = tuple(summarize([each]) for each in points)
        return replace(
            trial,
            points=points,
            outcome=trial.outcome.model_copy(update={"checkpoints": checkpoints}),
        )

    async def score(self, policy: Path, seed: int, episodes: int) -> Evaluation | None:
        """The policy's name is its fitness."""
        self._rung_fuse("score")
        await asyncio.sleep(0)
        episode = EpisodeSummary(fitness=float(policy.stem), length=3, ended_by="left_the_rail")
        return Evaluation(episodes=(episode,) * episodes, seed=seed)

    async def before_the_end(self, request: TrialRequest) -> None:
        """Called between the last rung and the end."""

    def _points(self, env_steps: int, fitness: float) -> tuple[CurvePoint, ...]:
        return tuple(point(steps, fitness) for steps in range(100, env_steps + 1, 100))


class Jittery(RungTrials):
    """Trainings that take their turns in an order of chance."""

    def __init__(
        self,
        seed: int,
        table: Mapping[str, float],
        fuse: Fuse | None = None,
        at_rungs: Mapping[str, float] | None = None,
    ) -> None:
        super().__init__(table, fuse, at_rungs)
        self._random = random.Random(seed)

    async def run(self, request: TrialRequest) -> Trial:
        for _ in range(self._random.randrange(40)):
            await asyncio.sleep(0)
        return await super().run(request)

    async def before_the_end(self, request: TrialRequest) -> None:
        for _ in range(self._random.randrange(400)):
            await asyncio.sleep(0)
