"""Env steps a second of each MuJoCo environment against a bare `mujoco.batch` loop of its model.

    python benchmarks/environment_speed.py [TASK …] [--rows N]

A whole step is timed: actions, physics, observations, variables, termination and resets, with
random actions from seed 0. Its physics are recorded and run again at once in a second batch of the
same model, where `batch.step` alone is timed; both must come to the same state bit for bit. Wall
times on one thread, less what recording takes. Target: at least 1/1.5 of the bare loop's steps.
"""

from __future__ import annotations

import argparse
import time

import torch
from _common import start, subject
from _recorded_batch import BarePhysics, watch
from _results import write_result

from eureka_agent.simulation.catalogue import list_environments
from eureka_agent.simulation.loading import load_environment
from eureka_agent.simulation.mujoco_task import MujocoTask
from eureka_agent.simulation.rollouts import actions_for

ROWS = 512
"""Rows of 16 trainings with 32 environments each."""
STEPS = 60
WARM_UP = 20
TARGET = 1.0 / 1.5


def measure(reference: str, rows: int) -> dict[str, float]:
    """Env steps a second of one task and of its bare physics."""
    chosen = subject(reference)
    environment = chosen.make(rows)
    assert isinstance(environment, MujocoTask)
    batch, bare = watch(environment), BarePhysics(environment)
    actions = list(actions_for(environment, WARM_UP + STEPS, seed=0))
    with torch.inference_mode():
        for each in actions[:WARM_UP]:
            environment.advance(each)
            environment.reset_done()
        first = batch.copied_state()
        recording = batch.seconds["recording"]
        batch.record()
        began = time.perf_counter()
        for each in actions[WARM_UP:]:
            environment.advance(each)
            environment.reset_done()
        seconds = time.perf_counter() - began - (batch.seconds["recording"] - recording)
        raw = bare.replay(first, batch.recorded(), batch.copied_state())
    steps = rows * STEPS
    return {
        "steps_per_second": steps / seconds,
        "raw_steps_per_second": steps / raw,
        "of_raw": raw / seconds,
    }


def mujoco_tasks() -> list[str]:
    """The first task of each MuJoCo environment."""
    return [
        f"{entry.name}/{next(iter(entry.tasks))}"
        for entry in list_environments()
        if issubclass(load_environment(entry.name).environment_class, MujocoTask)
    ]


def main() -> dict[str, dict[str, float]]:
    """Measure, print, store."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tasks", nargs="*", metavar="TASK")
    parser.add_argument("--rows", type=int, default=ROWS)
    arguments = parser.parse_args()
    start()
    figures = {}
    for reference in arguments.tasks or mujoco_tasks():
        found = figures[reference] = measure(reference, arguments.rows)
        print(
            f"{reference:24} {found['steps_per_second']:8,.0f} env steps/s,"
            f" {found['of_raw']:.0%} of the bare loop (target: {TARGET:.0%})",
            flush=True,
        )
    if not arguments.tasks:
        write_result("environment_speed", {"rows": arguments.rows, "tasks": figures})
    return figures


if __name__ == "__main__":
    main()
