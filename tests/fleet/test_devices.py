"""The hardware of trainings: how cores are shared out, the meaning of `--device`, and where a
worker then really runs."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import pytest
from training_pool import TrainingPool

from eureka_agent.boundary.events import Gpus, Opened
from eureka_agent.designer.interface import given_reward
from eureka_agent.errors import EurekaError
from eureka_agent.fleet.devices import CPU, DeviceError, Hardware, choose_hardware
from eureka_agent.invocation import install_extra
from eureka_agent.records import CurvePoint, TaskDescription
from eureka_agent.sandbox.client import WorkerClient
from eureka_agent.sandbox.cores import available_cores, cpu_quota, share_cores
from eureka_agent.sandbox.process_wall import ProcessWall
from eureka_agent.sandbox.wall import Limits
from eureka_agent.settings import TrainingSettings
from eureka_agent.simulation.loading import load_environment
from eureka_agent.worker import serve

ProcessesOf = Callable[[Path], list[int]]
NO_CUDA = "torch 2.13.0+cpu is built without CUDA"


@pytest.mark.parametrize(
    ("cores", "groups", "shared"),
    [
        ((0, 1), 2, ((0,), (1,))),
        ((0, 1, 2, 3, 4), 2, ((0, 1), (2, 3, 4))),
        ((3,), 4, ((3,),)),  # no more groups than cores
    ],
)
def test_cores_are_shared_out_evenly(
    cores: tuple[int, ...], groups: int, shared: tuple[tuple[int, ...], ...]
) -> None:
    assert share_cores(cores, groups) == shared


def test_the_tightest_quota_of_the_control_groups_above_counts(tmp_path: Path) -> None:
    root, own = tmp_path / "cgroup", tmp_path / "own"
    (root / "outer" / "inner").mkdir(parents=True)
    assert cpu_quota(root, own) is None
    own.write_text("0::/outer/inner\n")
    assert cpu_quota(root, own) is None
    (root / "outer" / "inner" / "cpu.max").write_text("max 100000\n")
    assert cpu_quota(root, own) is None
    (root / "outer" / "cpu.max").write_text("250000 100000\n")
    assert cpu_quota(root, own) == 2.5
    (root / "outer" / "inner" / "cpu.max").write_text("50000 100000\n")
    assert cpu_quota(root, own) == 0.5
    own.write_text(
        "0::/../../of another namespace\n"
    )  # seen from inside a container: its own group is the root
    (root / "cpu.max").write_text("300000 100000\n")
    assert cpu_quota(root, own) == 3.0


class ModuleSpecOnly(ModuleType):
    """A module that is installed, as far as looking for it tells."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__spec__ = ModuleSpec(name, None)


def opened(description: TaskDescription, gpus: int, *device_types: str) -> Opened:
    return Opened(
        description=description,
        gpus=Gpus(count=gpus, missing="" if gpus else NO_CUDA),
        device_types=device_types,
    )


@pytest.mark.parametrize(
    ("asked", "gpus", "types", "names"),
    [
        ("auto", 0, ("cpu", "cuda"), ("cpu",)),
        ("auto", 2, ("cpu",), ("cpu",)),
        ("auto", 2, ("cpu", "cuda"), ("cuda:0", "cuda:1")),
        ("cuda", 3, ("cpu", "cuda"), ("cuda:0", "cuda:1", "cuda:2")),
        ("cuda:2,cuda:0,cuda:2", 3, ("cpu", "cuda"), ("cuda:2", "cuda:0")),
    ],
)
def test_what_a_device_setting_comes_to(
    description: TaskDescription,
    asked: str,
    gpus: int,
    types: tuple[str, ...],
    names: tuple[str, ...],
) -> None:
    assert choose_hardware(asked, opened(description, gpus, *types)).names == names


@pytest.mark.parametrize(
    ("asked", "gpus", "types", "said", "hint"),
    [
        ("cuda", 0, ("cpu", "cuda"), NO_CUDA, "eureka doctor"),
        ("cuda:2", 2, ("cpu", "cuda"), "no device 'cuda:2': torch finds cuda:0 and cuda:1", "--device cuda"),
        ("cuda:0,cuda:5", 1, ("cpu", "cuda"), "no device 'cuda:5'", "--device cuda"),
        ("cuda", 1, ("cpu",), "the environment 'cart' does not say", "--device cpu"),
    ],
)  # fmt: skip
def test_a_device_that_cannot_be_had_is_an_error_with_the_next_step(
    description: TaskDescription,
    asked: str,
    gpus: int,
    types: tuple[str, ...],
    said: str,
    hint: str,
) -> None:
    with pytest.raises(DeviceError) as caught:
        choose_hardware(asked, opened(description, gpus, *types))
    assert said in caught.value.message
    assert hint in caught.value.hint


