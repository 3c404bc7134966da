"""A batch whose machine is in trouble for a while: it waits, and no search is to blame."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import CommandLine, Told, states_and_tries, wait_for
from small_disk import fill
from small_disk import small_disk as mounted_disk

from eureka_agent.batch.limits import MachineWait, trouble_in
from eureka_agent.errors import (
    DiskFullError,
    RunFolderError,
    WallAwayError,
    WorkerDiedError,
    WorkerLostError,
)
from eureka_agent.sandbox.process_wall import ProcessWall

NIGHT = """\
sandbox: process
retries: 0
wait_for_machine: LONG
defaults: {iterations: 2, samples: 2, env_steps: 8192, finalists: 1, final_seeds: 1, \
evaluation_episodes: 2, scoring_episodes: 2, confirm: 1, video: false}
matrix: {env: [cartpole], seed: [0, 1, 2]}
"""


class AwayWall(ProcessWall):
    """A wall whose service answers after some questions."""

    def __init__(self, unanswered: int) -> None:
        super().__init__()
        self.unanswered = unanswered

    async def check(self) -> None:
        self.unanswered -= 1
        if self.unanswered >= 0:
            raise WallAwayError("the engine went away", "start it")


async def test_a_wait_ends_when_the_service_answers(tmp_path: Path) -> None:
    told: list[str] = []
    pauses: list[float] = []

    async def pause(seconds: float) -> bool:
        pauses.append(seconds)
        return True

    wait = MachineWait(AwayWall(3), [tmp_path], told.append)
    assert await wait.until_usable(WallAwayError("gone", "start it"), 3600.0, pause)
    assert len(pauses) == 3
    assert told[0].startswith("gone; everything waits for it, at most 60 min")
    assert list(tmp_path.iterdir()) == []


async def test_a_wait_ends_with_its_limit_or_when_nobody_wants_it(tmp_path: Path) -> None:
    async def no(seconds: float) -> bool:
        return False

    wait = MachineWait(AwayWall(10), [tmp_path], lambda text: None)
    assert not await wait.until_usable(WallAwayError("gone", "start it"), 60.0, no)
    another = MachineWait(AwayWall(10), [tmp_path], lambda text: None)
    with pytest.raises(WallAwayError, match="the engine went away; the batch has waited"):
        await another.until_usable(WallAwayError("gone", "start it"), 0.0, no)


class Sleeper:
    """A clock that goes on where somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> bool:
        self.now += seconds
        self.slept.append(seconds)
        return True


async def test_trouble_that_no_look_sees_and_that_returns_ends_it(tmp_path: Path) -> None:
    clock = Sleeper()
    wait = MachineWait(AwayWall(0), [tmp_path], lambda text: None, lambda: clock.now)
    trouble = WorkerLostError("no container was made in time", "look at the engine")
    for _ in range(8):
        assert await wait.until_usable(trouble, 300.0, clock.sleep)
    # the first look sees nothing wrong; each return then waits for twice as long as the one before
    assert clock.slept == [6.0, 12.0, 24.0, 48.0, 60.0, 60.0, 60.0]
    assert await wait.until_usable(trouble, 300.0, clock.sleep)  # 330 s
    with pytest.raises(WorkerLostError, match="no container was made in time; the batch has"):
        await wait.until_usable(trouble, 300.0, clock.sleep)
    wait.achieved()
    assert await wait.until_usable(trouble, 300.0, clock.sleep)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (OSError(28, "No space left on device", "/a/b"), DiskFullError),
        (OSError(13, "Permission denied", "/a/b"), type(None)),
        (DiskFullError("full"), DiskFullError),
        (RunFolderError("no run"), type(None)),
        (WallAwayError("gone"), WallAwayError),
        (WorkerLostError("the engine went away"), WorkerLostError),
        (WorkerDiedError("exit status 1"), type(None)),
        (ValueError("full"), type(None)),
    ],
)
def test_trouble_is_told_from_other_errors(error: Exception, expected: type) -> None:
    assert type(trouble_in(error)) is expected


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """The runs folder on a file system of its own."""
    folder = tmp_path / "runs"
    with mounted_disk(folder, "96m") as mounted:
        if not mounted:
            pytest.skip("no file system can be mounted here")
        yield folder


def begun(night: Path) -> bool:
    return len(list(night.glob("*/archive.sqlite"))) == 3


@pytest.mark.slow
def test_a_batch_waits_for_room_on_the_disk_and_goes_on(tmp_path: Path, small_disk: Path) -> None:
    eureka = CommandLine(tmp_path)
    (tmp_path / "night.yaml").write_text(NIGHT.replace("LONG", "10m"))
    process = eureka.popen("batch", "night.yaml")
    told = Told(process)
    wait_for(lambda: begun(small_disk / "night"), process)
    ballast = fill(small_disk)
    wait_for(lambda: told.says("everything waits for it"), process)
    ballast.unlink()
    assert told.end() == 0, told.lines
    assert told.says("searches go on after")
    assert states_and_tries(small_disk / "night") == [("finished", 0)] * 3
