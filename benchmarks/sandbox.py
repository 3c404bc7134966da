"""Cost of the Docker wall: a dry run, a training against plain processes, and an idle worker.

    python benchmarks/sandbox.py [--quick] [--pairs N] [TASK]

Dry runs are of the task's human reward in a warm worker, one after the other, in both
walls. A training is that of a search, with saved states, one worker of four members on one core;
pairs of it, plain first and Docker first in turn, are compared by the time between its first and
its last sign of life. An idle worker has opened the task; what its container takes is read from the
engine, without what the kernel would give back (inactive files). Needs a Docker engine.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from _common import Subject, subject
from _pool import PoolRun, first_cores, human_source, pinned, train_in_pool
from _results import write_result

from eureka_agent.fleet.dry_runner import DryRunner
from eureka_agent.fleet.jobs import Problem
from eureka_agent.rewards import baseline
from eureka_agent.sandbox.choose import open_wall
from eureka_agent.sandbox.docker.engine import connect
from eureka_agent.sandbox.docker.leftovers import driver_of

DRY_RUN_TARGET_S, TRAINING_TARGET, IDLE_TARGET_BYTES = 0.050, 0.03, 400e6
DRY_RUNS = 50
MEMBERS = 4
ITERATIONS = 60


async def dry_runs(wall: str, chosen: Subject, count: int) -> tuple[float, list[float], int]:
    """Seconds until a worker had opened the task, those of each dry run, and the bytes that its
    container took before (0 for a process)."""
    environment, _, task = chosen.name.partition("/")
    source = human_source(chosen)
    with tempfile.TemporaryDirectory() as scratch:
        runner = DryRunner(open_wall(wall), Problem(environment, task), Path(scratch))
        try:
            began = time.perf_counter()
            await runner.start()
            opened = time.perf_counter() - began
            idle = _container_bytes() if wall == "docker" else 0
            await runner.dry_run(baseline(source))  # the first one records its states
            seconds = []
            for _ in range(count):
                began = time.perf_counter()
                findings = await runner.dry_run(baseline(source))
                seconds.append(time.perf_counter() - began)
                if any(finding.severity == "error" for finding in findings):
                    raise RuntimeError(f"the human reward was refused: {findings}")
        finally:
            await runner.close()
    return opened, seconds, idle


def _container_bytes() -> int:
    """Memory of the container of this process's only worker."""
    engine = connect()
    try:
        api = engine.client.api
        (container,) = [
            each for each in api.containers() if driver_of(each).get("pid") == str(os.getpid())
        ]
        memory = api.stats(container["Id"], stream=False)["memory_stats"]
        inactive = memory["stats"].get(
            "total_inactive_file", memory["stats"].get("inactive_file", 0)
        )
        return int(memory["usage"] - inactive)
    finally:
        engine.close()


def training_seconds(wall: str, chosen: Subject, iterations: int) -> float:
    """Seconds per env step between the first and last progress reports of trainings."""
    settings = chosen.settings()
    settings = settings.model_copy(
        update={"env_steps": iterations * settings.horizon * settings.num_envs}
    )
    run = PoolRun()
    train_in_pool(
        chosen, settings, [human_source(chosen)] * MEMBERS, 1, run=run, wall=open_wall(wall)
    )
    return 1.0 / run.steps_per_second()


def main() -> dict[str, Any]:
    """Measure, print, store."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("task", nargs="?", default="hopper", metavar="TASK")
    parser.add_argument("--pairs", type=int, default=7, metavar="N")
    parser.add_argument("--quick", action="store_true", help="one pair of a moment")
    arguments = parser.parse_args()
    chosen = subject(arguments.task)
    count = 5 if arguments.quick else DRY_RUNS
    opened, seconds, idle = asyncio.run(dry_runs("docker", chosen, count))
    plain_opened, plain_seconds, _ = asyncio.run(dry_runs("process", chosen, count))
    ratios = []
    with pinned(first_cores(1)):
        for pair in range(1 if arguments.quick else arguments.pairs):
            order = ("process", "docker") if pair % 2 == 0 else ("docker", "process")
            taken = {
                wall: training_seconds(wall, chosen, 4 if arguments.quick else ITERATIONS)
                for wall in order
            }
            ratios.append(taken["docker"] / taken["process"])
    figures = {
        "task": chosen.name,
        "opened_s": opened,
        "opened_process_s": plain_opened,
        "dry_run_s": statistics.median(seconds),
        "dry_run_process_s": statistics.median(plain_seconds),
        "training_ratios": sorted(ratios),
        "training_ratio": statistics.median(ratios),
        "idle_bytes": idle,
    }
    print(
        f"{chosen.name}: a worker is open after {opened:.1f} s ({plain_opened:.1f} s in a process);"
        f" a dry run takes {1e3 * figures['dry_run_s']:.0f} ms"
        f" ({1e3 * figures['dry_run_process_s']:.0f} ms)   (target: under"
        f" {1e3 * DRY_RUN_TARGET_S:g})"
    )
    print(
        f"a training takes {figures['training_ratio']:.3f} of its time in a process"
        f" ({min(ratios):.3f} to {max(ratios):.3f})   (target: within {TRAINING_TARGET:.0%})"
    )
    print(f"an idle worker takes {idle / 1e6:.0f} MB   (target: under {IDLE_TARGET_BYTES / 1e6:g})")
    if not arguments.quick:
        write_result("sandbox", figures)
    return figures


if __name__ == "__main__":
    main()
