"""Compiled kernels, made once and copied to each worker. On the CPU, where `mujoco_warp` compiles
as it does for a GPU."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from eureka_agent.boundary.commands import Prepare, Train
from eureka_agent.boundary.events import CurvePoints, Prepared
from eureka_agent.designer.interface import given_reward
from eureka_agent.errors import EurekaError
from eureka_agent.fleet.devices import CPU, Device, Hardware, compile_kernels, kernels_for
from eureka_agent.fleet.jobs import Problem
from eureka_agent.resources import resource_folder
from eureka_agent.sandbox.client import START_SECONDS, WorkerClient
from eureka_agent.sandbox.process_wall import ProcessWall
from eureka_agent.sandbox.wall import Limits
from eureka_agent.settings import TrainingSettings

SETTINGS = TrainingSettings(env_steps=1024, num_envs=4)

CARTPOLE = Problem("cartpole", "balance")
REWARD = """def compute_reward(torso_velocity_w):
    forward = torso_velocity_w[:, 0]
    return forward, {"forward": forward}
"""


@pytest.fixture
def hopper(tmp_path: Path) -> str:
    """The hopper, simulated on the CPU as on a GPU."""
    folder = tmp_path / "warp_hopper"
    shutil.copytree(resource_folder("envs") / "hopper", folder)
    shutil.copytree(resource_folder("envs") / "_shared", tmp_path / "_shared")
    with (folder / "env.py").open("a") as file:
        file.write('\n\nHopper.simulator = "warp"\n')
    return str(folder)


def machine_code(folder: Path) -> dict[str, int]:
    """Compiled files below a folder, with when they were written (ns)."""
    return {path.name: path.stat().st_mtime_ns for path in folder.rglob("*.o")}


@pytest.mark.slow
async def test_what_one_worker_compiled_no_other_compiles_again_and_none_can_change_it_for_another(
    tmp_path: Path, hopper: str
) -> None:
    pytest.importorskip("mujoco_warp")
    entry, scratch = tmp_path / "kept" / "hopper", tmp_path / "scratch"
    await compile_kernels(
        entry, ProcessWall(), Problem(hopper, "run"), SETTINGS, Device("cpu"), scratch
    )
    kept = machine_code(entry)
    assert len(kept) > 10
    assert list(scratch.iterdir()) == []
    clients = [
        await WorkerClient.start(ProcessWall(), scratch, Limits(kernels=entry)) for _ in range(2)
    ]
    try:
        for client in clients:
            await client.open(hopper, "run")
            await client.send(
                Prepare(settings=SETTINGS, slots=3, snapshot_s=60.0)
            )  # more simulations than were compiled for
            assert isinstance(await client.receive(START_SECONDS), Prepared)
        first, second = sorted(scratch.glob("worker-*/wall/kernels"))
        await clients[0].send(Train(job="a", reward=given_reward(REWARD), seed=1))
        assert isinstance(await clients[0].receive(START_SECONDS), CurvePoints)
        assert machine_code(first) == machine_code(second) == kept
        for path in first.rglob("*.o"):
            path.write_bytes(b"another program")
        assert machine_code(second) == machine_code(entry) == kept
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
    async def compiled(entry: Path, *_: object) -> None:
        (entry / "warp").mkdir(parents=True)

    monkeypatch.setattr("eureka_agent.fleet.devices.compile_kernels", compiled)
    monkeypatch.chdir(tmp_path)
    runs, scratch = Path("runs"), tmp_path / "scratch"
    folder = await kernels_for(
        Hardware(("cuda:0",)), ProcessWall(), CARTPOLE, SETTINGS, "fingerprint", runs, scratch
    )
    monkeypatch.chdir("/")
    assert folder is not None
    assert (folder / "warp").is_dir()
