"""Peak resident memory of a training worker with 16 members of 64 environments on the ant. Target:
under 1.5 GB.

    python benchmarks/worker_memory.py [--quick] [--iterations N] [--num-envs N] [TASK]

A real worker behind the process wall, saved states included, at an interval of a second so that one
is in the peak. Fifteen members train the human reward. The sixteenth trains one that reads every
variable and its value one step before, so that the rollout records all that it can. Two values are
read: VmHWM, the kernel's own high-water mark of the process, and VmData, all that the process has
reserved, used or not, which a worker's limit counts. If a worker cannot start within the pool's
limit, the benchmark says so and measures it without one. Needs /proc.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

from _common import Subject, subject
from _pool import PoolRun, human_source, train_in_pool
from _results import write_result

from eureka_agent.errors import EurekaError
from eureka_agent.sandbox.wall import Limits, shared_limits

MEMBERS = 16
TARGET_BYTES = 1.5e9
_LINE = re.compile(r"^(VmHWM|VmData):\s+(\d+) kB", re.MULTILINE)


class MemoryRun(PoolRun):
    """Trainings during which the worker's memory is read."""

    peak_bytes = 0
    reserved_bytes = 0

    def __call__(self, job: str, points: Any) -> None:
        super().__call__(job, points)
        status = Path(f"/proc/{self.wall.pids[0]}/status").read_text()
        found = {name: 1024 * int(kilobytes) for name, kilobytes in _LINE.findall(status)}
        self.peak_bytes = max(self.peak_bytes, found["VmHWM"])
        self.reserved_bytes = max(self.reserved_bytes, found["VmData"])


def reads_everything(subject: Subject) -> str:
    """A reward that reads all public variables, and each one's value a step before."""
    variables = [
        each for each in subject.loaded.environment_class.all_variables() if not each.private
    ]
    names = [name for each in variables for name in (each.name, f"previous_{each.name}")]
    terms = "\n        ".join(
        f"{name}.reshape({name}.shape[0], -1).tanh().mean(dim=-1)," for name in names
    )
    return (
        f"def compute_reward({', '.join(names)}):\n    terms = [\n        {terms}\n    ]\n"
        "    return sum(terms), {'all': sum(terms)}\n"
    )


def main() -> dict[str, Any]:
    """Measure, print, store."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("task", nargs="?", default="ant", metavar="TASK")
    parser.add_argument("--num-envs", type=int, default=64, metavar="N")
    parser.add_argument("--iterations", type=int, default=20, metavar="N")
    parser.add_argument("--quick", action="store_true", help="four iterations")
    arguments = parser.parse_args()
    chosen = subject(arguments.task)
    settings = chosen.settings(num_envs=arguments.num_envs)
    iterations = 4 if arguments.quick else arguments.iterations
    settings = settings.model_copy(
        update={"env_steps": iterations * settings.horizon * settings.num_envs}
    )
    sources = [*[human_source(chosen)] * (MEMBERS - 1), reads_everything(chosen)]
    run, refusal = MemoryRun(), ""
    try:
        train_in_pool(chosen, settings, sources, 1, snapshot_s=1.0, run=run)
    except EurekaError as error:
        refusal = (
            f"no worker starts within {shared_limits(1).memory_bytes / 1e9:.1f} GB of data:"
            f" {error.message}"
        )
        print(f"{refusal}; measured without that limit:")
        run = MemoryRun()
        train_in_pool(
            chosen,
            settings,
            sources,
            1,
            snapshot_s=1.0,
            run=run,
            limits=Limits(memory_bytes=1 << 46),
        )
    print(
        f"{chosen.name}: a worker with K={MEMBERS}, N={arguments.num_envs} takes"
        f" {run.peak_bytes / 1e9:.2f} GB at its peak and reserves {run.reserved_bytes / 1e9:.2f} GB"
        f"   (target: under {TARGET_BYTES / 1e9:g})"
    )
    figures = {
        "task": chosen.name,
        "members": MEMBERS,
        "num_envs": arguments.num_envs,
        "iterations": iterations,
        "peak_bytes": run.peak_bytes,
        "reserved_bytes": run.reserved_bytes,
        "starts_within_limit": not refusal,
    }
    if not arguments.quick:
        write_result("worker_memory", figures)
    return figures


if __name__ == "__main__":
    main()
