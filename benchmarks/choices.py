"""Choices alone recover a known metric: a scripted person prefers by a fitness that the search does
not see, in at most 40 choices, and what that search reaches is compared with a search by it.

Both make the same number of proposals with the offline designer. The policy of each search's best
attempt is scored by the hidden fitness on fresh episodes.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path
from typing import Any

from benchmarks._results import write_result
from eureka_agent.archive.artefacts import POLICY, attempt_folder
from eureka_agent.archive.run_folder import Run
from eureka_agent.feedback_records import Comparison, Decision, Grade
from eureka_agent.fleet.evaluator import Evaluator
from eureka_agent.fleet.jobs import Problem
from eureka_agent.sandbox.process_wall import ProcessWall
from eureka_agent.search.board import newest, next_pair
from eureka_agent.search.refinement import Refinement
from eureka_agent.search.session import resume, start
from eureka_agent.search.summary import best_attempt

TASKS = {"hopper": "run", "quadcopter": "hover"}
SEEDS = (0, 1, 2)
GENERATIONS, SAMPLES = 3, 8
CHOICES = 40
EPISODES = 64
_CLIP_SEED, _SCORE_SEED = 11, 12
_STARTS = 3
"""Start states side by side in a clip."""
_ALIKE = 0.05
"""Part of the larger fitness below which two clips look alike."""
SMALL = {"samples": SAMPLES, "finalists": 0, "baselines": False, "video": False}


class ScriptedPerson:
    """Prefers the clip of the higher hidden fitness. Sees each attempt from the clips' starts."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._seen: dict[str, float] = {}
        self.choices = 0

    async def __call__(self, refinement: Refinement) -> None:
        """Answer this generation's share of the choices."""
        run = refinement.run
        generation = newest(run.archive.state)[0].iteration
        for _ in range(CHOICES * (generation + 1) // GENERATIONS - self.choices):
            pair = next_pair(run)
            if pair is None:
                break
            one, other = [await self._fitness(run, name) for name in pair]
            first, second = pair
            refinement.say(Comparison(first=first, second=second, grade=_grade(one, other)))
            self.choices += 1
        is_last = generation + 1 >= GENERATIONS
        refinement.say(Decision(then="leave" if is_last else "another"))

    async def _fitness(self, run: Run, name: str) -> float:
        if name not in self._seen:
            policy = attempt_folder(run.folder, name) / POLICY
            evaluation = await self._evaluator.evaluate(policy, _CLIP_SEED, _STARTS)
            mean = evaluation.fitness_mean()
            assert mean is not None  # there are episodes
            self._seen[name] = mean
        return self._seen[name]


def _grade(first: float, second: float) -> Grade:
    if abs(first - second) <= _ALIKE * max(abs(first), abs(second)):
        return 0
    return 1 if first > second else -1


async def _scored(run: Run, evaluator: Evaluator) -> float:
    best = best_attempt(run)
    assert best is not None  # something was trained
    policy = attempt_folder(run.folder, best.id) / POLICY
    evaluation = await evaluator.evaluate(policy, _SCORE_SEED, EPISODES)
    mean = evaluation.fitness_mean()
    assert mean is not None  # there are episodes
    return mean


async def compare(environment: str, task: str, seed: int, scratch: Path) -> dict[str, Any]:
    """Hidden fitness that a search by fitness reaches, and one by choices."""
    evaluator = Evaluator(ProcessWall(), Problem(environment, task), scratch)
    common = {"env": environment, "task": task, "seed": seed, "sandbox": "process", **SMALL}
    try:
        by_fitness = await start(
            {**common, "iterations": GENERATIONS}, None, ["eureka"], lambda entry: None
        )
        values = {**common, "fitness": "chosen"}
        led = await start(values, None, ["eureka"], lambda entry: None)
        person = ScriptedPerson(evaluator)
        led = await resume(led.folder, lambda entry: None, person=person)
        reached, chosen = await _scored(by_fitness, evaluator), await _scored(led, evaluator)
    finally:
        await evaluator.close()
    return {
        "environment": environment,
        "seed": seed,
        "by fitness": reached,
        "by choices": chosen,
        "share": chosen / reached,
        "choices": person.choices,
    }


def main() -> None:
    """All tasks and seeds."""
    rows = []
    for environment, task in TASKS.items():
        for seed in SEEDS:
            with tempfile.TemporaryDirectory(prefix="eureka-choices-") as folder:
                os.environ["EUREKA_RUNS"] = folder
                row = asyncio.run(compare(environment, task, seed, Path(folder) / "scores"))
            print(row, flush=True)
            rows.append(row)
    write_result("choices", {"rows": rows})


if __name__ == "__main__":
    main()
