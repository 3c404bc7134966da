"""Estimated against real wall time of whole searches, and the time that estimates take.

    python benchmarks/plan_accuracy.py [--quick] [--rounds N] [--iterations N] [--samples N]
        [--env-steps N] [TASK …]

Each round has a runs folder of its own: an estimate measures the pace of the task's trainings, then
the same search runs (offline designer, baselines, finals and video included). Target: estimates
within 30 % of the real time. Beside it: the time of the first estimate, with its measurement, and
that of each of a hundred further ones that differ in seed and samples. Target: 2 s for a hundred.

Other programs at work slow the measurement or the search, and the ratio then tells little: beside
it stands the part of the cores' time that they took during the estimate and during the search.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from _results import write_result
from _searches import Watch, own_runs_folder

from eureka_agent.search.estimator import Estimator
from eureka_agent.search.session import start

TASKS = ("cartpole", "quadcopter", "hopper")
FURTHER = 100


async def estimate(values: dict[str, Any]) -> dict[str, float]:
    """An estimate that measures, and a hundred that need not."""
    async with Estimator() as estimator:
        began = time.perf_counter()
        found = (await estimator.plan(values)).estimate
        first = time.perf_counter()
        for seed in range(FURTHER):
            await estimator.plan({**values, "seed": seed, "samples": values["samples"] + seed % 4})
        further = time.perf_counter() - first
    assert found.seconds is not None
    return {
        "estimated_s": found.seconds,
        "trainings": found.trainings,
        "first_s": first - began,
        "hundred_s": further,
    }


def _others_seconds() -> float:
    """Processor time of everything on this machine but this process and its ended children, with
    what the machine's host took away."""
    fields = Path("/proc/stat").read_text().splitlines()[0].split()[1:9]
    user, nice, system, _, _, irq, softirq, steal = (int(each) for each in fields)
    busy = (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return busy - sum(each.ru_utime + each.ru_stime for each in used)


@contextmanager
def others() -> Iterator[list[float]]:
    """The part of the cores' time that others took in the block, as the list's only item."""
    found: list[float] = []
    began, before = time.perf_counter(), _others_seconds()
    yield found
    seconds = (time.perf_counter() - began) * (os.cpu_count() or 1)
    found.append((_others_seconds() - before) / seconds)


def measure(values: dict[str, Any]) -> dict[str, float]:
    """One round: the estimate, then the search."""
    with own_runs_folder():
        with others() as beside_estimate:
            estimated = asyncio.run(estimate(values))
        with others() as beside_search:
            watch = Watch()
            run = asyncio.run(start(values, None, ["eureka", "search"], watch))
            seconds = watch.seconds()
        trained = len(run.archive.trainings()) + sum(
            1 + len(attempt.repeats) for attempt in run.archive.attempts()
        )
    return {
        **estimated,
        "seconds": seconds,
        "trained": trained,
        "ratio": estimated["estimated_s"] / seconds,
        "others_beside_estimate": beside_estimate[0],
        "others_beside_search": beside_search[0],
    }


def main() -> dict[str, Any]:
    """Measure, print, store."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tasks", nargs="*", default=TASKS, metavar="TASK")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--iterations", type=int, default=2)
    parser.add_argument("--samples", type=int, default=8)
    parser.add_argument("--env-steps", type=int, help="of a training (default: the task's)")
    parser.add_argument("--quick", action="store_true", help="short trainings: shows that it runs")
    arguments = parser.parse_args()
    figures: dict[str, Any] = {}
    for task in arguments.tasks:
        values = {"env": task, "iterations": arguments.iterations, "samples": arguments.samples}
        if arguments.quick or arguments.env_steps:
            values["env_steps"] = 8192 if arguments.quick else arguments.env_steps
        rounds = []
        for _ in range(1 if arguments.quick else arguments.rounds):
            each = measure(values)
            rounds.append(each)
            print(
                f"{task:<12} estimated {each['estimated_s']:6.1f} s, took {each['seconds']:6.1f} s:"
                f" {each['ratio']:.2f}   (others took {each['others_beside_estimate']:.0%} and"
                f" {each['others_beside_search']:.0%}; first estimate"
                f" {each['first_s']:.1f} s, a hundred more {each['hundred_s']:.2f} s)"
            )
        ratio = statistics.median(each["ratio"] for each in rounds)
        figures[task] = {"ratio": ratio, "rounds": rounds}
    if not arguments.quick:
        sizes = {name: getattr(arguments, name) for name in ("iterations", "samples", "env_steps")}
        write_result("plan_accuracy", {**sizes, "tasks": figures})
    return figures


if __name__ == "__main__":
    main()
