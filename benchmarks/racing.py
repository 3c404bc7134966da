"""What racing saves and what it loses: generations of the offline designer trained to the end, then raced on paper.

    python benchmarks/racing.py [TASK …] [--proposals N] [--draws N] [--seed S]

Each task's first proposals are trained once to the end of its budget (about 2 minutes a task on one core, ant 12). Generations of eight are then drawn from
them at random, and each is raced over the recorded curves: how often the generation's best by final fitness would have been stopped, how much
fitness that costs, and what part of the samples is saved.
"""

from __future__ import annotations

import argparse
import random
import statistics

import torch
from _common import write_result
from offline_designer import Bench, generation

from eureka_agent.designer.offline.designer import OfflineDesigner
from eureka_agent.records import Attempt, CheckpointRecord
from eureka_agent.search.racing import MARGIN, Rungs, behind
from eureka_agent.settings import SearchSettings, TrainingSettings
from eureka_agent.simulation.catalogue import list_environments
from eureka_agent.simulation.loading import describe, load_environment
from eureka_agent.training.allocator import keep_freed_memory

GENERATION = 8


def trained(reference: str, proposals: int, seed: int) -> tuple[list[Attempt], TrainingSettings]:
    """First proposals of the offline designer, trained to the end of the task's budget."""
    environment_name, _, task_name = reference.partition("/")
    environment = load_environment(environment_name)
    _, task = environment.task(task_name or None)
    budget = {"env_steps": task.training.env_steps, "num_envs": task.training.num_envs}
    settings = TrainingSettings.model_validate({**budget, **task.training.overrides})
    bench = Bench(environment, task, describe(environment, task_name or None), settings)
    return generation(bench, OfflineDesigner(), 0, proposals, seed, []), settings


def raced(attempts: list[Attempt], rungs: Rungs) -> tuple[bool, float, float]:
    """One generation: whether its best was stopped, the fitness that this costs, and the part of the samples saved."""
    left = dict(enumerate(attempts))
    steps = 0
    for rung in range(len(rungs.places)):
        values = {place: rungs.fitness(rung, _checkpoints(attempt)) for place, attempt in left.items()}
        stopped = behind(values, margin=MARGIN * (rung + 1))
        steps += len(stopped) * rungs.env_steps[rung]
        left = {place: attempt for place, attempt in left.items() if place not in stopped}
    whole = max(_checkpoints(attempt)[-1].env_steps for attempt in attempts)
    best = max(attempts, key=_fitness)
    kept = max(left.values(), key=_fitness)
    return (
        kept is not best,
        _fitness(best) - _fitness(kept),
        1.0 - (steps + len(left) * whole) / (len(attempts) * whole),
    )


def _checkpoints(attempt: Attempt) -> tuple[CheckpointRecord, ...]:
    assert attempt.outcome is not None
    return attempt.outcome.checkpoints


def _fitness(attempt: Attempt) -> float:
    assert attempt.fitness is not None
    return attempt.fitness


def main() -> None:
    """Train, race, print, store."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", metavar="TASK")
    parser.add_argument("--proposals", type=int, default=24, help="rewards trained for each task")
    parser.add_argument("--draws", type=int, default=2000, help="generations drawn from them")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    keep_freed_memory()
    known = [f"{entry.name}/{task}" for entry in list_environments() for task in load_environment(entry.name).tasks]
    figures = {}
    for reference in arguments.tasks or known:
        attempts, settings = trained(reference, arguments.proposals, arguments.seed)
        generator = random.Random(arguments.seed)
        rungs = Rungs(settings, SearchSettings().rungs)
        results = [raced(generator.sample(attempts, GENERATION), rungs) for _ in range(arguments.draws)]
        lost, cost, saved = (statistics.fmean(values) for values in zip(*results, strict=True))
        scores = [_fitness(attempt) for attempt in attempts]
        figures[reference] = {
            "proposals": len(attempts),
            "winner_stopped": lost,
            "fitness_lost": cost,
            "samples_saved": saved,
            "fitness_mean": statistics.fmean(scores),
            "fitness_deviation": statistics.stdev(scores),
        }
        print(
            f"{reference}: best of {GENERATION} stopped in {lost:.1%} of {arguments.draws} generations, which costs {cost:.3g} of fitness on "
            f"average (all: {statistics.fmean(scores):.4g} ± {statistics.stdev(scores):.3g}); {saved:.0%} of the samples saved",
            flush=True,
        )
    write_result("racing", {"tasks": figures})


if __name__ == "__main__":
    main()
