"""All that is said about a worker's container, in one pure function."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docker.types import DeviceRequest, LogConfig, Mount, Ulimit

from eureka_agent.sandbox.docker.mounts import Folder
from eureka_agent.sandbox.wall import Limits

NOBODY = "65534:65534"
SCRATCH = "/scratch"
"""The only folder that a worker can put much into. It is memory, counts as such, and goes with the
container."""
KERNELS = "/kernels"
"""Compiled kernels of a GPU, of which a worker makes itself a copy."""
TMP_BYTES = 64 << 20
_SHARED_MEMORY_BYTES = 16 << 20
_NOT_EXECUTED = "rw,noexec,nosuid,nodev"


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What a container's options depend on beside its limits."""

    image: str
    labels: Mapping[str, str]
    folders: Sequence[Folder]
    python_path: Sequence[Path]
    """Folders in which a worker finds modules, besides the image's own."""
    seccomp: str
    """The profile of system calls as JSON."""
    engine_cores: int | None
    """None: the engine cannot limit processor time."""
    gpus: tuple[str, ...] | None = None
    """GPUs of a worker to which `Limits` gives none in particular; empty: none; None: all."""


def container_options(name: str, limits: Limits, surroundings: Surroundings) -> dict[str, Any]:
    """What the SDK's `containers.create` is given for a worker called `name`."""
    options = {
        "name": name,
        "image": surroundings.image,
        "entrypoint": ["python"],
        "command": _arguments(limits),
        "environment": _environment(limits, surroundings),
        "labels": dict(surroundings.labels),
        "hostname": "worker",
        "working_dir": SCRATCH,
        # who it is: nobody, who can become nobody else
        "user": NOBODY,
        "cap_drop": ["ALL"],
        "privileged": False,
        "security_opt": ["no-new-privileges", f"seccomp={surroundings.seccomp}"],
        # what it reaches: itself
        "network_mode": "none",
        "ipc_mode": "private",
        "use_config_proxy": False,  # a proxy's address may hold a password
        # what it writes: memory
        "read_only": True,
        "tmpfs": {
            "/tmp": f"{_NOT_EXECUTED},size={TMP_BYTES},mode=1777",
            SCRATCH: f"{_NOT_EXECUTED},size={limits.scratch_bytes},mode=0700,uid=65534,gid=65534",
        },
        "shm_size": _SHARED_MEMORY_BYTES,
        "mounts": _mounts(limits, surroundings.folders),
        "log_config": LogConfig(type=LogConfig.types.NONE),
        # how much it takes
        "mem_limit": limits.memory_bytes,
        "memswap_limit": limits.memory_bytes,
        "pids_limit": limits.processes,
        "ulimits": [
            Ulimit(name="nofile", soft=limits.open_files, hard=limits.open_files),
            Ulimit(name="fsize", soft=limits.file_bytes, hard=limits.file_bytes),
            Ulimit(name="core", soft=0, hard=0),
        ],
        # how it ends: the worker is the container's first process, which no signal from inside
        # reaches, and with it everything ends; when the driver goes away in whatever way, its end
        # of the input closes
        "init": False,
        "stdin_open": True,
        "tty": False,
        "stop_signal": "SIGKILL",
        "restart_policy": {"Name": "no"},
        "auto_remove": False,  # how it ended is asked afterwards
    }
    if limits.cores:
        options["cpuset_cpus"] = ",".join(map(str, limits.cores))
    elif surroundings.engine_cores is not None:
        options["nano_cpus"] = surroundings.engine_cores * 10**9
    requests = _gpus(limits.visible_gpu, surroundings.gpus)
    return options | ({"device_requests": requests} if requests else {})


def _arguments(limits: Limits) -> list[str]:
    return [
        *("-P", "-m", "eureka_agent.worker", "--scratch", SCRATCH),
        # the control group ends the whole worker where this ends an allocation: a reward that takes
        # too much fails as behind other walls
        *("--data-bytes", str(limits.memory_bytes)),
        *("--open-files", str(limits.open_files), "--file-bytes", str(limits.file_bytes)),
        *(("--cores", ",".join(map(str, limits.cores))) if limits.cores else ()),
        *(("--kernels", KERNELS) if limits.kernels is not None else ()),
    ]


def _environment(limits: Limits, surroundings: Surroundings) -> dict[str, str]:
    """All variables of a worker: none of the driver's is passed on."""
    return {
        "HOME": SCRATCH,
        "TMPDIR": SCRATCH,
        "LANG": "C.UTF-8",
        "PYTHONPATH": os.pathsep.join(map(str, surroundings.python_path)),
        "PYTHONUNBUFFERED": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONNOUSERSITE": "1",
        # large pages of memory, see worker_environment
        "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        # there is no screen, and nothing to draw with
        "MUJOCO_GL": "disable",
        **(
            {"NVIDIA_DRIVER_CAPABILITIES": "compute,utility"}
            if _gpus(limits.visible_gpu, surroundings.gpus)
            else {}
        ),
    }


def _mounts(limits: Limits, folders: Sequence[Folder]) -> list[Mount]:
    mounts = [_mount(str(folder.inside), folder.outside) for folder in folders]
    if limits.kernels is not None:
        mounts.append(_mount(KERNELS, limits.kernels.resolve()))
    return mounts


def _mount(target: str, source: Path) -> Mount:
    mount = Mount(
        target=target, source=str(source), type="bind", read_only=True, propagation="rprivate"
    )
    # what is mounted below the folder would be writable: it stays outside
    mount["BindOptions"]["NonRecursive"] = True
    return mount


def _gpus(visible: str | None, otherwise: tuple[str, ...] | None) -> list[DeviceRequest]:
    """Of all that `visible` or `otherwise` name, as CUDA_VISIBLE_DEVICES does."""
    names = otherwise if visible is None else tuple(filter(None, visible.split(",")))
    if names is None:
        return [DeviceRequest(count=-1, capabilities=[["gpu"]])]
    return [DeviceRequest(device_ids=list(names), capabilities=[["gpu"]])] if names else []
