"""The soak test: a batch of 12 searches under faults, and the proof from its records.

    PYTHONPATH=tests python tests/soak/soak.py [--minutes 60] [--seed 0] [--folder DIR]

Every few seconds a fault is injected: kill -9 of the driver, a worker or the Docker engine, 429s,
an outage, malformed replies, SIGSTOP, a clock that jumps, and a full disk where a small file system
can be mounted. A killed batch is started again. Each proof is a line of the table; the exit status
is 1 if one does not hold. Where no Docker engine can be started, as in the short test, the workers
are plain processes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from injector import Happened, Injector, resident_mb, workers
from own_engine import OwnEngine, has_engine, own_engine
from proofs import Proof, proofs, table
from small_disk import small_disk
from soak_server import DOLLARS, SoakServer

CLOCK = Path(__file__).parent / "jumping_clock"
CLOCK_FILE = "SOAK_CLOCK"
MOST_S = 3600.0
DISK = "600m"


class Size(NamedTuple):
    """Size of the batch, and of the faults in it."""

    iterations: int
    samples: int
    env_steps: int
    max_cost: float
    pause_s: float  # between two faults
    long_s: float  # of outages and stops
    fault_s: float  # after which no further fault is injected


def size_of(minutes: float) -> Size:
    """The batch for about so many minutes on two cores."""
    if minutes <= 5:
        return Size(2, 2, 8192, 0.04, 4.0, 3.0, 60.0 * minutes)
    return Size(4, 8, 50_000, 0.4, 30.0, 60.0, 60.0 * minutes)


def batch_file(size: Size, base_url: str, sandbox: str) -> dict[str, Any]:
    """Twelve searches: four without a model, and eight with one, two of them in batches."""
    asking: dict[str, Any] = {"env": "cartpole", "model": "openai/soak", "base_url": base_url}
    asking["price"] = [f"openai/soak={DOLLARS},{DOLLARS}"]
    batched = {**asking, "llm_batch": True, "llm_batch_wait": 0.3}
    ones = ("finalists", "final_seeds", "confirm", "snapshot_interval")
    defaults: dict[str, Any] = dict.fromkeys(ones, 1) | {
        "evaluation_episodes": 2,
        "scoring_episodes": 2,
    }
    defaults |= {"iterations": size.iterations, "samples": size.samples}
    defaults |= {"env_steps": size.env_steps, "schedule": "generations"}
    defaults |= {"novelty": False, "analyst": "off", "video": False}
    return {
        "sandbox": sandbox,
        "max_cost": size.max_cost,
        "retries": 100,
        "defaults": defaults,
        "groups": {
            "offline": {"matrix": {"env": ["cartpole", "quadcopter"], "seed": [0, 1]}},
            "asking": {"settings": asking, "matrix": {"seed": [0, 1, 2, 3, 4, 5]}},
            "batched": {"settings": batched, "matrix": {"seed": [0, 1]}},
        },
    }


@dataclass
class Soak:
    """A batch in a folder of its own, and what was seen of it."""

    folder: Path
    runs: Path
    server: SoakServer
    size: Size
    engine: OwnEngine | None = None
    """Docker engine of the workers; None: they are plain processes."""
    lives: int = 0
    largest_mb: float = 0.0
    """Most memory of a driver."""

    @property
    def temporary(self) -> Path:
        return self.folder / "tmp"

    def start(self, name: str) -> subprocess.Popen[bytes]:
        """Start the batch, or go on with it."""
        environment = {
            **os.environ,
            "EUREKA_RUNS": str(self.runs),
            "TMPDIR": str(self.temporary),
            "PYTHONPATH": str(CLOCK),
            CLOCK_FILE: str(self.folder / "clock"),
            "OPENAI_API_KEY": "none",
        }
        if self.engine is not None:
            environment["DOCKER_HOST"] = self.engine.host
        with (self.folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "eureka_agent.cli.main", "batch", f"{name}.yaml", "--yes"],
                cwd=self.folder,
                env=environment,
                stdout=log,
                stderr=log,
            )

    def log(self) -> str:
        """Output of all drivers."""
        return (self.folder / "soak.log").read_text(errors="replace")

    def under_faults(self, injector: Injector) -> int:
        """Run the batch to its end. Returns the last exit status."""
        began = time.monotonic()
        while True:
            driver = self.start("soak")
            self.lives += 1
            due = time.monotonic() + self.size.pause_s
            while driver.poll() is None:
                time.sleep(0.1)
                self.largest_mb = max(self.largest_mb, resident_mb(driver.pid))
                now = time.monotonic()
                if now - began > max(MOST_S, 2 * self.size.fault_s):
                    driver.kill()
                    raise SystemExit("the batch does not end")
                # a slow machine has its faults later
                if now > due and (now - began < self.size.fault_s or not injector.had_each):
                    injector.next(driver)
                    due = time.monotonic() + self.size.pause_s
            if driver.returncode in (0, 1):
                return driver.returncode
            if driver.returncode > 0:  # the engine was away as it began
                time.sleep(self.size.pause_s)


def soak(
    folder: Path, minutes: float, seed: int, engine: OwnEngine | None = None
) -> tuple[list[Proof], Happened, Soak]:
    """Run the batch under faults, then its searches without a model without any. Returns the
    proofs."""
    size = size_of(minutes)
    sandbox = "process" if engine is None else "docker"
    with small_disk(folder / "runs", DISK) as mounted, SoakServer() as server:
        one = Soak(folder, folder / "runs", server, size, engine)
        one.temporary.mkdir()
        content = batch_file(size, server.base_url, sandbox)
        (folder / "soak.yaml").write_text(json.dumps(content))
        disk = one.runs if mounted else None
        clock = folder / "clock"
        injector = Injector(server, one.temporary, disk, engine, clock, seed, size.long_s)
        status = one.under_faults(injector)
        content["groups"] = {"offline": content["groups"]["offline"]}
        (folder / "unbroken.yaml").write_text(json.dumps(content))
        unbroken = one.start("unbroken").wait()
        left = [str(path.relative_to(one.temporary)) for path in one.temporary.rglob("*")]
        left += [f"process {number}" for number in workers(one.temporary)]
        left += [] if engine is None else engine.containers()
        found = proofs(
            one.runs, size.max_cost, server.answered, injector.happened, one.largest_mb, left
        )
        found.insert(0, Proof("the batch ended", f"status {status}", status == 0))
        found.insert(1, Proof("and so did the unbroken one", f"status {unbroken}", unbroken == 0))
        return found, injector.happened, one


def main() -> int:
    """Run, print, and return 1 if a proof does not hold."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=60.0, help="during which faults come")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path)
    arguments = parser.parse_args()
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="soak-"))
    folder.mkdir(exist_ok=True)
    with own_engine() if has_engine() else nullcontext() as engine:
        found, happened, one = soak(folder, arguments.minutes, arguments.seed, engine)
    print(table(found, happened, one.lives))
    print(f"logs and records are in {folder}")
    return 0 if all(proof.holds for proof in found) else 1


if __name__ == "__main__":
    sys.exit(main())
