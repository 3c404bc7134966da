"""Tar archives made on the way to the engine: gigabytes pass, and neither a file nor the memory
holds them."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

_PIECE_BYTES = 1 << 20


@dataclass(frozen=True)
class Entry:
    """One member: a file of this machine, some bytes, a link, or (with none of these) a folder."""

    name: str
    """Without a leading slash."""
    source: Path | None = None
    data: bytes | None = None
    link: str | None = None
    mode: int = 0o755


def tar_stream(entries: Iterable[Entry]) -> Iterator[bytes]:
    """The archive in pieces. All belongs to root; times are those of the files, which compiled
    Python files depend on. Raises OSError."""
    for entry in entries:
        member = tarfile.TarInfo(entry.name)
        member.mode = entry.mode
        if entry.source is not None:
            with entry.source.open("rb") as file:
                status = os.fstat(file.fileno())
                member.size, member.mtime = status.st_size, int(status.st_mtime)
                yield member.tobuf(tarfile.PAX_FORMAT)
                yield from _pieces(file.fileno(), member.size, entry.source)
        elif entry.data is not None:
            member.size = len(entry.data)
            yield member.tobuf(tarfile.PAX_FORMAT)
            yield entry.data + _padding(member.size)
        else:
            member.type = tarfile.DIRTYPE if entry.link is None else tarfile.SYMTYPE
            member.linkname = entry.link or ""
            yield member.tobuf(tarfile.PAX_FORMAT)
    yield bytes(2 * tarfile.BLOCKSIZE)


def _pieces(descriptor: int, size: int, source: Path) -> Iterator[bytes]:
    left = size
    while left:
        piece = os.read(descriptor, min(left, _PIECE_BYTES))
        if not piece:
            raise OSError(0, "it became shorter while it was read", str(source))
        left -= len(piece)
        yield piece
    if padding := _padding(size):
        yield padding


def _padding(size: int) -> bytes:
    return bytes(-size % tarfile.BLOCKSIZE)
