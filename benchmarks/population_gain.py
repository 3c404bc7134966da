"""Speed gain of training 16 members in one process over 16 trainings one after the other: our own,
rsl-rl's, Stable-Baselines3's.

    python benchmarks/population_gain.py [--quick] [--ours] [TASK …]

All on the same simulator with the task's own settings and the same number of samples, one thread,
start-up left out. One run of the others is measured and counted 16 times. The four take turns, and
the median of each counts. Times are the processor's: what else runs on the machine does not count.
Needs the `trainers` extra, but for `--ours`, which leaves the others out and stores nothing.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

from _common import Subject, filled_trainer, start, subject
from _results import write_result
from _rivals import rsl_rl, stable_baselines3

MEMBERS = 16
NAMES = {
    "one_by_one": "K=1",
    "rsl_rl": "rsl-rl",
    "stable_baselines3": "Stable-Baselines3",
}


def ours(chosen: Subject, members: int, iterations: int) -> float:
    """Processor seconds of some iterations of our trainer."""
    trainer = filled_trainer(chosen, chosen.settings(env_steps=10**12), range(members))
    trainer.iterate()
    began = time.process_time()
    for _ in range(iterations):
        trainer.iterate()
    return time.process_time() - began


def measure(chosen: Subject, rounds: int, iterations: int, rivals: bool) -> dict[str, float]:
    """Median processor seconds of 16 members' iterations, each way."""
    settings = chosen.settings()
    ways: dict[str, Callable[[int], float]] = {
        "one_process": lambda seed: ours(chosen, MEMBERS, iterations),
        "one_by_one": lambda seed: MEMBERS * ours(chosen, 1, iterations),
    }
    of_others: dict[str, Callable[[int], float]] = {
        "rsl_rl": lambda seed: MEMBERS * rsl_rl(chosen, settings, seed, iterations)[0],
        "stable_baselines3": lambda seed: (
            MEMBERS * stable_baselines3(chosen, settings, seed, iterations)
        ),
    }
    if rivals:
        ways |= of_others
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(rounds):
        for name, way in ways.items():
            seconds[name].append(way(number))
    return {name: statistics.median(values) for name, values in seconds.items()}


def main() -> dict[str, dict[str, float]]:
    """Measure, print, store."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "tasks", nargs="*", default=["cartpole/balance", "hopper/run", "ant/run"], metavar="TASK"
    )
    parser.add_argument("--quick", action="store_true", help="one round of few iterations")
    parser.add_argument("--ours", action="store_true", help="without the other libraries")
    arguments = parser.parse_args()
    rounds, iterations = (1, 5) if arguments.quick else (3, 30)
    start()
    figures = {}
    for reference in arguments.tasks:
        chosen = subject(reference)
        seconds = measure(chosen, rounds, iterations, not arguments.ours)
        ratios = {
            name: value / seconds["one_process"]
            for name, value in seconds.items()
            if name != "one_process"
        }
        figures[chosen.name] = {
            **{f"{name}_s": value for name, value in seconds.items()},
            **{f"{name}_ratio": value for name, value in ratios.items()},
        }
        told = ", ".join(f"16 × {NAMES[name]} {ratio:.1f}" for name, ratio in ratios.items())
        print(
            f"{chosen.name:18} K=16 takes {seconds['one_process']:6.1f} s; times as long: {told}",
            flush=True,
        )
    if not (arguments.quick or arguments.ours):
        write_result(
            "population_gain", {"rounds": rounds, "iterations": iterations, "tasks": figures}
        )
    return figures


if __name__ == "__main__":
    main()
