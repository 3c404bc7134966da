"""A run folder, or a folder of runs, as one `.tar.zst` file, and such a file as a folder again.

A packed file says nothing of the machine: names are relative, and there are no owners. Equal
folders make equal files. Databases are copied as one state, also while a search writes to them.
Hidden files stay behind: locks, drafts, scratch and saved states.

A file to unpack is not trusted. Only plain files come out of it, under valid names, into a new
folder. The stream has a bounded size, and so has what is read for one header.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from eureka_agent.archive.files import write_file
from eureka_agent.archive.run_folder import Run, find_run, open_run
from eureka_agent.archive.safe_files import inside, open_plain
from eureka_agent.archive.sizes import files_below
from eureka_agent.archive.sqlite_files import copy_database
from eureka_agent.archive.storage_errors import FILE_NAME, storage_errors
from eureka_agent.errors import RunFolderError, system_reason
from eureka_agent.llm.secrets import variable_with_key

# not the package `zstandard`: where that is, httpx asks servers for zstd, which llm/ refuses
if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

ENDING = ".tar.zst"
LEVEL = 10
MOST_RATIO = 200
"""Bound on unpacked bytes by packed ones; the text of a journal comes to some 30."""
LEAST_BOUND_BYTES = 64 << 20
MOST_HEADER_BYTES = 64 << 10
_CHUNK_BYTES = 1 << 20
_DATABASE = ".sqlite"
_BESIDE_DATABASES = tuple(f"{_DATABASE}{end}" for end in ("-journal", "-wal", "-shm"))
_SHOWN = ("settings.yaml", "environment.json", FILE_NAME, "curves.csv")
_UNREADABLE = (
    *(zstd.ZstdError, tarfile.TarError, EOFError),
    *(ValueError, OverflowError),  # tarfile's, for numbers that are none
)

Wanted = Callable[[str], bool]


@dataclass(frozen=True)
class Packed:
    """A packed file."""

    file: Path
    files: int
    size: int
    """Bytes of the packed file."""


def is_packed(word: str) -> bool:
    """True for the name of a packed file."""
    return word.endswith(ENDING)


# ── packing ───────────────────────────────────────────────────────────────────────────────────────


def pack(folder: Path, output: Path) -> Packed:
    """Write a folder with all runs in it to a new file. Raises RunFolderError where that fails, and
    for a folder that holds a key of this user."""
    folder = folder.resolve()
    if output.exists() or output.is_symlink():
        raise RunFolderError(
            f"{str(output)!r} is there already, and nothing was written",
            "remove it, or name another file with --output",
        )
    if output.absolute().resolve().is_relative_to(folder):
        raise RunFolderError(
            f"{str(output)!r} lies in the folder that is packed", "name a file outside of it"
        )
    names = sorted(
        os.path.relpath(entry.path, folder)
        for entry in files_below(folder)
        if not entry.name.endswith(_BESIDE_DATABASES)
    )
    names = [name for name in names if not any(part[0] == "." for part in name.split(os.sep))]
    written = 0

    def write(draft: Path) -> None:
        nonlocal written
        with (
            tempfile.TemporaryDirectory(prefix="eureka-") as scratch,
            zstd.open(draft, "wb", level=LEVEL) as stream,
            tarfile.open(fileobj=stream, mode="w|", format=tarfile.PAX_FORMAT) as tar,
        ):
            for name in names:
                written += _add(tar, folder, name, Path(scratch) / "copy")

    write_file(output, write)
    return Packed(output, written, output.stat().st_size)


def _add(tar: tarfile.TarFile, folder: Path, name: str, copy: Path) -> bool:
    """Add a file. False for one that a running search has removed meanwhile."""
    path = inside(folder, *name.split(os.sep))
    try:
        with os.fdopen(open_plain(path), "rb") as file:
            status = os.fstat(file.fileno())
            member = tarfile.TarInfo(f"{folder.name}/{name}")
            member.size, member.mtime, member.mode = status.st_size, int(status.st_mtime), 0o644
            if not name.endswith(_DATABASE):
                _check_keys(file, name)
                tar.addfile(member, file)  # a log that grows is cut at this size
                return True
    except FileNotFoundError:
        return False
    copy.unlink(missing_ok=True)
    copy_database(path, copy)
    with copy.open("rb") as file:
        member.size = copy.stat().st_size
        _check_keys(file, name)
        tar.addfile(member, file)
    return True


def _check_keys(file: IO[bytes], name: str) -> None:
    """Raise RunFolderError for a file with a key of this user, and rewind it otherwise."""
    before = b""
    while chunk := file.read(_CHUNK_BYTES):
        if variable := variable_with_key(before + chunk):
            raise RunFolderError(
                f"{name!r} holds the value of the environment variable {variable}, so nothing was"
                " packed",
                "take the key out of that file, or do not share the run",
            )
        before = chunk[-4096:]
    file.seek(0)


# ── unpacking ─────────────────────────────────────────────────────────────────────────────────────


class _Reader(io.RawIOBase):
    """Unpacked bytes, forwards and within bounds."""

    def __init__(self, stream: io.BufferedIOBase, most: int) -> None:
        self._stream, self._most = stream, most
        self._position = 0
        self.left = MOST_HEADER_BYTES
        """Bytes that may be read before this is set again. Skipped ones do not count."""

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if whence != io.SEEK_SET or offset < self._position:
            raise tarfile.ReadError("its parts are out of order")
        while self._position < offset:
            if not self._take(min(offset - self._position, _CHUNK_BYTES)):
                raise tarfile.ReadError("it is cut off")
        return self._position

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= self.left:
            raise tarfile.ReadError("it has an endless header")
        self.left -= size
        return self._take(size)

    def _take(self, size: int) -> bytes:
        data = self._stream.read(size)
        self._position += len(data)
        if self._position > self._most:
            raise tarfile.ReadError(f"it unpacks to more than {self._most:,} bytes")
        return data


def unpack(file: Path, parent: Path, name: str = "", wanted: Wanted | None = None) -> Path:
    """Unpack a file to a new folder in `parent`, with its own name or another. `wanted` chooses
    files by their last name. Raises RunFolderError for anything but packed runs."""
    with storage_errors(parent):
        parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=".unpacked-", dir=parent))
    try:
        _unpack_to(draft, file, wanted)
        (top,) = list(draft.iterdir()) or [draft / "none"]
        archives = [Path(each.path) for each in files_below(top) if each.name == FILE_NAME]
        if not archives:
            raise RunFolderError(f"{str(file)!r} holds no run", f"expected a {ENDING} of runs")
        for each in archives:
            open_run(each.parent, reading=True).archive.close()
        folder = parent / (name or top.name)
        if folder.exists():
            raise RunFolderError(
                f"{str(folder)!r} is there already, and nothing was unpacked",
                "move it away, or name another folder with --output",
            )
        with storage_errors(parent):
            os.rename(top, folder)
        return folder
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _unpack_to(draft: Path, file: Path, wanted: Wanted | None) -> None:
    try:
        packed = os.fdopen(os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    except OSError as error:
        raise _unreadable(file, system_reason(error)) from None
    with packed:
        most = max(LEAST_BOUND_BYTES, MOST_RATIO * os.fstat(packed.fileno()).st_size)
        try:
            with zstd.open(packed, "rb") as stream:
                reader: Any = _Reader(stream, most)
                with tarfile.open(fileobj=reader, mode="r:") as tar:
                    _write_members(tar, reader, draft, wanted)
        except _UNREADABLE as error:
            raise _unreadable(file, " ".join(str(error).split()) or "it is cut off") from None


def _write_members(
    tar: tarfile.TarFile, reader: _Reader, draft: Path, wanted: Wanted | None
) -> None:
    top = ""
    while (member := tar.next()) is not None:
        reader.left = 0
        parts = member.name.split("/")
        top = top or parts[0]
        if member.type not in (tarfile.REGTYPE, tarfile.DIRTYPE) or member.sparse is not None:
            raise tarfile.ReadError(f"{member.name[:100]!r} is no plain file")
        if parts[0] != top or any(part.startswith(".") for part in parts):
            raise tarfile.ReadError(f"{member.name[:100]!r} is no file of a run")
        path = inside(draft, *parts)
        if member.type == tarfile.REGTYPE:
            if len(parts) < 2:
                raise tarfile.ReadError(f"{member.name[:100]!r} lies in no folder")
            if wanted is None or wanted(parts[-1]):
                reader.left = member.size
                _write(tar, member, path)
        reader.left = MOST_HEADER_BYTES


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
    content = tar.extractfile(member)
    assert content is not None  # it is a plain file
    with content, storage_errors(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        # a second file of the same name is refused
        with os.fdopen(open_plain(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
            shutil.copyfileobj(content, file, _CHUNK_BYTES)


def _unreadable(file: Path, reason: str) -> RunFolderError:
    return RunFolderError(
        f"{str(file)!r} cannot be unpacked: {reason}", f"expected a {ENDING} file of runs"
    )


@contextmanager
def viewing(word: str) -> Iterator[Run]:
    """The run of a word, or of a packed file, open for reading. Of a packed file only what `show`
    reads is unpacked, for the time of the block."""
    with tempfile.TemporaryDirectory(prefix="eureka-") as scratch:
        folder = find_run(word) if not is_packed(word) else None
        folder = folder or unpack(Path(word), Path(scratch), wanted=_SHOWN.__contains__)
        run = open_run(folder, reading=True)
        try:
            yield run
        finally:
            run.archive.close()
