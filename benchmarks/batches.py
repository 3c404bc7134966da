"""Searches in a batch against as many commands one after the other, and the batch's own costs.

    python benchmarks/batches.py [--quick] [--searches N]

Cartpole searches that differ in seed, offline, each way with a runs folder of its own, so that both
train the baselines once. Target: a batch takes at most 0.7 of the commands' time. Beside it:

- the share of its wall time in which the process of a batch worked for more than a command's does
  for its search (target: under 1 %),
- the time to write the summaries of 50 runs (target: 5 s),
- the time of `batch --plan` with 100 searches whose tasks are measured (target: 2 s).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from _results import write_result

from eureka_agent.archive.run_folder import RUNS_VARIABLE
from eureka_agent.batch.folder import plan_searches, searches_of
from eureka_agent.batch.intents import IntentsFile
from eureka_agent.batch.matrix import PlannedSearch
from eureka_agent.batch.summary import Summary

SIZES = {
    "env": "cartpole",
    "iterations": 2,
    "samples": 4,
    "finalists": 1,
    "final_seeds": 3,
    "video": False,
}
SHORT = {"env_steps": 8192, "evaluation_episodes": 2, "scoring_episodes": 2}
RUNS = 50
PLANNED = 100


def command(folder: Path, *arguments: str) -> tuple[float, float]:
    """Run the command in a folder. Returns seconds, and the processor seconds of its own process.

    A worker's processor time belongs to the worker that started it, until that one is waited for:
    so the driver's own time is that of its process while it still runs, as it stands in `/proc`.
    """
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "eureka_agent.cli.main", *arguments],
        cwd=folder,
        env={**os.environ, RUNS_VARIABLE: str(folder / "runs")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert process.stdout is not None
    output = process.stdout.read()  # until it ends; it is not waited for yet
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    own = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    if process.wait():
        raise SystemExit(output.decode())
    return time.perf_counter() - began, own


def in_commands(folder: Path, sizes: dict[str, Any], searches: int) -> dict[str, float]:
    """As many `eureka search`, one after the other."""
    words = []
    for name, value in sizes.items():
        flag = name.replace("_", "-")
        words += [f"--no-{flag}"] if value is False else [f"--{flag}", str(value)]
    taken = [command(folder, "search", *words, "--seed", str(seed)) for seed in range(searches)]
    return {"seconds": sum(each for each, _ in taken), "driver_s": sum(own for _, own in taken)}


def in_a_batch(folder: Path, sizes: dict[str, Any], searches: int) -> dict[str, float]:
    """The same in one batch."""
    file = {"defaults": sizes, "matrix": {"seed": list(range(searches))}}
    (folder / "speed.yaml").write_text(json.dumps(file))
    seconds, own = command(folder, "batch", "speed.yaml")
    return {"seconds": seconds, "driver_s": own}


def summaries(batch: Path, folder: Path) -> float:
    """Seconds to write the summaries of 50 copies of a batch's first run."""
    source = next(path.parent for path in sorted(batch.glob("*/archive.sqlite")))
    names = [f"search{number}" for number in range(RUNS)]
    for name in names:
        shutil.copytree(source, folder / name)
    intents = IntentsFile(folder, make=True)
    plan_searches(intents, [PlannedSearch(name, {}, {}) for name in names])
    began = time.perf_counter()
    Summary(folder).write(searches_of(intents), "Finished")
    return time.perf_counter() - began


def plans(folder: Path, sizes: dict[str, Any]) -> float:
    """Seconds of `--plan` for 100 searches of a task that is measured."""
    half = list(range(PLANNED // 2))
    matrix = {"strategy": ["greedy", "best-of-n"], "seed": half}
    (folder / "hundred.yaml").write_text(json.dumps({"defaults": sizes, "matrix": matrix}))
    command(folder, "batch", "hundred.yaml", "--plan")
    return command(folder, "batch", "hundred.yaml", "--plan")[0]


def main() -> dict[str, Any]:
    """Measure, print, store."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--searches", type=int, default=8)
    parser.add_argument("--quick", action="store_true", help="short trainings: shows that it runs")
    arguments = parser.parse_args()
    searches = 2 if arguments.quick else arguments.searches
    sizes = {**SIZES, **(SHORT if arguments.quick else {})}
    with tempfile.TemporaryDirectory() as temporary:
        folders = {name: Path(temporary, name) for name in ("commands", "batch", "copies")}
        for folder in folders.values():
            folder.mkdir()
        batch = in_a_batch(folders["batch"], sizes, searches)
        commands = in_commands(folders["commands"], sizes, searches)
        summary_s = summaries(folders["batch"] / "runs" / "speed", folders["copies"])
        plan_s = plans(folders["batch"], sizes)
    ratio = batch["seconds"] / commands["seconds"]
    overhead = (batch["driver_s"] - commands["driver_s"]) / batch["seconds"]
    print(
        f"{searches} searches: {batch['seconds']:.1f} s in a batch, {commands['seconds']:.1f} s in"
        f" commands one after the other: {ratio:.2f} (at most 0.7)\n"
        f"the batch's process worked {batch['driver_s']:.1f} s, the commands' own"
        f" {commands['driver_s']:.1f} s: {overhead:+.1%} of the batch's time (under 1 %)\n"
        f"summaries of {RUNS} runs: {summary_s:.2f} s (under 5)\n"
        f"--plan of {PLANNED} searches: {plan_s:.2f} s (under 2)"
    )
    figures = {
        "searches": searches,
        "settings": sizes,
        "batch": batch,
        "commands": commands,
        "ratio": ratio,
        "overhead": overhead,
        "summary_s": summary_s,
        "plan_s": plan_s,
    }
    if not arguments.quick:
        write_result("batches", figures)
    return figures


if __name__ == "__main__":
    main()
