"""A training's env steps a second against the raw physics of the same model on the same core, and
where the rest of its time goes.

    python benchmarks/training_speed.py [TASK …] [--quick] [--phases N …] [--num-envs N …]

Hopper and ant, K=16 members of N environments: as many as the task has, and 16 and 64. 64x64, one
thread, human reward. Targets: the training makes at least 60 % (hopper) and 70 % (ant) of the steps
a second that raw physics makes, and less than 5 % of its time goes anywhere but physics and
learning.

Raw physics is `batch.step` of as many rows with the same substeps and nothing else. What that costs
depends on what the robots do: one that lies or stands still has other contacts than one that runs,
and a fall ends in a reset. So each measured iteration is recorded (the controls, and the states
that rows are put into at resets) and run again at once in a second batch of the same model, where
only `batch.step` is timed. That batch must come to the same state bit for bit, or the benchmark
fails. The two take turns, an iteration each, and what recording takes is subtracted. The time
inside `batch.step` of the training itself is in the table too ("physics"); the replay is the
sterner measure, since no network drives the simulator's data out of the cache there.

Phases are iterations after which it is measured: the first ones have the most falls and resets,
later ones are what most of a training is like. The target counts as met where the lowest phase
meets it. "Resets" is the simulator's own part of them, "environment" all that is around the
simulator (actions, observations, variables, termination, recording the rollout), "saved states" the
time of one round of saving over its interval.
"""

from __future__ import annotations

import argparse
import math
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from _common import Subject, start, subject
from _recorded_batch import BarePhysics, watch
from _results import write_result

from eureka_agent.settings import SearchSettings, TrainingSettings
from eureka_agent.simulation.mujoco_task import MujocoTask
from eureka_agent.simulation.vec_task import VecTask
from eureka_agent.training.members import snapshot_bytes
from eureka_agent.training.trainer import Trainer

MEMBERS = 16
NUM_ENVS = (16, 64)
"""Numbers of environments beside the task's own."""
PHASES = (3, 20, 150)
MEASURED_STEPS = 160_000
"""Least number of env steps, of all members together, that are measured in every phase."""
LONGEST_STEPS = 4_000_000
"""A phase that comes later than this is left out."""


class Measured:
    """A training whose physics is watched."""

    def __init__(self, chosen: Subject, settings: TrainingSettings) -> None:
        self._made: list[VecTask] = []
        self.trainer = Trainer(self._make(chosen), chosen.task, settings, MEMBERS)
        for seed in range(MEMBERS):
            self.trainer.submit(str(seed), chosen.reward(), seed)
        environment = self._made[0]
        if not isinstance(environment, MujocoTask):
            raise SystemExit(
                f"error: {chosen.name} is not simulated by MuJoCo: it has no physics to take apart"
            )
        self.batch = watch(environment)
        self.bare = BarePhysics(environment)
        self.done = 0

    def _make(self, chosen: Subject) -> Any:
        def make(num_envs: int) -> VecTask:
            self._made.append(chosen.make(num_envs))
            return self._made[-1]

        return make

    def train_until(self, iterations: int) -> None:
        """Train on, unmeasured."""
        while self.done < iterations:
            self.trainer.iterate()
            self.done += 1

    def iteration(self) -> dict[str, float]:
        """Wall seconds of one iteration, of its parts, and of the same physics alone ("raw")."""
        start_state = self.batch.copied_state()
        timers, simulator = dict(self.trainer.timers), dict(self.batch.seconds)
        self.batch.record()
        began = time.perf_counter()
        self.trainer.iterate()
        wall = time.perf_counter() - began
        self.done += 1
        calls = self.batch.recorded()
        parts = {name: seconds - timers[name] for name, seconds in self.trainer.timers.items()}
        inside = {name: seconds - simulator[name] for name, seconds in self.batch.seconds.items()}
        raw = self.bare.replay(start_state, calls, self.batch.copied_state())
        known = {"update", "policy", "reward", "rest"}
        around = sum(seconds for name, seconds in parts.items() if name not in known)
        return {
            "wall": wall - inside["recording"],
            "raw": raw,
            "physics": inside["step"],
            "resets": inside["reset"],
            "environment": around - sum(inside.values()),
            **{name: parts[name] for name in sorted(known)},
        }

    def saving_share(self) -> float:
        """Part of the time that saving the states of all members takes."""
        with tempfile.TemporaryDirectory() as folder:
            began = time.perf_counter()
            for job in self.trainer.running():
                (Path(folder) / f"{job}.safetensors").write_bytes(
                    snapshot_bytes(self.trainer.snapshot(job))
                )
            return (time.perf_counter() - began) / SearchSettings().snapshot_interval


