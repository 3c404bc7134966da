"""Candidates an hour on two cores at equal samples per candidate: our training pool against a
process per candidate with Stable-Baselines3.

    python benchmarks/candidates_per_hour.py [--quick] [--env-steps N] [--candidates N] [--vector
    sync|dummy] [TASK …]

Ours: the pool that a search trains in, two workers behind the process wall, 16 candidates with the
human reward, saved states and messages included. Theirs, as Eureka-like tools do it: a Python
process per candidate, two at a time, each with a Gymnasium vector environment of as many robots as
ours has per candidate and Stable-Baselines3's PPO with our networks, horizon, epochs and
minibatches and one thread. Two arms of it:

- `gymnasium`: Gymnasium's own Hopper-v5 and Ant-v5 with the reward that is built in, which is what
  people have today. Its physics costs more than ours (RK4, smaller steps), and that is part of the
  difference.
- `same physics`: our MJCF stepped by plain `mj_step` in numpy, with our observation, termination
  and human reward. Only the way of training differs.

Theirs writes no curves, evaluates nothing and compiles no reward, all of which would slow it down.
The arms take turns. Few of their candidates are trained (each does the same work), and all
candidates have fewer steps than a search's, so start-up weighs more than in a search. Both are
printed: the rate as measured, start-up included, and the rate at the task's budget, (start-up
seconds + budget / steps a second) of the same runs. Targets, at the task's budget against
`gymnasium`: hopper 10 times, ant 6 times. Needs the `bench` extra.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from _common import Subject, start, subject
from _pool import first_cores, human_source, pinned, train_in_pool
from _results import write_result

CORES = 2
OUR_CANDIDATES = 16
SCRIPT = Path(__file__).resolve().parent / "_candidate.py"


@dataclass(frozen=True)
class Timed:
    """One arm's candidates: wall seconds, the part that is start-up, and the speed of the rest."""

    seconds: float
    startup_s: float
    """Once for the whole arm (ours), or for each round of `side_by_side` candidates (theirs)."""
    steps_per_second: float
    """Total speed of all candidates that train side by side."""
    candidates: int
    side_by_side: int

    def per_hour(self) -> float:
        """Candidates an hour as measured."""
        return 3600.0 * self.candidates / self.seconds

    def per_hour_at(self, env_steps: int) -> float:
        """Candidates an hour at so many samples each."""
        return (
            3600.0
            * self.side_by_side
            / (self.startup_s + self.side_by_side * env_steps / self.steps_per_second)
        )


def ours(chosen: Subject, env_steps: int) -> Timed:
    """Sixteen candidates in the training pool."""
    run = train_in_pool(
        chosen,
        chosen.settings(env_steps=env_steps),
        [human_source(chosen)] * OUR_CANDIDATES,
        workers=CORES,
    )
    return Timed(
        run.seconds, run.startup_seconds(), run.steps_per_second(), OUR_CANDIDATES, OUR_CANDIDATES
    )


def theirs(chosen: Subject, kind: str, env_steps: int, candidates: int, vector: str) -> Timed:
    """A process per candidate, two at a time."""
    settings = chosen.settings(env_steps=env_steps)
    given = {**settings.model_dump(mode="json"), "vector": vector}
    robot = chosen.name.partition("/")[0]
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    startups, rates = [], []
    began = time.perf_counter()
    for first in range(0, candidates, CORES):
        round_began = time.perf_counter()
        processes = [
            subprocess.Popen(
                [
                    sys.executable,
                    str(SCRIPT),
                    kind,
                    robot,
                    str(env_steps),
                    str(seed),
                    json.dumps(given),
                ],
                env=environment,
                stdout=subprocess.PIPE,
                text=True,
            )
            for seed in range(first, min(first + CORES, candidates))
        ]
        printed = [process.communicate()[0] for process in processes]
        if any(process.returncode != 0 for process in processes):
            raise SystemExit(
                "error: a candidate of theirs failed, see above; has setup.sh been run with"
                " `bench`?"
            )
        found = [json.loads(text.splitlines()[-1]) for text in printed]
        round_s = time.perf_counter() - round_began
        startups.append(round_s - statistics.fmean(each["learn_s"] for each in found))
        rates.append(sum(each["env_steps"] / each["learn_s"] for each in found))
    seconds = time.perf_counter() - began
    return Timed(seconds, statistics.fmean(startups), statistics.fmean(rates), candidates, CORES)


