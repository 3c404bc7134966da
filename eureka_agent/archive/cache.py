"""Caches beside the runs: trained baselines, and measured records, each under the hash of all that
it depends on."""

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
_CODE_THAT_TRAINS = ("training", "simulation", "worker", "summaries.py", "search/trial.py")

RecordT = TypeVar("RecordT", bound=Record)


def _digest(key: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()


class RecordCache:
    """Records of one kind each, by a key of JSON values."""

    def __init__(self, runs: Path, name: str) -> None:
        """`runs`: folder of all runs; `name`: of the cache in it."""
        self._folder = runs / CACHE_FOLDER / name

    def find(self, key: Mapping[str, Any], kind: type[RecordT]) -> RecordT | None:
        """The record of this key; None where there is none that can be read."""
        return _read(self._folder / f"{_digest(key)}.json", kind)

    def put(self, key: Mapping[str, Any], record: Record) -> None:
        """Store a record. Raises RunFolderError on a full disk."""
        path = self._folder / f"{_digest(key)}.json"
        write_text(path, record.model_dump_json(indent=2) + "\n")


def _read(path: Path, kind: type[RecordT]) -> RecordT | None:
    try:
        return kind.model_validate_json(path.read_text(encoding="utf-8"))
    except (OSError, ValidationError, UnicodeDecodeError):
        return None


@cache
def trainer_files() -> str:
    """SHA-256 over the modules that determine a training's result."""
    digest = hashlib.sha256()
    package = Path(__file__).resolve().parents[1]
    for name in _CODE_THAT_TRAINS:
        for path in sorted(package.glob(name if name.endswith(".py") else f"{name}/*.py")):
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
        # networks with room for designed observations round otherwise
        "designs": settings.design != "reward",
    }


class BaselineCache:
    """Outcomes and policies of baselines."""

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
        code = {"device": device_kind, "versions": versions(), "code": code_fingerprint()}
        self._context = {**baseline_context(description, settings), **code}

    def _entry(self, reward: RewardSpecification, seed: int) -> Path:
        return self._folder / _digest({**self._context, "reward": reward.source, "seed": seed})

    @asynccontextmanager
    async def alone(self, reward: RewardSpecification, seed: int) -> AsyncIterator[None]:
        """Let one search of this process at a time look for this baseline, train it and put it."""
        async with _LOCKS.setdefault(self._entry(reward, seed), asyncio.Lock()):
            yield

    def find(self, reward: RewardSpecification, seed: int) -> tuple[Outcome, Path] | None:
        """Outcome and policy file of this reward and seed; None where they are not cached."""
        entry = self._entry(reward, seed)
        outcome = _read(entry / "outcome.json", Outcome)
        return (outcome, entry / POLICY) if outcome and (entry / POLICY).is_file() else None

    def put(self, reward: RewardSpecification, seed: int, outcome: Outcome, policy: Path) -> None:
        """Store a baseline. The outcome is written last: an entry that has one is complete."""
        entry = self._entry(reward, seed)
        copy_file(policy, entry / POLICY)
        write_text(entry / "outcome.json", outcome.model_dump_json(indent=2))