def measure(
    chosen: Subject, num_envs: int, phases: list[int], iterations: int
) -> list[dict[str, Any]]:
    """One line for every phase."""
    settings = chosen.settings(num_envs=num_envs, hidden_sizes=(64, 64))
    needed = (max(phases) + iterations + 1) * settings.horizon * num_envs
    settings = settings.model_copy(update={"env_steps": max(settings.env_steps, needed)})
    training = Measured(chosen, settings)
    lines = []
    for phase in phases:
        training.train_until(phase)
        found = [training.iteration() for _ in range(iterations)]
        total = {name: sum(each[name] for each in found) for name in found[0]}
        wall, steps = total.pop("wall"), iterations * MEMBERS * settings.horizon * num_envs
        shares = {name: seconds / wall for name, seconds in total.items() if name != "raw"}
        shares["saved states"] = training.saving_share()
        lines.append(
            {
                "num_envs": num_envs,
                "iteration": phase,
                "steps_per_second": steps / wall,
                "raw_steps_per_second": steps / total["raw"],
                "of_raw": total["raw"] / wall,
                "of_raw_median": statistics.median(each["raw"] / each["wall"] for each in found),
                "shares": shares,
                "outside": 1.0
                - shares["physics"]
                - shares["resets"]
                - shares["update"]
                + shares["saved states"],
            }
        )
    return lines


def show(name: str, lines: list[dict[str, Any]]) -> None:
    """Print a task's lines as a table."""
    parts = list(lines[0]["shares"])
    print(f"\n{name}: shares of the wall time")
    print(f"{'N':>3} {'iteration':>9} {'steps/s':>8} {'raw':>8} {'of raw':>7}", end="")
    print("".join(f" {part:>12}" for part in parts), f"{'outside':>8}")
    for line in lines:
        print(
            f"{line['num_envs']:3} {line['iteration']:9} {line['steps_per_second']:8,.0f}", end=""
        )
        print(f" {line['raw_steps_per_second']:8,.0f} {line['of_raw']:7.1%}", end="")
        print(
            "".join(f" {line['shares'][part]:12.1%}" for part in parts),
            f"{line['outside']:8.1%}",
            flush=True,
        )


def main() -> dict[str, list[dict[str, Any]]]:
    """Measure, print, store."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tasks", nargs="*", default=["hopper", "ant"], metavar="TASK")
    parser.add_argument(
        "--num-envs", type=int, nargs="+", metavar="N", help="default: the task's own, 16 and 64"
    )
    parser.add_argument(
        "--phases", type=int, nargs="+", default=list(PHASES), metavar="N", help="iterations"
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="two iterations early on, N=16 alone: shows only that it runs",
    )
    arguments = parser.parse_args()
    start()
    phases = [2] if arguments.quick else sorted(arguments.phases)
    figures: dict[str, list[dict[str, Any]]] = {}
    own: dict[str, int] = {}
    for reference in arguments.tasks:
        chosen = subject(reference)
        own[chosen.name] = chosen.task.training.num_envs
        sizes = (
            [16]
            if arguments.quick
            else sorted(set(arguments.num_envs or (*NUM_ENVS, own[chosen.name])))
        )
        lines = []
        for num_envs in sizes:
            steps = MEMBERS * num_envs * chosen.settings().horizon
            wanted = [phase for phase in phases if phase * steps <= LONGEST_STEPS] or phases[:1]
            lines += measure(
                chosen,
                num_envs,
                wanted,
                2 if arguments.quick else math.ceil(MEASURED_STEPS / steps),
            )
        figures[chosen.name] = lines
        show(chosen.name, lines)
    if not arguments.quick:
        write_result("training_speed", {"members": MEMBERS, "num_envs": own, "tasks": figures})
    return figures


if __name__ == "__main__":
    main()
