"""Cache of trained baselines, shared by the runs of one folder."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from pydantic import ValidationError

from eureka_agent.archive.artefacts import POLICY
from eureka_agent.archive.files import copy_file, write_text
from eureka_agent.archive.run_folder import versions
from eureka_agent.base_record import Record
from eureka_agent.records import Outcome, TaskDescription
from eureka_agent.rewards import RewardSpecification
from eureka_agent.settings import SearchSettings, training_part

CACHE_FOLDER = ".cache"
_LOCKS: WeakValueDictionary[Path, asyncio.Lock] = WeakValueDictionary()
"""Locks of baselines that are looked for."""
_CODE_THAT_TRAINS = (
    "training/*.py",
    "simulation/*.py",
    "worker/*.py",
    "summaries.py",
    "search/trial.py",
)


@cache
def trainer_files() -> str:
    """SHA-256 over the modules that determine a training's result."""
    digest = hashlib.sha256()
    package = Path(__file__).resolve().parents[1]
    for pattern in _CODE_THAT_TRAINS:
        for path in sorted(package.glob(pattern)):
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


@cache
def code_fingerprint() -> str:
    """SHA-256 over these modules and the packages of environments."""
    digest = hashlib.sha256(trainer_files().encode())
    found = (point.dist for point in entry_points(group="gymnasium.envs"))
    plugins = {f"{package.name} {package.version}" for package in found if package}
    digest.update(json.dumps(sorted(plugins)).encode())
    return digest.hexdigest()


def baseline_context(description: TaskDescription, settings: SearchSettings) -> dict[str, Any]:
    """All of a search that its baselines depend on, in plain JSON types."""
    return {
        "environment": [description.environment_fingerprint, description.fingerprint],
        "task": description.task,
        "settings": training_part(settings).model_dump(mode="json"),
        "evaluation_episodes": settings.evaluation_episodes,
        "scoring_episodes": settings.scoring_episodes,
    }


class BaselineCache:
    """Outcomes and policies of baselines, addressed by everything that they depend on."""

    def __init__(
        self,
        runs: Path,
        description: TaskDescription,
        settings: SearchSettings,
        device_kind: str = "cpu",
    ) -> None:
        """`runs`: folder of all runs, which has the cache as a hidden folder; `device_kind`:
        `"cpu"` or `"cuda"`, whose results differ."""
        self._folder = runs / CACHE_FOLDER / "baselines"
        self._context = json.dumps(
            {
                **baseline_context(description, settings),
                "device": device_kind,
                "versions": versions(),
                "code": code_fingerprint(),
            },
            sort_keys=True,
        )

    def _entry(self, reward: RewardSpecification, seed: int) -> Path:
        key = f"{self._context}\0{reward.source}\0{seed}"
        return self._folder / hashlib.sha256(key.encode()).hexdigest()

    @asynccontextmanager
    async def alone(self, reward: RewardSpecification, seed: int) -> AsyncIterator[None]:
        """Let one search of this process at a time look for this baseline, train it and put it."""
        entry = self._entry(reward, seed)
        lock = _LOCKS.get(entry)
        if lock is None:
            lock = _LOCKS[entry] = asyncio.Lock()
        async with lock:
            yield

    def find(self, reward: RewardSpecification, seed: int) -> tuple[Outcome, Path] | None:
        """Outcome and policy file of this reward and seed; None where they are not cached."""
        entry = self._entry(reward, seed)
        try:
            text = (entry / "outcome.json").read_text(encoding="utf-8")
            outcome = Outcome.model_validate_json(text)
        except (OSError, ValidationError):
            return None
        return (outcome, entry / POLICY) if (entry / POLICY).is_file() else None

    def put(self, reward: RewardSpecification, seed: int, outcome: Outcome, policy: Path) -> None:
        """Store a baseline. The outcome is written last: an entry that has one is complete."""
        entry = self._entry(reward, seed)
        copy_file(policy, entry / POLICY)
        write_text(entry / "outcome.json", outcome.model_dump_json(indent=2))


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
