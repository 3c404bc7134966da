"""The training pool on two cores against one: wall time of 16 hopper candidates at equal samples,
start-up apart and included.

    python benchmarks/two_cores.py [--quick] [--env-steps N] [--rounds N] [TASK]

One core: one worker of 16 slots, the driver and all that it starts pinned to the same core. Two
cores: two workers of 8 slots on two. The arms take turns, first one, then the other way round; what
counts is the median of the rounds' ratios. Target: 1.7 times as fast.

No program gets more than the machine has. Two cores of a shared machine, or two threads of one
core, do not give twice of one. So each round also runs raw physics alone: one process on one core,
and two at once on two, each stepping its own batch. Their steps a second together, over those of
one alone, are the machine's own ratio, printed as "ceiling".
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import time
from typing import Any

import torch
from _common import start, subject
from _pool import PoolRun, first_cores, human_source, pinned, train_in_pool
from _recorded_batch import batch_of
from _results import write_result

from eureka_agent.simulation.mujoco_task import MujocoTask

CANDIDATES = 16
ROWS = 256


def train(reference: str, env_steps: int, workers: int) -> PoolRun:
    """Sixteen candidates on as many cores as workers."""
    chosen = subject(reference)
    with pinned(first_cores(workers)):
        return train_in_pool(
            chosen,
            chosen.settings(env_steps=env_steps),
            [human_source(chosen)] * CANDIDATES,
            workers,
        )


def step_alone(reference: str, core: int, seconds: float, ready: Any, rates: Any) -> None:
    """Step a batch under noise for some seconds, in its own process, and report the env steps a
    second."""
    with pinned([core]):
        torch.set_num_threads(1)
        environment = subject(reference).make(ROWS)
        assert isinstance(environment, MujocoTask)
        environment.reset()
        noise = torch.Generator().manual_seed(0)
        for _ in range(50):
            environment.step(torch.randn(ROWS, environment.num_actions, generator=noise))
        batch = batch_of(environment)
        ready.wait()
        began, calls = time.perf_counter(), 0
        while time.perf_counter() - began < seconds:
            batch.step(nstep=environment.frame_skip)
            calls += 1
        rates.put(calls * ROWS / (time.perf_counter() - began))


def physics_alone(reference: str, cores: list[int], seconds: float) -> float:
    """Env steps a second of raw physics: the total of a process on each of the cores."""
    context = multiprocessing.get_context("spawn")
    ready, rates = context.Barrier(len(cores)), context.Queue()
    processes = [
        context.Process(
            target=step_alone, args=(reference, core, seconds, ready, rates), daemon=True
        )
        for core in cores
    ]
    for process in processes:
        process.start()
    total = sum(rates.get(timeout=60.0 + seconds) for _ in processes)
    for process in processes:
        process.join()
    return total


def measure(
    reference: str, env_steps: int, physics_seconds: float, one_first: bool
) -> dict[str, float]:
    """Ratios of one round."""
    cores = first_cores(2)
    runs = {
        workers: train(reference, env_steps, workers)
        for workers in ((1, 2) if one_first else (2, 1))
    }
    alone = {
        count: physics_alone(reference, cores[:count], physics_seconds)
        for count in ((1, 2) if one_first else (2, 1))
    }
    return {
        "one_s": runs[1].seconds,
        "two_s": runs[2].seconds,
        "one_startup_s": runs[1].startup_seconds(),
        "two_startup_s": runs[2].startup_seconds(),
        "ratio": runs[1].seconds / runs[2].seconds,
        "ratio_without_startup": runs[2].steps_per_second() / runs[1].steps_per_second(),
        "ceiling": alone[2] / alone[1],
    }


def main() -> dict[str, Any]:
    """Measure, print, store."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("task", nargs="?", default="hopper", metavar="TASK")
    parser.add_argument(
        "--env-steps", type=int, help="samples of one candidate (default: the task's budget)"
    )
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument(
        "--quick", action="store_true", help="one round of 8,192 steps: shows only that it runs"
    )
    arguments = parser.parse_args()
    start()
    budget = arguments.env_steps or subject(arguments.task).task.training.env_steps
    rounds, env_steps, physics_seconds = (
        (1, 8192, 1.0) if arguments.quick else (arguments.rounds, budget, 5.0)
    )
    found = [
        measure(arguments.task, env_steps, physics_seconds, number % 2 == 0)
        for number in range(rounds)
    ]
    figures = {name: statistics.median(each[name] for each in found) for name in found[0]}
    print(f"{subject(arguments.task).name}: {CANDIDATES} candidates of {env_steps:,} steps")
    for count, name in ((1, "one"), (2, "two")):
        seconds, startup = figures[f"{name}_s"], figures[f"{name}_startup_s"]
        print(
            f"{count} worker{'s' if count > 1 else ''} {seconds:8.1f} s, of which start-up"
            f" {startup:.1f} s"
        )
    print(
        f"two cores are {figures['ratio']:.2f} times as fast,"
        f" {figures['ratio_without_startup']:.2f} without start-up;",
        end="",
    )
    print(f" raw physics alone: {figures['ceiling']:.2f}   (target: 1.7)")
    if not arguments.quick:
        write_result(
            "two_cores",
            {
                "task": subject(arguments.task).name,
                "env_steps": env_steps,
                "rounds": rounds,
                **figures,
            },
        )
    return figures


if __name__ == "__main__":
    main()
