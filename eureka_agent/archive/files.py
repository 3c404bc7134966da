"""Writing files that are whole when they are there: under another name first, then renamed."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path

from eureka_agent.archive.database import storage_errors
from eureka_agent.archive.safe_files import copy_plain, open_plain


def write_text(path: Path, text: str) -> None:
    """Write a whole file or none."""
    write_file(path, lambda draft: draft.write_text(text, encoding="utf-8"))


def write_file(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a draft beside `path`, then put it into place. Raises RunFolderError on a
    full disk."""
    # a name of its own: two searches may fill one entry of the cache at once
    draft = path.with_name(f".{path.name}.draft-{os.getpid()}-{threading.get_ident()}")
    with storage_errors(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            # made here, so that `write` finds a file of this process and no link that somebody put
            # there
            draft.unlink(missing_ok=True)
            os.close(open_plain(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
            write(draft)
            os.replace(draft, path)
        except OSError:
            draft.unlink(missing_ok=True)
            raise


def copy_file(source: Path, path: Path) -> None:
    """Copy a whole file or none."""
    write_file(path, lambda draft: copy_plain(source, draft))


def dump_json(value: object) -> str:
    """JSON as it is kept in a run folder."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
