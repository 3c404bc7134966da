"""Files that a worker sent: bounded when they come, looked at before anybody reads them."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from eureka_agent.archive.files import write_file
from eureka_agent.archive.storage_errors import storage_errors
from eureka_agent.array_files import check_arrays, open_tensors
from eureka_agent.errors import EurekaError
from eureka_agent.protocol.messages import FileHeader

MOST_BYTES = 1 << 30
"""That one worker may have sent and nobody has taken yet."""
MOST_FILES = 1000
_CHUNK_BYTES = 1 << 20
DO_NOT_TRUST = "do not trust what this worker wrote"
"""Next step after a worker that broke the protocol."""


class WorkerFileError(EurekaError):
    """A file that a worker named and did not send, or that is not what it should be."""


class Inbox:
    """What one worker has sent, in a folder that it does not see, under names of the driver's
    own."""

    def __init__(self, folder: Path) -> None:
        """`folder`: is made when the first file comes."""
        self._folder = folder
        self._files: dict[str, Path] = {}
        self._sizes: dict[str, int] = {}
        self._received = 0

    async def receive(self, header: FileHeader, read: Callable[[int], Awaitable[bytes]]) -> None:
        """Store the file that follows a header. `read`: gives at most so many of the next bytes,
        none at the end of the stream.

        Raises WorkerFileError where there would be too much, EurekaError for a full disk. At the
        end of the stream the file is dropped.
        """
        self.drop(header.name)
        if len(self._files) >= MOST_FILES or sum(self._sizes.values()) + header.size > MOST_BYTES:
            raise WorkerFileError(
                f"a worker sent more than {MOST_FILES} files, or {MOST_BYTES} bytes, that nobody"
                " asked for",
                DO_NOT_TRUST,
            )
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
        """Move a file to where it is to stay, in one step, once `check` has found nothing wrong
        with it. Returns `destination`.

        Raises WorkerFileError for one that was not sent and for what `check` raises; EurekaError
        when it cannot be put there.
        """
        path = self._files.pop(name, None)
        self._sizes.pop(name, None)
        if path is None:
            raise WorkerFileError(
                f"a worker named the file {name[:100]!r} and did not send it", DO_NOT_TRUST
            )
        await asyncio.to_thread(_move_checked, path, destination, check)
        return destination

    def drop(self, name: str) -> None:
        """Forget a file, if it is there."""
        path = self._files.pop(name, None)
        self._sizes.pop(name, None)
        if path is not None:
            path.unlink(missing_ok=True)


def _move_checked(path: Path, destination: Path, check: Callable[[Path], None]) -> None:
    try:
        check(path)
        write_file(
            destination, lambda draft: shutil.move(path, draft)
        )  # perhaps from another file system
    finally:
        path.unlink(missing_ok=True)


def check_state(path: Path) -> None:
    """Raises WorkerFileError for what is no safetensors file, or has too much in its header."""
    with _tensors(path):
        pass


def check_policy(path: Path) -> None:
    """Raises WorkerFileError for what is no safetensors file of float32 tensors."""
    with _tensors(path) as file:
        strange = [name for name in file.keys() if file.get_slice(name).get_dtype() != "F32"]  # noqa: SIM118  (no mapping)
    if strange:
        raise WorkerFileError(
            f"a worker sent a policy whose {strange[0][:100]!r} is no tensor of float32 numbers",
            DO_NOT_TRUST,
        )


def _tensors(path: Path) -> Any:
    from safetensors import SafetensorError

    try:
        return open_tensors(path, "numpy")  # which comes with it
    except (OSError, SafetensorError) as error:
        raise WorkerFileError(
            f"a worker sent a broken safetensors file: {str(error)[:200]}", DO_NOT_TRUST
        ) from None


def check_trajectories(path: Path) -> None:
    """Raises WorkerFileError for what is no npz file of plain arrays in bounds."""
    try:
        check_arrays(path)
    except Exception as error:  # noqa: BLE001  (of zip, zlib and numpy, which were not made for files that are meant to break them)
        raise WorkerFileError(
            f"a worker sent a broken npz file: {str(error)[:200]}", DO_NOT_TRUST
        ) from None
