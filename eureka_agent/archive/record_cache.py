"""Cache of measured records beside the runs, addressed by what they depend on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from eureka_agent.archive.baseline_cache import CACHE_FOLDER
from eureka_agent.archive.files import write_text
from eureka_agent.base_record import Record

RecordT = TypeVar("RecordT", bound=Record)


class RecordCache:
    """Records of one kind each, by a key of JSON values."""

    def __init__(self, runs: Path, name: str) -> None:
        """`runs`: folder of all runs; `name`: of the cache in it."""
        self._folder = runs / CACHE_FOLDER / name

    def find(self, key: Mapping[str, Any], kind: type[RecordT]) -> RecordT | None:
        """The record of this key; None where there is none that can be read."""
        try:
            return kind.model_validate_json(self._path(key).read_text(encoding="utf-8"))
        except (OSError, ValidationError, UnicodeDecodeError):
            return None

    def put(self, key: Mapping[str, Any], record: Record) -> None:
        """Store a record. Raises RunFolderError on a full disk."""
        write_text(self._path(key), record.model_dump_json(indent=2) + "\n")

    def _path(self, key: Mapping[str, Any]) -> Path:
        text = json.dumps(key, sort_keys=True)
        return self._folder / f"{hashlib.sha256(text.encode()).hexdigest()}.json"
