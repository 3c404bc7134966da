"""Trainings with curves, that pause where they are asked to, in the trial runner's place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from scripted_search import Fuse, TableTrials

from eureka_agent.archive.run_folder import Run
from eureka_agent.records import CurvePoint
from eureka_agent.search.trial import Trial, TrialRequest
from eureka_agent.summaries import summarize


def point(env_steps: int, fitness: float) -> CurvePoint:
    numbers = dict.fromkeys(set(CurvePoint.model_fields) - {"env_steps", "fitness", "episodes"}, 0.0)
    empty: dict[str, Any] = {name: {} for name in numbers if name.startswith("component") or name == "terminations"}
    return CurvePoint.model_validate({**numbers, **empty, "env_steps": env_steps, "fitness": fitness, "episodes": 1})


class RacedTrials(TableTrials):
    """1,000 env steps in 10 iterations, a checkpoint after each. The fitness is the table's from the first step on, or that of `on_the_way`."""

    def __init__(
        self,
        table: Mapping[str, float],
        fuse: Fuse | None = None,
        on_the_way: Mapping[str | tuple[str, int], float] | None = None,
    ) -> None:
        """`on_the_way`: fitness of the exploring policy, by source and seed, else by source; what the table says is the evaluated one's."""
        super().__init__(dict(table), fuse)
        self.steps: dict[str, int] = {}
        """How far each attempt's training has come."""
        self._fitness = table
        self._on_the_way = on_the_way or {}
        self._rung_fuse = fuse or Fuse()

    async def run(self, request: TrialRequest) -> Trial:
        keys = ((request.source, request.seed), request.source)
        fitness = next(
            (self._on_the_way[key] for key in keys if key in self._on_the_way), self._fitness[request.source]
        )
        for pause in request.pauses:
            assert request.on_pause is not None
            points = self._points(pause, fitness)
            self._rung_fuse("rung")
            self.steps[request.label] = pause
            stop = await request.on_pause(points)
            if stop:
                return Trial(None, points, None, stop, 0, stopped=True)
        await self.before_the_end(request)
        trial = await super().run(request)
        assert trial.outcome is not None
        points = self._points(1000, fitness)
        checkpoints = tuple(summarize([each]) for each in points)
        return replace(trial, points=points, outcome=trial.outcome.model_copy(update={"checkpoints": checkpoints}))

    async def before_the_end(self, request: TrialRequest) -> None:
        """Called between the last pause and the end."""

    def _points(self, env_steps: int, fitness: float) -> tuple[CurvePoint, ...]:
        return tuple(point(steps, fitness) for steps in range(100, env_steps + 1, 100))


def restorable(run: Run) -> Run:
    """The run, on an environment whose trainings can pause."""
    run.description = run.description.model_copy(update={"restorable": True})
    return run
