"""Compiled kernels for workers on a GPU.

Warp compiles the kernels of `mujoco_warp` in a minute or more and keeps the machine code in a cache
folder. It finds the code there by the hash of the kernels' *source* and loads it, so write access
to that folder decides what the next worker executes. So no folder is shared. A worker that loads no
reward compiles the kernels once for an environment, and the driver keeps them. Each training worker
gets a copy in its own scratch folder, which is deleted with the worker. A wall that hides the
user's files from workers also hides the driver's copy; the process wall hides nothing.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import platform
import re
import shutil
import tempfile
from pathlib import Path

from eureka_agent.archive.cache import CACHE_FOLDER
from eureka_agent.archive.files import storage_errors
from eureka_agent.archive.run_folder import versions
from eureka_agent.fleet.devices import Device, Hardware
from eureka_agent.fleet.jobs import Problem
from eureka_agent.protocol.bounds import KERNELS_FILE
from eureka_agent.protocol.commands import Prepare
from eureka_agent.sandbox.client import WorkerClient
from eureka_agent.sandbox.inbox import WorkerFileError, check_state
from eureka_agent.sandbox.wall import Limits, Wall
from eureka_agent.settings import DAY_SECONDS, TrainingSettings

_PLAIN_PATH = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*")


async def kernels_for(
    hardware: Hardware,
    wall: Wall,
    problem: Problem,
    settings: TrainingSettings,
    fingerprint: str,
    runs: Path,
    scratch: Path,
) -> Path | None:
    """Folder of the environment's compiled kernels under `runs`, compiled if missing; None on a
    CPU.

    `fingerprint` is the environment's. Raises EurekaError when the environment cannot be made on a
    GPU.
    """
    if hardware.kind == "cpu":
        return None
    # several machines may share a home folder and have different GPUs
    key = json.dumps([platform.node(), fingerprint, versions()], sort_keys=True)
    # absolute, since a worker has a working folder of its own
    entry = runs.resolve() / CACHE_FOLDER / "kernels" / hashlib.sha256(key.encode()).hexdigest()
    if not entry.is_dir():
        device = hardware.devices(1)[0]
        await compile_kernels(entry, wall, problem, settings, device, scratch)
    return entry


async def compile_kernels(
    entry: Path,
    wall: Wall,
    problem: Problem,
    settings: TrainingSettings,
    device: Device,
    scratch: Path,
) -> None:
    """Have a worker compile the kernels, and put them into the folder `entry` atomically.

    Kernels do not depend on the number of simulations, so one slot is enough. Raises EurekaError
    with the worker's message.
    """
    environment = problem.environment
    client = await WorkerClient.start(wall, scratch, device.limit(Limits()), environment)
    try:
        await client.open(environment, problem.task, device.name_within)
        await client.prepare(
            Prepare(settings=settings, slots=1, snapshot_s=DAY_SECONDS, kernels=True)
        )
        packed = await client.inbox.take(
            KERNELS_FILE, entry.with_suffix(".safetensors"), check_state
        )
        await asyncio.to_thread(_keep, packed, entry)
    finally:
        await client.close()


def _keep(packed: Path, entry: Path) -> None:
    """Unpack a worker's cache. An environment without kernels gets an empty entry. Raises
    WorkerFileError for a path out of the folder."""
    from safetensors.numpy import load_file  # numpy comes with it

    with storage_errors(entry.parent):
        draft = Path(tempfile.mkdtemp(prefix=".draft-", dir=entry.parent))
        try:
            for name, content in load_file(packed).items():
                if not _PLAIN_PATH.fullmatch(name):
                    raise WorkerFileError(
                        f"a worker sent a kernel named {name[:100]!r}", "report this"
                    )
                path = draft / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content.tobytes())
            if not entry.is_dir():  # another search may have been faster
                os.rename(draft, entry)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
            packed.unlink(missing_ok=True)
