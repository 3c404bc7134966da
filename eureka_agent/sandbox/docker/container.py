"""A worker's container: its options, and this machine's files in it. Files are mounted read-only
under their own paths, and the image has links alone. So no registry is asked, and numbers come out
as they do here, bit for bit: a reward's fitness depends on the last bits of `sin` and `exp`, which
are the C library's."""

from __future__ import annotations

import hashlib
import io
import os
import re
import shutil
import stat
import sys
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docker.errors import ImageNotFound
from docker.types import LogConfig, Mount, Ulimit

from eureka_agent.errors import WallError
from eureka_agent.sandbox.docker.engine import Engine
from eureka_agent.sandbox.docker.leftovers import LABEL
from eureka_agent.sandbox.wall import VISIBLE_GPUS, Limits
from eureka_agent.sandbox.worker_environment import (
    SCRATCH,
    TEMPORARY_BYTES,
    ReadableFiles,
    worker_arguments,
    worker_environment,
)

_IMAGE_NAME = "eureka-worker"
_SHARED_MEMORY_BYTES = 16 << 20
_NOT_EXECUTED = "rw,noexec,nosuid,nodev"
_NOBODYS = "uid=65534,gid=65534"
_MOST_COPIED_BYTES = 1 << 30
_COPIED_NOT = shutil.ignore_patterns("__pycache__")
_GPUS = Path("/proc/driver/nvidia/gpus")
_DEVICES = Path("/dev")


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """Inputs of a container's options beside its limits."""

    image: str
    labels: Mapping[str, str]
    sources: Mapping[Path, Path]
    """Source of each read-only mount, by its place in the container."""
    seccomp: str
    engine_cores: int | None
    """None: the engine cannot limit processor time."""


