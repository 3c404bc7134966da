"""Files of a folder and their sizes. No link is followed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def files_below(folder: Path) -> Iterator[os.DirEntry[str]]:
    """All plain files in a folder and in the folders below it, in any order."""
    folders = [str(folder)]
    while folders:
        with suppress(OSError), os.scandir(folders.pop()) as entries:  # it may be gone by now
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                elif entry.is_file(follow_symlinks=False):
                    yield entry


def size_of(file: os.DirEntry[str]) -> int:
    """Bytes of a file; 0 for one that is gone by now."""
    with suppress(OSError):
        return file.stat(follow_symlinks=False).st_size
    return 0


def folder_size(folder: Path) -> int:
    """Bytes of all files in a folder."""
    return sum(map(size_of, files_below(folder)))
