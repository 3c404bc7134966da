"""A worker with sixteen trainings of 64 ants each: 1024 MuJoCo simulations in one process."""

from __future__ import annotations

import asyncio
import platform
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from training_pool import TrainingPool

from eureka_agent.designer.interface import given_reward
from eureka_agent.errors import EurekaError
from eureka_agent.sandbox.process_wall import ProcessWall
from eureka_agent.sandbox.wall import Limits
from eureka_agent.settings import TrainingSettings

MOST_RESIDENT_KIB = 1_500_000_000 // 1024
SETTINGS = TrainingSettings(env_steps=2 * 64 * 32, num_envs=64, horizon=32, checkpoints=1)
REWARD = (
    "def compute_reward(actions):\n    effort = -actions.square().sum(dim=-1)\n    return effort,"
    " {'effort': effort}\n"
)


def large_pages_can_be_had() -> bool:
    """True if a process that asks for large pages gets some. This kernel may have none, and so may
    a C library other than glibc."""
    enabled = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    version = [int(part) for part in platform.libc_ver()[1].split(".") if part.isdigit()]
    glibc = platform.libc_ver()[0] == "glibc" and version >= [2, 35]
    return glibc and enabled.is_file() and "[never]" not in enabled.read_text()


@pytest.mark.slow
async def test_it_stays_under_its_bounds(
    tmp_path: Path, workers_of: Callable[[Path], list[int]]
) -> None:
    # the limit of a worker on a small machine, which counts what is reserved and not what is used
    limits = Limits(memory_bytes=2 << 30)
    pool = TrainingPool(
        ProcessWall(), "ant", "run", SETTINGS, 16, 1, tmp_path, limits=limits, snapshot_s=0.1
    )
    try:
        results = await asyncio.gather(
            *(pool.train(f"ant-{seed}", given_reward(REWARD), seed) for seed in range(16))
        )
        assert [result.failure_reason for result in results] == [""] * 16
        (worker,) = workers_of(tmp_path)
        status = Path(f"/proc/{worker}/status").read_text().splitlines()
        (peak,) = [line for line in status if line.startswith("VmHWM:")]
        assert int(peak.split()[1]) < MOST_RESIDENT_KIB
        if large_pages_can_be_had():
            lines = Path(f"/proc/{worker}/smaps_rollup").read_text().splitlines()
            (large,) = [int(line.split()[1]) for line in lines if line.startswith("AnonHugePages:")]
            # the simulations alone have more
            assert large > 128 * 1024
    finally:
        await pool.close()


@pytest.mark.parametrize("too_large", [{"hidden_sizes": (100_000, 100_000)}])
async def test_a_training_that_does_not_fit_says_how_much_it_asked_for_and_what_to_lower(
    tmp_path: Path, too_large: dict[str, Any]
) -> None:
    settings = SETTINGS.model_copy(update={"env_steps": 10**12, **too_large})
    limits = Limits(memory_bytes=2 << 30)
    pool = TrainingPool(
        ProcessWall(), "cartpole", "balance", settings, 1, 1, tmp_path, limits=limits
    )
    try:
        with pytest.raises(EurekaError) as caught:
            await pool.train("large", given_reward(REWARD), 0)
    finally:
        await pool.close()
    found = re.fullmatch(
        r"the training does not fit into memory: (\S+) GiB were asked for in one piece",
        caught.value.message,
    )
    assert found is not None, caught.value.message
    assert float(found[1]) > 2
    assert {"--hidden-sizes", "--num-envs", "--horizon", "--slots"} <= {
        *re.findall(r"--[a-z-]+", caught.value.hint)
    }
