"""Options of a worker's container, from one pure function."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docker.types import DeviceRequest, LogConfig, Mount, Ulimit

from eureka_agent.sandbox.docker.mounts import Folder
from eureka_agent.sandbox.wall import Limits
from eureka_agent.sandbox.worker_environment import HUGE_PAGES, WORKER_VARIABLES, worker_arguments

NOBODY = "65534:65534"
SCRATCH = "/scratch"
"""The only folder for much data: memory, limited as such, deleted with the container."""
KERNELS = "/kernels"
"""A GPU's compiled kernels, which a worker copies."""
TMP_BYTES = 64 << 20
_SHARED_MEMORY_BYTES = 16 << 20
_NOT_EXECUTED = "rw,noexec,nosuid,nodev"


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """Inputs of a container's options beside its limits."""

    image: str
    labels: Mapping[str, str]
    folders: Sequence[Folder]
    python_path: Sequence[Path]
    """Folders of modules beside the image's own."""
    seccomp: str
    engine_cores: int | None
    """None: the engine cannot limit processor time."""
    gpus: tuple[str, ...] | None = None
    """GPUs of a worker for which `Limits` names none; empty: none; None: all."""


def container_options(name: str, limits: Limits, surroundings: Surroundings) -> dict[str, Any]:
    """Arguments of the SDK's `containers.create` for a worker called `name`."""
    options = {
        "name": name,
        "image": surroundings.image,
        "entrypoint": ["python"],
        # the control group would kill the whole worker; the data limit in these arguments makes an
        # allocation fail first, as behind other walls
        "command": worker_arguments(SCRATCH, limits, KERNELS),
        "environment": _environment(limits, surroundings),
        "labels": dict(surroundings.labels),
        "hostname": "worker",
        "working_dir": SCRATCH,
        # identity: nobody, without ways to another
        "user": NOBODY,
        "cap_drop": ["ALL"],
        "privileged": False,
        "security_opt": ["no-new-privileges", f"seccomp={surroundings.seccomp}"],
        # network and processes: its own
        "network_mode": "none",
        "ipc_mode": "private",
        "use_config_proxy": False,  # a proxy's address may hold a password
        # writable: memory
        "read_only": True,
        "tmpfs": {
            "/tmp": f"{_NOT_EXECUTED},size={TMP_BYTES},mode=1777",
            SCRATCH: f"{_NOT_EXECUTED},size={limits.scratch_bytes},mode=0700,uid=65534,gid=65534",
        },
        "shm_size": _SHARED_MEMORY_BYTES,
        "mounts": _mounts(limits, surroundings.folders),
        "log_config": LogConfig(type=LogConfig.types.NONE),
        # resources
        "mem_limit": limits.memory_bytes,
        "memswap_limit": limits.memory_bytes,
        "pids_limit": limits.processes,
        "ulimits": [
            Ulimit(name="nofile", soft=limits.open_files, hard=limits.open_files),
            Ulimit(name="fsize", soft=limits.file_bytes, hard=limits.file_bytes),
            Ulimit(name="core", soft=0, hard=0),
        ],
        # end: the worker is the container's first process, which ignores signals from inside, and
        # with it all processes end; when the driver ends in any way, the worker's input closes
        "init": False,
        "stdin_open": True,
        "tty": False,
        "stop_signal": "SIGKILL",
        "restart_policy": {"Name": "no"},
        "auto_remove": False,  # its exit status is read afterwards
    }
    if limits.cores:
        options["cpuset_cpus"] = ",".join(map(str, limits.cores))
    elif surroundings.engine_cores is not None:
        options["nano_cpus"] = surroundings.engine_cores * 10**9
    requests = _gpus(limits.visible_gpu, surroundings.gpus)
    return options | ({"device_requests": requests} if requests else {})


def _environment(limits: Limits, surroundings: Surroundings) -> dict[str, str]:
    """All variables of a worker; none of the driver's."""
    has_gpu = bool(_gpus(limits.visible_gpu, surroundings.gpus))
    return {
        "HOME": SCRATCH,
        "TMPDIR": SCRATCH,
        "LANG": "C.UTF-8",
        "PYTHONPATH": os.pathsep.join(map(str, surroundings.python_path)),
        "PYTHONNOUSERSITE": "1",
        "GLIBC_TUNABLES": HUGE_PAGES,
        **WORKER_VARIABLES,
        # there is no display
        "MUJOCO_GL": "disable",
        **({"NVIDIA_DRIVER_CAPABILITIES": "compute,utility"} if has_gpu else {}),
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
    # file systems mounted below the folder would be writable
    mount["BindOptions"]["NonRecursive"] = True
    return mount


def _gpus(visible: str | None, otherwise: tuple[str, ...] | None) -> list[DeviceRequest]:
    """Requests for the GPUs in `visible`, or `otherwise`, named as in CUDA_VISIBLE_DEVICES."""
    names = otherwise if visible is None else tuple(filter(None, visible.split(",")))
    if names is None:
        return [DeviceRequest(count=-1, capabilities=[["gpu"]])]
    return [DeviceRequest(device_ids=list(names), capabilities=[["gpu"]])] if names else []