@pytest.mark.parametrize("name", ["hopper", "cartpole"])
def test_what_needs_mujoco_warp_on_a_gpu_runs_on_the_cpu_without_it(
    description: TaskDescription, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """One GPU, whose place a number takes here: nothing is put on it."""
    loaded = load_environment(name).environment_class

    def found() -> Opened:
        return Opened(
            description=description,
            gpus=serve.gpus_for(loaded),
            device_types=serve.device_types(loaded),
        )

    monkeypatch.setattr(serve, "find_gpus", lambda: Gpus(count=1))
    for module in ("mujoco_warp", "warp"):
        monkeypatch.setitem(sys.modules, module, ModuleSpecOnly(module))
    assert (
        choose_hardware("auto", found())
        == choose_hardware("cuda", found())
        == Hardware(("cuda:0",))
    )
    monkeypatch.setitem(sys.modules, "mujoco_warp", None)  # what Python takes for not installed
    if name == "cartpole":  # simulated by torch
        assert choose_hardware("auto", found()) == Hardware(("cuda:0",))
        return
    hardware = choose_hardware("auto", found())
    assert hardware.names == ("cpu",)
    assert "on a GPU it needs mujoco_warp, which is not installed" in hardware.sentence(1)
    with pytest.raises(
        DeviceError, match=r"'cart' does not run there: .*mujoco_warp, which is not installed"
    ) as caught:
        choose_hardware("cuda:0", found())
    assert caught.value.hint == f"install it: {install_extra('gpu')}; or use --device cpu"


def test_a_worker_sees_its_own_gpu_alone_by_the_name_that_the_driver_was_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    two = Hardware(("cuda:0", "cuda:1"))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert [device.visible_gpu for device in two.devices(2)] == ["0", "1"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3, GPU-4f2e")
    assert [device.visible_gpu for device in two.devices(2)] == ["3", "GPU-4f2e"]
    assert [device.name_within for device in two.devices(2)] == ["cuda:0", "cuda:0"]
    assert two.devices(2)[1].limit(Limits()).visible_gpu == "GPU-4f2e"
    assert [device.visible_gpu for device in CPU.devices(1)] == [None]


async def test_a_worker_is_pinned_with_all_its_threads_and_sees_one_gpu(
    tmp_path: Path, workers_of: ProcessesOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,6")
    core = min(os.sched_getaffinity(0))
    client = await WorkerClient.start(
        ProcessWall(), tmp_path, Limits(cores=(core,), visible_gpu="6")
    )
    try:
        await client.open("cartpole", None)
        (worker,) = workers_of(tmp_path)
        threads = [int(entry.name) for entry in Path(f"/proc/{worker}/task").iterdir()]
        assert {frozenset(os.sched_getaffinity(thread)) for thread in threads} == {
            frozenset({core})
        }
        assert b"CUDA_VISIBLE_DEVICES=6" in Path(f"/proc/{worker}/environ").read_bytes().split(
            b"\0"
        )
    finally:
        await client.close()


async def test_a_worker_that_does_not_find_its_gpu_says_so(tmp_path: Path) -> None:
    client = await WorkerClient.start(ProcessWall(), tmp_path)
    try:
        with pytest.raises(EurekaError, match="to run on 'cuda:99'"):
            await client.open("cartpole", None, "cuda:99")
    finally:
        await client.close()


@pytest.mark.slow
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
async def test_a_killed_workers_successor_takes_its_core_and_its_jobs(
    tmp_path: Path, workers_of: ProcessesOf
) -> None:
    settings = TrainingSettings(
        env_steps=1500 * 128, num_envs=16, horizon=8, hidden_sizes=(16,), epochs=1
    )
    good = "def compute_reward(pole_upright):\n    return pole_upright, {'upright': pole_upright}\n"
    both_train, retried = asyncio.Event(), list[str]()
    seen: set[str] = set()

    def on_progress(job: str, points: tuple[CurvePoint, ...]) -> None:
        seen.add(job)
        if len(seen) == 2:
            both_train.set()

    pool = TrainingPool(
        ProcessWall(),
        "cartpole",
        "balance",
        settings,
        1,
        2,
        tmp_path,
        on_progress,
        on_retry=lambda job, reason: retried.append(job),
        devices=CPU.devices(len(available_cores())),
    )

    def cores() -> dict[int, set[int]]:
        return {process: os.sched_getaffinity(process) for process in workers_of(tmp_path)}

    try:
        trainings = [
            asyncio.create_task(pool.train(name, given_reward(good), 0))
            for name in ("first", "second")
        ]
        async with asyncio.timeout(60):
            await both_train.wait()
        before = cores()
        assert len(before) == 2
        assert [len(each) for each in before.values()] == [1, 1]
        assert len(set.union(*before.values())) == 2
        # not the one on the first core: that one is what a successor takes where no core is free
        victim = max(before, key=lambda process: available_cores().index(*before[process]))
        os.kill(victim, signal.SIGKILL)
        seen.clear()
        both_train.clear()
        async with asyncio.timeout(60):
            await both_train.wait()
        after = cores()
        assert victim not in after
        assert sorted(after.values(), key=min) == sorted(before.values(), key=min)
        results = await asyncio.gather(*trainings)
    finally:
        await pool.close()
    assert len(retried) == 1
    assert sorted(result.retries for result in results) == [0, 1]
    assert results[0].points == results[1].points  # the same reward and seed, interrupted or not
