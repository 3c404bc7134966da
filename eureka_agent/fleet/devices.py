"""Devices of trainings, each a group of CPU cores or a GPU, and the leases of workers on them.
One-thread processes use a CPU best, so a worker has one thread. With as many workers as cores, each
is pinned to a core of its own. With fewer workers the cores are shared out evenly, and each worker
moves within its group; with more, workers share cores. Dry runs and evaluations are short and
something waits for them, so they run on any free core."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import platform
import re
import shutil
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from eureka_agent.archive.cache import CACHE_FOLDER
from eureka_agent.archive.files import storage_errors
from eureka_agent.archive.run_folder import versions
from eureka_agent.boundary.bounds import KERNELS_FILE
from eureka_agent.boundary.commands import Prepare
from eureka_agent.boundary.events import Opened
from eureka_agent.errors import EurekaError
from eureka_agent.fleet.jobs import Problem
from eureka_agent.fleet.ray_cluster import Cluster
from eureka_agent.invocation import command, install_extra
from eureka_agent.sandbox.client import WorkerClient
from eureka_agent.sandbox.cores import available_cores, share_cores, usable_cores
from eureka_agent.sandbox.inbox import WorkerFileError, check_state
from eureka_agent.sandbox.wall import VISIBLE_GPUS, Limits, Wall
from eureka_agent.settings import DAY_SECONDS, TrainingSettings
from eureka_agent.wording import plural

DeviceKind = Literal["cpu", "cuda"]


class DeviceError(EurekaError):
    """A requested device that is missing, or on which the environment does not run."""


@dataclass(frozen=True)
class Device:
    """Device of one worker's trainings."""

    name: str
    """`"cpu"`, or `"cuda:<i>"` in the driver's count of the GPUs."""
    cores: tuple[int, ...] = ()
    visible_gpu: str | None = None
    """Value of the worker's CUDA_VISIBLE_DEVICES: the one GPU that it sees. None for a CPU."""

    @property
    def kind(self) -> DeviceKind:
        return "cpu" if self.name == "cpu" else "cuda"

    @property
    def name_within(self) -> str:
        """Torch's name of it in the worker, which sees no other GPU."""
        return "cpu" if self.kind == "cpu" else "cuda:0"

    def limit(self, limits: Limits) -> Limits:
        return replace(limits, cores=self.cores, visible_gpu=self.visible_gpu)


@dataclass(frozen=True)
class Hardware:
    """Devices that all trainings of a run share."""

    names: tuple[str, ...]
    note: str = ""
    """Reason for the CPU on a machine with GPUs."""
    cluster: str = ""
    """Name of the cluster that has them; empty: this machine."""
    cluster_places: int = field(default=0, compare=False)
    """Cores or GPUs of the cluster, which may lose some: searches share a fleet nevertheless."""

    @property
    def kind(self) -> DeviceKind:
        return "cpu" if self.names == ("cpu",) else "cuda"

    @property
    def places(self) -> int:
        """Number of workers without two of them on a core or a GPU."""
        if self.cluster:
            return self.cluster_places
        return usable_cores() if self.kind == "cpu" else len(self.names)

    def devices(self, workers: int) -> tuple[Device, ...]:
        if self.cluster:  # it places the workers by itself
            gpu = None if self.kind == "cpu" else "any"
            return tuple(Device(name, (), gpu) for name in self.names)
        if self.kind == "cpu":
            return tuple(Device("cpu", cores) for cores in share_cores(available_cores(), workers))
        return tuple(Device(name, (), _visible_name(name)) for name in self.names)

    def sentence(self, workers: int) -> str:
        """Sentence for the user: the devices of trainings, and the reason for them."""
        if self.cluster:
            kind = "cores" if self.kind == "cpu" else "GPUs"
            places = f"{plural(workers, 'worker')} for its {self.cluster_places} {kind}"
            return f"trainings run on {self.cluster}, {places}"
        if self.kind == "cuda":
            each = (
                "a worker on each" if workers == len(self.names) > 1 else plural(workers, "worker")
            )
            return f"trainings run on {' and '.join(self.names)}, {each}"
        cores = len(available_cores())
        each = f"{plural(workers, 'worker')} on {plural(cores, 'core')}"
        if workers == cores > 1:
            each = f"{plural(workers, 'worker')}, each on a core of its own"
        return f"trainings run on the CPU, {each}" + (f" ({self.note})" if self.note else "")