def container_options(name: str, limits: Limits, surroundings: Surroundings) -> dict[str, Any]:
    """Arguments of the SDK's `containers.create` for a worker called `name`."""
    devices, gpus = gpu_devices(limits.visible_gpu)
    environment = worker_environment(SCRATCH, name, gpus)
    if gpus is None:  # its files are those of its GPUs, and the driver's names count all
        environment.pop(VISIBLE_GPUS, None)
    options = {
        "name": name,
        "image": surroundings.image,
        "entrypoint": [sys.executable],
        # the control group would kill the whole worker; the data limit in these arguments makes an
        # allocation fail first, as behind other walls
        "command": worker_arguments(str(SCRATCH), limits, str(limits.kernels)),
        "environment": environment,
        "labels": dict(surroundings.labels),
        "hostname": "worker",
        "working_dir": str(SCRATCH),
        # identity: nobody, without ways to another
        "user": "65534:65534",
        "cap_drop": ["ALL"],
        "privileged": False,
        "security_opt": ["no-new-privileges", f"seccomp={surroundings.seccomp}"],
        # network and processes: its own
        "network_mode": "none",
        "ipc_mode": "private",
        "use_config_proxy": False,  # a proxy's address may hold a password
        "devices": [f"{device}:{device}:rw" for device in devices],
        # writable: memory
        "read_only": True,
        "tmpfs": {
            "/tmp": f"{_NOT_EXECUTED},size={TEMPORARY_BYTES},mode=1777",
            str(SCRATCH): f"{_NOT_EXECUTED},size={limits.scratch_bytes},mode=0700,{_NOBODYS}",
        },
        "shm_size": _SHARED_MEMORY_BYTES,
        "mounts": [_mount(*each) for each in surroundings.sources.items()],
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
    return options


def gpu_devices(visible: str | None) -> tuple[list[Path], str | None]:
    """Device files of the GPUs in `visible`, named as in CUDA_VISIBLE_DEVICES, and the worker's
    value of that variable: None where it has only their files. `visible` None: the driver's."""
    if visible is None:
        visible = os.environ.get(VISIBLE_GPUS)
    files = sorted(_DEVICES.glob("nvidia*"))
    if visible is None:
        return files, None
    names = [name for name in visible.split(",") if name and name != "-1"]
    if not names:
        return [], ""
    minors: dict[str, str] = {}
    # the driver counts GPUs by their place on the bus
    for number, file in enumerate(sorted(_GPUS.glob("*/information"))):
        facts = dict(re.findall(r"^(GPU UUID|Device Minor):\s*(\S+)", file.read_text(), re.M))
        minors[str(number)] = minors[facts["GPU UUID"]] = facts["Device Minor"]
    if not minors.keys() >= set(names):  # such as a part of a GPU, which has files of its own
        return files, visible
    others = {f"nvidia{minor}" for minor in minors.values()}
    others -= {f"nvidia{minors[name]}" for name in names}
    return [file for file in files if file.name not in others], None


def _mount(place: Path, source: Path) -> Mount:
    mount = Mount(
        target=str(place), source=str(source), type="bind", read_only=True, propagation="rprivate"
    )
    # file systems mounted below the folder would be writable
    mount["BindOptions"]["NonRecursive"] = True
    return mount


def ensure_image(engine: Engine, files: ReadableFiles, base: str = "") -> str:
    """Name of the image with the links, made in a moment if it is missing. It has no other file but
    those of the image `base`: all that a worker reads is mounted. Raises WallError without that
    one, and the SDK's errors."""
    images = engine.client.images
    try:
        origin = images.get(base).id if base else ""
    except ImageNotFound:
        what = f"command.yaml names the image {base!r}, which this Docker engine does not have"
        raise WallError(what, f"docker pull {base}, or build it") from None
    content = image_archive(files, files.bound if base else ())
    tag = hashlib.sha256(content + origin.encode()).hexdigest()[:16]
    name, label = f"{_IMAGE_NAME}:{tag}", f"LABEL {LABEL}=image"
    try:
        images.get(name)
    except ImageNotFound:
        if base:
            recipe = f"FROM {origin}\nADD links.tar /\n{label}\n".encode()
            context = io.BytesIO(_archive({"Dockerfile": recipe, "links.tar": content}))
            images.build(fileobj=context, custom_context=True, tag=name, rm=True)
        else:
            engine.client.api.import_image_from_data(
                content, repository=_IMAGE_NAME, tag=tag, changes=[label]
            )
    return name


def _archive(files: Mapping[str, bytes]) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return content.getvalue()


def image_archive(files: ReadableFiles, mounted: Iterable[Path] = ()) -> bytes:
    """Archive of the links, and of the folders that they lie in and pass, as of those that what is
    `mounted` lies in: in another image only root may be able to enter them."""
    folder = (tarfile.DIRTYPE, 0o755, "")
    members = {Path("/tmp"): (tarfile.DIRTYPE, 0o1777, "")}
    links = {place: (tarfile.SYMTYPE, 0o777, target) for place, target in files.links}
    places = {path.parent: folder for path in mounted if path.parents[1:]}
    for path, member in (places | dict.fromkeys(files.passed, folder) | links).items():
        # the engine would make the folders around it, and let nobody enter them
        for parent in reversed(path.parents[:-1]):
            members.setdefault(parent, folder)
        members.setdefault(path, member)
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for path, (kind, mode, target) in members.items():
            entry = tarfile.TarInfo(str(path)[1:])
            entry.type, entry.mode, entry.linkname = kind, mode, target
            archive.addfile(entry)
    return content.getvalue()


def mount_sources(files: ReadableFiles, copies: Path) -> dict[Path, Path]:
    """Source of each mount, by its place in the container. The user's folders with files that
    others may not read are copied to `copies`, as the worker runs as nobody. Raises WallError."""
    sources = {}
    for index, path in enumerate(files.bound):
        size = _closed_size(path) if path in files.own else None
        if size is not None and size > _MOST_COPIED_BYTES:
            raise WallError(
                f"the folder {str(path)!r} has files that only you may read, and is too large"
                " to be copied",
                f"let the worker read it: chmod -R a+rX {str(path)!r}",
            )
        sources[path] = path if size is None else _copy(path, copies / f"readable-{index}")
    return sources


def _closed_size(root: Path) -> int | None:
    """None for a folder that everybody may read; else its size in bytes."""
    closed = False
    size = 0
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name != "__pycache__"]
        for name in (".", *files):
            try:
                # of a link itself: its target is not mounted
                status = os.lstat(os.path.join(folder, name))
            except OSError:
                continue
            if stat.S_ISDIR(status.st_mode):
                closed |= status.st_mode & 0o5 != 0o5
            elif stat.S_ISREG(status.st_mode):
                size += status.st_size
                closed |= not status.st_mode & 0o4
    return size if closed else None


def _copy(source: Path, target: Path) -> Path:
    try:
        shutil.copytree(source, target, symlinks=True, ignore=_COPIED_NOT)
        for folder, _, files in os.walk(target):
            os.chmod(folder, 0o755)
            for name in files:
                path = os.path.join(folder, name)
                if not os.path.islink(path):
                    os.chmod(path, 0o644)
    except (OSError, shutil.Error) as error:
        raise WallError(
            f"cannot copy the folder {str(source)!r} for a worker: {error}",
            "let it be read: chmod -R a+rX",
        ) from None
    return target
