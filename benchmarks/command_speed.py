"""Cost of a command environment: a search against the same trainings started by a shell loop, and
the protocol's part of a training.

    python benchmarks/command_speed.py [--quick] [--samples N] [--env-steps N]

The command is the template's, Stable-Baselines3 on Gymnasium's pendulum, two trainings at a time.
The loop starts the same script on the search's own rewards and seeds, and does nothing else; the
search also describes the environment, checks the rewards and scores the policies. Target: at most
1.05. The protocol's part is the time in which a training writes events, policies and states, and
looks for requests. Target: under 1 %. Needs the `trainers` extra.
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
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from _results import write_result
from _searches import Watch, search

from eureka_agent.archive.run_folder import Run

ROOT = Path(__file__).resolve().parent.parent
AT_ONCE = 2
PROTOCOL = """
import sys, time
from eureka_adapter import job, training
spent, depth = 0.0, 0
def timed(cls, name):
    own = getattr(cls, name)
    def call(*arguments, **named):
        global spent, depth
        began, depth = time.perf_counter(), depth + 1
        try:
            return own(*arguments, **named)
        finally:
            depth -= 1
            spent += 0.0 if depth else time.perf_counter() - began  # one calls the other
    setattr(cls, name, call)
timed(job.Job, "event")
timed(training.Training, "keep")
timed(training.Training, "_written")
began = time.perf_counter()
exec(compile(open("train.py").read(), "train.py", "exec"))
print(spent / (time.perf_counter() - began))
"""
"""The script with its calls of the protocol timed. A training's end is counted with them."""


def template(folder: Path) -> Path:
    """The template's environment, run by this Python."""
    shutil.copytree(ROOT / "envs" / "_templates" / "command", folder)
    path = folder / "command.yaml"
    told = yaml.safe_load(path.read_text())
    variables = {"PYTHONPATH": str(ROOT / "adapters")}
    told |= {"interpreter": sys.executable, "slots": AT_ONCE, "variables": variables}
    told["readable"] = [str(ROOT / "adapters")]
    path.write_text(yaml.safe_dump(told))
    return folder


def job_folder(folder: Path, environment: Path, reward: str, seed: int, env_steps: int) -> Path:
    """A training's job, as a search would write it."""
    (folder / "requests").mkdir(parents=True)
    (folder / "reward.py").write_text(reward)
    shutil.copy(environment / "fitness" / "swing_up.py", folder / "fitness.py")
    helpers = ROOT / "eureka_agent" / "training" / "reward_helpers.py"
    shutil.copy(helpers, folder / "reward_helpers.py")
    entry = {"id": "0", "reward": "reward.py", "seed": seed, "state": None, "rungs": []}
    job = {"protocol": 1, "mode": "train", "task": "swing_up", "options": {}, "device": "cpu"}
    job |= {"num_envs": 8, "fitness": {"file": "fitness.py", "reduction": "mean"}}
    job |= {"env_steps": env_steps, "save_every_s": 60, "trainings": [entry]}
    (folder / "job.json").write_text(json.dumps(job))
    return folder


def run(program: list[str], environment: Path, folder: Path) -> str:
    """Start the script on a job, as one line of a shell loop."""
    variables = {"PYTHONPATH": str(ROOT / "adapters"), "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, *program, folder],
        cwd=environment,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def main() -> None:
    """Measure, print, store."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="two short trainings")
    parser.add_argument("--samples", type=int, default=8)
    parser.add_argument("--env-steps", type=int, default=100_000)
    arguments = parser.parse_args()
    samples, env_steps = (2, 8192) if arguments.quick else (arguments.samples, arguments.env_steps)
    with tempfile.TemporaryDirectory() as scratch:
        environment = template(Path(scratch, "pendulum"))
        figures = measure(environment, Path(scratch), samples, env_steps)
    for name, figure in figures.items():
        print(f"{name:20} {figure:.3f}")
    if not arguments.quick:
        write_result("command_speed", {"samples": samples, "env_steps": env_steps, **figures})


def measure(environment: Path, scratch: Path, samples: int, env_steps: int) -> dict[str, float]:
    """Seconds of the search and of the loop, and the protocol's part."""
    sizes: dict[str, Any] = {"iterations": 1, "samples": samples, "env_steps": env_steps}
    none: dict[str, Any] = {"finalists": 0, "confirm": 0, "baselines": False, "video": False}

    def read(found: Run, watch: Watch) -> tuple[float, list[tuple[str, int]]]:
        attempts = [each for each in found.archive.attempts() if each.outcome is not None]
        assert len(attempts) == samples
        rewards = [(each.proposal.reward.source, each.seed) for each in attempts]
        return watch.seconds(), rewards

    searched, rewards = search(
        {"env": str(environment), "model": ["offline"], **sizes, **none}, read
    )
    jobs = [
        job_folder(scratch / str(number), environment, *reward, env_steps)
        for number, reward in enumerate(rewards)
    ]
    began = time.perf_counter()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(partial(run, ["train.py"], environment), jobs))
    looped = time.perf_counter() - began
    again = job_folder(scratch / "again", environment, *rewards[0], env_steps)
    part = float(run(["-c", PROTOCOL], environment, again).splitlines()[-1])
    ratio = searched / looped
    return {"search_s": searched, "loop_s": looped, "ratio": ratio, "protocol_part": part}


if __name__ == "__main__":
    main()
