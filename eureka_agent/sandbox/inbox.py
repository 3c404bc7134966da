"""Files from a worker, bounded at arrival and checked before use."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from eureka_agent.archive.files import storage_errors, write_file
from eureka_agent.array_files import COMMAND_POLICY, check_arrays, open_tensors
from eureka_agent.boundary.bounds import FileHeader
from eureka_agent.errors import EurekaError

MOST_BYTES = 1 << 30
"""Most bytes of files from one worker that were not taken yet."""
MOST_FILES = 1000
MOST_VIDEO_BYTES = 100 << 20
MOST_PICTURE_BYTES = 4 << 20
_CHUNK_BYTES = 1 << 20
DO_NOT_TRUST = "do not trust what this worker wrote"


class WorkerFileError(EurekaError):
    """A file that a worker named but did not send, or a file with invalid content."""


class Inbox:
    """Files of one worker under the driver's names, in a folder hidden from it."""

    def __init__(self, folder: Path) -> None:
        """The first file makes `folder`."""
        self._folder = folder
        self._files: dict[str, Path] = {}
        self._sizes: dict[str, int] = {}
        self._received = 0

    async def receive(self, header: FileHeader, read: Callable[[int], Awaitable[bytes]]) -> None:
        """Store the file after a header, unless the stream ends early. `read(n)` gives at most n
        bytes. Raises WorkerFileError for too many bytes or files, EurekaError for a full disk."""
        self.drop(header.name)
        if len(self._files) >= MOST_FILES or sum(self._sizes.values()) + header.size > MOST_BYTES:
            sent = f"a worker sent more than {MOST_FILES} files, or {MOST_BYTES} bytes"
            raise WorkerFileError(f"{sent}, that nobody asked for", DO_NOT_TRUST)
        self._received += 1
        path = self._folder / f"{self._received}"
        with storage_errors(self._folder):
            self._folder.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as file:
                missing = header.size
                while missing:
                    part = await read(min(missing, _CHUNK_BYTES))
                    if not part:
                        path.unlink()
                        return
                    file.write(part)
                    missing -= len(part)
        self._files[header.name], self._sizes[header.name] = path, header.size

    async def take(self, name: str, destination: Path, check: Callable[[Path], None]) -> Path:
        """Check a file and move it atomically to `destination`. Raises WorkerFileError for a file
        that was not sent or fails the check, EurekaError when it cannot be stored."""
        path = self._files.pop(name, None)
        self._sizes.pop(name, None)
        if path is None:
            what = f"a worker named the file {name[:100]!r} and did not send it"
            raise WorkerFileError(what, DO_NOT_TRUST)
        await asyncio.to_thread(_move_checked, path, destination, check)
        return destination

    def drop(self, name: str) -> None:
        path = self._files.pop(name, None)
        self._sizes.pop(name, None)
        if path is not None:
            path.unlink(missing_ok=True)


def _move_checked(path: Path, destination: Path, check: Callable[[Path], None]) -> None:
    try:
        check(path)
        # unlike a rename, a move works across file systems
        write_file(destination, lambda draft: shutil.move(path, draft))
    finally:
        path.unlink(missing_ok=True)


def check_state(path: Path) -> None:
    """Raises WorkerFileError for an invalid safetensors file, or a header out of bounds."""
    with _tensors(path):
        pass


def check_policy(path: Path) -> None:
    """Raises WorkerFileError unless it is a safetensors file of float32 tensors, or the bytes of a
    command's policy."""
    with _tensors(path) as file:
        names = list(file.keys())
        strange = [name for name in names if file.get_slice(name).get_dtype() != "F32"]
    if strange and names != [COMMAND_POLICY]:
        what = f"a worker sent a policy whose {strange[0][:100]!r} is no tensor of float32 numbers"
        raise WorkerFileError(what, DO_NOT_TRUST)


def _tensors(path: Path) -> Any:
    from safetensors import SafetensorError

    try:
        return open_tensors(path, "numpy")
    except (OSError, SafetensorError) as error:
        what = f"a worker sent a broken safetensors file: {str(error)[:200]}"
        raise WorkerFileError(what, DO_NOT_TRUST) from None


def check_trajectories(path: Path) -> None:
    """Raises WorkerFileError unless it is an npz file of plain arrays in bounds."""
    try:
        check_arrays(path)
    except Exception as error:  # noqa: BLE001  (zip, zlib and numpy raise anything for hostile files)
        what = f"a worker sent a broken npz file: {str(error)[:200]}"
        raise WorkerFileError(what, DO_NOT_TRUST) from None


def check_video(path: Path) -> None:
    """Raises WorkerFileError unless it begins as an mp4 or a GIF and is of a bounded size."""
    begin = _beginning(path, MOST_VIDEO_BYTES)
    if not (begin[4:8] == b"ftyp" or begin[:6] == b"GIF89a"):
        raise _unlike("video", path)


def check_picture(path: Path) -> None:
    """Raises WorkerFileError unless it begins as a JPEG and is of a bounded size."""
    if _beginning(path, MOST_PICTURE_BYTES)[:3] != b"\xff\xd8\xff":
        raise _unlike("picture", path)


def _beginning(path: Path, most_bytes: int) -> bytes:
    """First bytes of a file; none of one that is too large."""
    with path.open("rb") as file:
        return file.read(12) if path.stat().st_size <= most_bytes else b""


def _unlike(kind: str, path: Path) -> WorkerFileError:
    what = f"a worker sent {path.stat().st_size:,} bytes that are no {kind}, or too large a one"
    return WorkerFileError(what, DO_NOT_TRUST)