CPU = Hardware(("cpu",))


def choose_hardware(asked: str, opened: Opened, cluster: Cluster | None = None) -> Hardware:
    """Hardware for the `--device` setting `asked`, given what a worker found here, or in a cluster.
    Raises DeviceError when the device cannot be had; `auto` takes the CPU instead."""
    if cluster is not None:
        gpus = opened.gpus.model_copy(update={"count": cluster.gpus})
        found = choose_hardware(asked, opened.model_copy(update={"gpus": gpus}))
        places = cluster.places(found.kind)
        return replace(found, cluster=cluster.name, cluster_places=places)
    there = tuple(f"cuda:{number}" for number in range(opened.gpus.count))
    runs_on_gpu, missing = "cuda" in opened.device_types, opened.gpus.missing
    if asked == "cpu" or (asked == "auto" and not there):
        return CPU
    if asked == "auto" and not runs_on_gpu:
        lacking = f" here: {missing}" if missing else ""
        return Hardware(("cpu",), f"the environment does not run on a GPU{lacking}")
    if not there:
        raise DeviceError(
            f"--device {asked} was asked for, but torch finds no GPU: {missing}",
            f"--device auto takes what is there; `{command('doctor')}` says more",
        )
    names = there if asked in ("auto", "cuda") else tuple(dict.fromkeys(asked.split(",")))
    for name in names:
        if name not in there:
            raise DeviceError(
                f"there is no device {name!r}: torch finds {' and '.join(there)}",
                "name one of these, or --device cuda for all of them",
            )
    if not runs_on_gpu:
        why = f"run there: {missing}" if missing else "say that it runs on a GPU"
        raise DeviceError(
            f"--device {asked} was asked for, but the environment"
            f" {opened.description.environment!r} does not {why}",
            f"install it: {install_extra('gpu')}; or use --device cpu"
            if missing
            else "use --device cpu or auto; if it does, write `device_types ="
            ' ("cpu", "cuda")` in its class',
        )
    return Hardware(names)


def _visible_name(name: str) -> str:
    number = int(name.removeprefix("cuda:"))
    visible = os.environ.get(VISIBLE_GPUS, "").split(",") if VISIBLE_GPUS in os.environ else []
    return visible[number].strip() if number < len(visible) else str(number)


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
    """Folder of the environment's compiled kernels under `runs`; None on a CPU. A worker compiles
    them if they are missing, and they are put there atomically. `fingerprint` is the environment's.
    Raises EurekaError when the environment cannot be made on a GPU."""
    if hardware.kind == "cpu":
        return None
    # several machines may share a home folder and have different GPUs
    key = json.dumps([platform.node(), fingerprint, versions()], sort_keys=True)
    # absolute, since a worker has a working folder of its own
    entry = runs.resolve() / CACHE_FOLDER / "kernels" / hashlib.sha256(key.encode()).hexdigest()
    if entry.is_dir():
        return entry
    environment, device = problem.environment, hardware.devices(1)[0]
    client = await WorkerClient.start(wall, scratch, device.limit(Limits()), environment)
    try:
        await client.open(environment, problem.task, device.name_within)
        # they do not depend on the number of simulations
        await client.prepare(
            Prepare(settings=settings, slots=1, snapshot_s=DAY_SECONDS, kernels=True)
        )
        packed = entry.with_suffix(".safetensors")
        await client.inbox.take(KERNELS_FILE, packed, check_state)
        await asyncio.to_thread(_keep, packed, entry)
    finally:
        await client.close()
    return entry


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