def measure(
    chosen: Subject, env_steps: int, candidates: int, vector: str, rounds: int
) -> dict[str, Any]:
    """Median rates of the three arms, and the ratios of ours to theirs."""
    arms: dict[str, Callable[[], Timed]] = {
        "ours": lambda: ours(chosen, env_steps),
        "gymnasium": lambda: theirs(chosen, "gymnasium", env_steps, candidates, vector),
        "same_physics": lambda: theirs(chosen, "plain", env_steps, candidates, vector),
    }
    timed: dict[str, list[Timed]] = {name: [] for name in arms}
    for _ in range(rounds):
        for name, arm in arms.items():
            timed[name].append(arm())
    budget = chosen.task.training.env_steps
    found: dict[str, Any] = {"env_steps": env_steps, "budget": budget}
    for name, runs in timed.items():
        found[name] = {
            "candidates": runs[0].candidates,
            "candidates_per_hour": statistics.median(run.per_hour() for run in runs),
            "candidates_per_hour_at_budget": statistics.median(
                run.per_hour_at(budget) for run in runs
            ),
            "startup_s": statistics.median(run.startup_s for run in runs),
            "steps_per_second": statistics.median(run.steps_per_second for run in runs),
        }
    for name in ("gymnasium", "same_physics"):
        for rate, ratio in (
            ("candidates_per_hour", "ratio"),
            ("candidates_per_hour_at_budget", "ratio_at_budget"),
        ):
            found[name][ratio] = found["ours"][rate] / found[name][rate]
    return found


def show(name: str, found: dict[str, Any]) -> None:
    """Print a task's three arms."""
    print(
        f"\n{name}: candidates an hour at {found['env_steps']:,} steps each, and at the budget of"
        f" {found['budget']:,}"
    )
    print(
        f"{'':14} {'start-up':>9} {'steps/s':>8} {'measured':>9} {'times':>6} {'at budget':>10}"
        f" {'times':>6}"
    )
    for arm in ("ours", "gymnasium", "same_physics"):
        line = found[arm]
        print(
            f"{arm.replace('_', ' '):14} {line['startup_s']:7.1f} s"
            f" {line['steps_per_second']:8,.0f}",
            end="",
        )
        for rate, ratio in (
            ("candidates_per_hour", "ratio"),
            ("candidates_per_hour_at_budget", "ratio_at_budget"),
        ):
            times = f"{line[ratio]:.1f}" if ratio in line else ""
            print(f" {line[rate]:9,.0f} {times:>6}", end=" ")
        print(f"  ({line['candidates']} candidates)", flush=True)


def main() -> dict[str, Any]:
    """Measure, print, store."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "tasks", nargs="*", default=["hopper", "ant"], metavar="TASK", help="hopper, ant"
    )
    parser.add_argument("--env-steps", type=int, default=40_960, help="samples of one candidate")
    parser.add_argument("--candidates", type=int, default=2, help="of theirs, a round")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument(
        "--vector", choices=("sync", "dummy"), default="sync", help="Gymnasium's or SB3's own"
    )
    parser.add_argument(
        "--quick", action="store_true", help="one round of 4,096 steps: shows only that it runs"
    )
    arguments = parser.parse_args()
    start()
    rounds, env_steps = (1, 4096) if arguments.quick else (arguments.rounds, arguments.env_steps)
    figures = {}
    with pinned(first_cores(CORES)):
        for reference in arguments.tasks:
            if reference.partition("/")[0] not in ("hopper", "ant"):
                raise SystemExit(
                    f"error: {reference!r} has no Gymnasium counterpart here; there are hopper"
                    " and ant"
                )
            chosen = subject(reference)
            found = measure(chosen, env_steps, arguments.candidates, arguments.vector, rounds)
            figures[chosen.name] = found
            show(chosen.name, found)
    if not arguments.quick:
        write_result(
            "candidates_per_hour", {"vector": arguments.vector, "rounds": rounds, "tasks": figures}
        )
    return figures


if __name__ == "__main__":
    main()
