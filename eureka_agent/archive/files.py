"""Atomic writes: a file is written under another name, then renamed."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path

from eureka_agent.archive.safe_files import copy_plain, open_plain
from eureka_agent.archive.storage_errors import storage_errors


def write_text(path: Path, text: str) -> None:
    """Write a file atomically."""
    write_file(path, lambda draft: draft.write_text(text, encoding="utf-8"))


def write_file(path: Path, write: Callable[[Path], object]) -> None:
    """Fill a draft by `write` and rename it. Raises RunFolderError on a full disk."""
    # unique, since two searches may write one entry of the cache at once
    draft = path.with_name(f".{path.name}.draft-{os.getpid()}-{threading.get_ident()}")
    with storage_errors(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            # created here, so that `write` does not follow somebody's link
            draft.unlink(missing_ok=True)
            os.close(open_plain(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
            write(draft)
            os.replace(draft, path)
        except BaseException:  # also one of `write`, and Ctrl-C
            draft.unlink(missing_ok=True)
            raise


def copy_file(source: Path, path: Path) -> None:
    """Copy a file atomically."""
    write_file(path, lambda draft: copy_plain(source, draft))


def dump_json(value: object) -> str:
    """JSON in the form of a run folder's files."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
