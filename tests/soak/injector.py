"""Faults for a running batch, in an order that a seed draws."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from model_server import NO_JSON, Answer, HttpFailure
from own_engine import OwnEngine
from small_disk import fill
from soak_server import SoakServer


def workers(temporary: Path) -> list[int]:
    """Processes of workers whose scratch folders are in a folder, and those that they forked."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            words = entry.read_bytes()
            if b"eureka_agent.worker" in words and str(temporary).encode() in words:
                found.append(int(entry.parent.name))
    return found


def parent(process: int) -> int:
    """Parent of a process; 0 for one that has ended."""
    with suppress(OSError):
        return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    return 0


def resident_mb(process: int) -> float:
    """Memory of a process; 0 for one that has ended."""
    with suppress(OSError, StopIteration):
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024
    return 0.0


@dataclass
class Happened:
    """Record of what was injected."""

    counts: dict[str, int] = field(default_factory=dict)
    kills: list[float] = field(default_factory=list)
    """Times at which the driver was killed, by `time.monotonic`."""
    full: list[tuple[float, float]] = field(default_factory=list)
    """Times during which the disk was full."""


class Injector:
    """Injects a fault at a time."""

    def __init__(
        self,
        server: SoakServer,
        temporary: Path,
        disk: Path | None,
        engine: OwnEngine | None,
        clock: Path,
        seed: int,
        long_s: float,
    ) -> None:
        """`temporary`: the batch's folder for temporary files; `disk`: a small file system with the
        runs, if it is to be filled. `engine`: Docker engine of the workers; None: they are plain
        processes. `clock`: file of `jumping_clock`. `long_s`: length of outages and stops."""
        self._server, self._temporary, self._disk = server, temporary, disk
        self._engine, self._clock, self._long_s = engine, clock, long_s
        self._random = random.Random(seed)
        self.happened = Happened()
        self._faults: list[Callable[[subprocess.Popen[bytes]], None]] = [
            *(self.kill_driver, self.kill_worker, self.refuse, self.outage, self.garble),
            *(self.stop_driver, self.set_clock),
            *([self.fill_disk] if disk is not None else []),
            *([self.kill_engine] if engine is not None else []),
        ]
        # a fast batch ends before it has had every fault: first those that a test asks for
        self._order = [self.set_clock, self.kill_driver, self.kill_worker]

    @property
    def had_each(self) -> bool:
        """True once every fault has been injected."""
        return len(self.happened.counts) == len(self._faults)

    def next(self, driver: subprocess.Popen[bytes]) -> None:
        """Inject the next fault, and take back what passes."""
        if not self._order:
            self._order = list(self._faults)
            self._random.shuffle(self._order)
        fault = self._order.pop()
        name = fault.__name__
        self.happened.counts[name] = self.happened.counts.get(name, 0) + 1
        fault(driver)

    def kill_driver(self, driver: subprocess.Popen[bytes]) -> None:
        self.happened.kills.append(time.monotonic())
        driver.kill()

    def kill_worker(self, driver: subprocess.Popen[bytes]) -> None:
        if self._engine is not None:
            containers = self._engine.containers()
            if containers:
                self._engine.kill_container(self._random.choice(containers))
        elif found := workers(self._temporary):
            # not a child: a reward whose process is killed has failed, and the search goes on
            first = [each for each in found if parent(each) not in found]
            with suppress(ProcessLookupError):
                os.kill(self._random.choice(first), signal.SIGKILL)

    def refuse(self, driver: subprocess.Popen[bytes]) -> None:
        self._for_a_while(HttpFailure(429, "slow down", "rate_limit", retry_after="1"), 3.0)

    def outage(self, driver: subprocess.Popen[bytes]) -> None:
        self._for_a_while(HttpFailure(503, "overloaded"), self._long_s)

    def garble(self, driver: subprocess.Popen[bytes]) -> None:
        self._for_a_while(NO_JSON, 3.0)

    def stop_driver(self, driver: subprocess.Popen[bytes]) -> None:
        driver.send_signal(signal.SIGSTOP)
        time.sleep(self._long_s)
        driver.send_signal(signal.SIGCONT)

    def set_clock(self, driver: subprocess.Popen[bytes]) -> None:
        offset_s = self._random.choice((-1, 1)) * self._random.uniform(60.0, 2 * 86_400.0)
        draft = self._clock.with_suffix(".new")
        draft.write_text(f"{offset_s}")
        draft.replace(self._clock)

    def kill_engine(self, driver: subprocess.Popen[bytes]) -> None:
        assert self._engine is not None
        self._engine.kill()
        time.sleep(self._long_s / 2)
        self._engine.start_again()

    def fill_disk(self, driver: subprocess.Popen[bytes]) -> None:
        assert self._disk is not None
        began, ballast = time.monotonic(), fill(self._disk)
        time.sleep(3.0)
        ballast.unlink()
        self.happened.full.append((began, time.monotonic()))

    def _for_a_while(self, failure: Answer, seconds: float) -> None:
        self._server.failure = failure
        time.sleep(seconds)
        self._server.failure = None
