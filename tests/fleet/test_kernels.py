"""Compiled kernels, made once and copied to each worker."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from eureka_agent.errors import EurekaError
from eureka_agent.fleet.devices import CPU, Device, Hardware, kernels_for
from eureka_agent.fleet.jobs import Problem
from eureka_agent.sandbox.client import WorkerClient
from eureka_agent.sandbox.process_wall import ProcessWall
from eureka_agent.sandbox.wall import Limits
from eureka_agent.settings import TrainingSettings

SETTINGS = TrainingSettings(env_steps=1024, num_envs=4)

CARTPOLE = Problem("cartpole", "balance")
MADE = Path("/nowhere")


class Compiles(Device):
    """A device in whose workers kernels appear, as if they had been compiled there."""

    def limit(self, limits: Limits) -> Limits:
        return replace(super().limit(limits), kernels=MADE)


class Compiling(Hardware):
    """Hardware of this device."""

    def devices(self, workers: int) -> tuple[Device, ...]:
        return (Compiles("cpu"),)


async def test_what_one_worker_compiled_others_get_and_none_can_change_it_for_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs, scratch, made = tmp_path / "runs", tmp_path / "scratch", tmp_path / "made"
    (made / "warp").mkdir(parents=True)
    (made / "warp" / "step.o").write_bytes(b"a program")
    monkeypatch.setattr(sys.modules[__name__], "MADE", made)
    hardware, asked = Compiling(("cuda:0",)), (CARTPOLE, SETTINGS, "fingerprint", runs, scratch)
    entry = await kernels_for(hardware, ProcessWall(), *asked)
    assert entry is not None
    kept = entry / "warp" / "step.o"
    assert kept.read_bytes() == b"a program"
    assert list(scratch.iterdir()) == []
    clients = [
        await WorkerClient.start(ProcessWall(), scratch, Limits(kernels=entry)) for _ in range(2)
    ]
    try:
        for client in clients:
            await client.open("cartpole", "balance")
        first, second = scratch.glob("worker-*/wall/kernels/warp/step.o")
        first.write_bytes(b"another program")
        assert second.read_bytes() == kept.read_bytes() == b"a program"
    finally:
        for client in clients:
            await client.close()


async def test_kernels_are_compiled_for_a_gpu_alone_and_a_failure_keeps_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = tmp_path / "runs"
    asked = ProcessWall(), CARTPOLE, SETTINGS, "fingerprint", runs, tmp_path / "scratch"
    assert await kernels_for(CPU, *asked) is None
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")  # what is promised is not there
    with pytest.raises(EurekaError, match="was to run on 'cuda:0'"):
        await kernels_for(Hardware(("cuda:0",)), *asked)
    assert not runs.exists()


async def test_a_worker_in_another_folder_finds_the_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = tmp_path / "made"
    (made / "warp").mkdir(parents=True)
    (made / "warp" / "step.o").write_bytes(b"a program")
    monkeypatch.setattr(sys.modules[__name__], "MADE", made)
    monkeypatch.chdir(tmp_path)
    runs, scratch = Path("runs"), tmp_path / "scratch"
    folder = await kernels_for(
        Compiling(("cuda:0",)), ProcessWall(), CARTPOLE, SETTINGS, "fingerprint", runs, scratch
    )
    monkeypatch.chdir("/")
    assert folder is not None
    assert (folder / "warp").is_dir()
