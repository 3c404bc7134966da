"""Time that `eureka show` and `eureka runs` take on a long run: 2,000 attempts, each of about 30 KB
with the request to a model that designed it.

    python benchmarks/show_speed.py

Each figure is of the whole command, the start of Python included: the least CPU time of several,
and the least wall time. `--attempts 10` is what a short run takes.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from decimal import Decimal
from pathlib import Path

from _results import write_result

from eureka_agent.archive.database import Archive
from eureka_agent.archive.files import locked
from eureka_agent.archive.run_folder import create_run
from eureka_agent.journal import entries, progress
from eureka_agent.records import (
    CheckpointRecord,
    ComponentSummary,
    Cost,
    Diagnosis,
    DiagnosisFinding,
    Finding,
    Message,
    Operator,
    Outcome,
    Proposal,
    RungScore,
    RunStatus,
    Stage,
    TaskDescription,
    Verdict,
)
from eureka_agent.rewards import CodeReward
from eureka_agent.settings import SearchSettings

NAME = "show_speed"
SAMPLES = 8
COMMANDS = (("show", "latest"), ("runs",), ("show", "latest", "1-03"), ("show", "--help"))
DESCRIPTION = TaskDescription(
    environment="cartpole",
    task="swingup",
    sentence="swing the pole up",
    doc="A pole on a cart.",
    fitness_doc="seconds upright",
    fitness_unit="s",
    fitness_reduction="sum",
    success_fitness=None,
    variables=(),
    num_observations=4,
    num_actions=1,
    control_dt=0.02,
    max_episode_length=500,
    termination_causes=("off_track",),
    env_steps=1000,
    num_envs=4,
    training_overrides={},
    human_reward="",
    sparse_reward="",
    fingerprint="0123456789abcdef0123",
)
SOURCE = "def compute_reward(height):\n    return height, {'height': height}\n"
CHECKPOINTS = tuple(
    CheckpointRecord(
        env_steps=100 * number,
        fitness=float(number),
        episode_length=100.0,
        episodes=4,
        reward=0.5,
        components={f"component_{name}": 0.25 for name in range(5)},
    )
    for number in range(1, 11)
)
COMPONENT = ComponentSummary(
    name="height", values=(0.1,) * 10, maximum=1.0, mean=0.5, minimum=0.0, share=0.5
)


def write_run(parent: Path, attempts: int) -> float:
    """A finished run of so many attempts. Returns the kilobytes of one in its archive."""
    settings = SearchSettings(
        env="cartpole", task="swingup", samples=SAMPLES, iterations=max(1, attempts // SAMPLES)
    )
    run = create_run(settings, DESCRIPTION, ["eureka", "search", "swing up"], parent=parent)
    with locked(run.folder):
        run.archive._connection.execute("PRAGMA synchronous=OFF")
        for number in range(attempts):
            _write_attempt(run.archive, number)
        run.archive.append(entries.RunEnded(status=RunStatus.FINISHED))
    run.archive.close()
    return (run.folder / "archive.sqlite").stat().st_size / 1024 / attempts


def _write_attempt(archive: Archive, number: int) -> None:
    iteration, sample = divmod(number, SAMPLES)
    name = f"{iteration + 1}-{sample + 1:02}"
    fitness = float(number * 7919 % 1000) / 100
    cost = Cost(prompt_tokens=3000, completion_tokens=800, seconds=9.0, money=Decimal("0.01"))
    finding = DiagnosisFinding(
        code="dominant-component",
        message=f"height makes up {number % 100} % of the reward, the others say little",
        advice="scale it down",
    )
    diagnosis = Diagnosis(
        fitness=fitness,
        fitness_values=tuple(float(value) for value in range(10)),
        episode_length_values=(100.0,) * 10,
        components=(COMPONENT,) * 5,
        findings=(finding,) * 3,
        text="What the designer is told of it. " * 40,
    )
    outcome = Outcome(
        env_steps=1000,
        seconds=30.0,
        checkpoints=CHECKPOINTS,
        best_checkpoint=9,
        training_fitness=fitness,
        fitness=fitness,
    )
    warning = Finding(code="C301", severity="warning", line=3, message="it is always positive")
    proposal = Proposal(
        reward=CodeReward(source=SOURCE * 15, author="openai/tiny"),
        reasoning="height is what counts " * 20,
        operator=Operator.IMPROVE,
        parents=("1-01",),
        prompt="the conversation so far " * 100,
        reply="the reply " * 200,
        cost=cost,
    )
    message = Message(
        role="designer",
        model="openai/tiny",
        attempt=name,
        request="the conversation so far " * 100,
        reply="the reply " * 200,
        cost=cost,
    )
    job = f"{name}@7"
    archive.put(f"key of {name}", message)
    for entry in (
        entries.Proposed(
            attempt=name,
            iteration=iteration,
            sample=sample,
            revision=0,
            proposal=proposal,
            seed=7,
        ),
        entries.Judged(attempt=name, verdict=Verdict(findings=(warning,) * 3)),
        progress.TrainingQueued(job=job, label=name, training="search", seed=7),
        *(progress.TrainingProgress(job=job, points=progress.progress_of(())) for _ in range(30)),
        entries.RungScored(attempt=name, score=RungScore(env_steps=700, fitness=fitness)),
        progress.TrainingEnded(job=job, label=name, training="search", fitness=fitness),
        entries.AttemptEnded(
            attempt=name, stage=Stage.TRAINED, outcome=outcome, diagnosis=diagnosis
        ),
    ):
        archive.append(entry)


def seconds_of(arguments: tuple[str, ...], runs: Path) -> tuple[float, float]:
    """CPU and wall seconds of a whole command."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    environment = {**os.environ, "EUREKA_RUNS": str(runs)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # modules are compiled once, as is usual
    subprocess.run(
        [sys.executable, "-m", "eureka_agent.cli.main", *arguments],
        env=environment,
        stdout=subprocess.DEVNULL,
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return cpu, time.perf_counter() - began


def main() -> int:
    """Print the times."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--attempts", type=int, default=2000)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    found: dict[str, object] = {"attempts": arguments.attempts}
    with tempfile.TemporaryDirectory() as folder:
        size = write_run(Path(folder), arguments.attempts)
        found["kilobytes_of_an_attempt"] = round(size, 1)
        print(f"{arguments.attempts} attempts of {size:.1f} KB")
        for command in COMMANDS:
            times = [seconds_of(command, Path(folder)) for _ in range(arguments.repeats)]
            cpu, wall = (1000 * min(each) for each in zip(*times, strict=True))
            name = " ".join(("eureka", *command))
            found[name] = {"cpu_ms": round(cpu), "wall_ms": round(wall)}
            print(f"{name:<24} {cpu:6.0f} ms of CPU, {wall:6.0f} ms")
    write_result(NAME, found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
