"""Types of what the archive's table of facts may hold, by key: whoever reads a fact finds it of its
type, whoever wrote the file."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from eureka_agent.records import RunStatus, Score


class _Budget(BaseModel):
    text: str
    seconds_before: Annotated[float, Field(ge=0, le=1e10)] = 0.0


class _Stopped(BaseModel):
    budget: str
    iterations: int
    text: str


class _Loosened(BaseModel):
    iteration: int
    sample: int
    text: str


class _Change(BaseModel):
    time: str
    name: str
    before: Any
    now: Any


class _Spent(BaseModel):
    limits: dict[str, str]
    text: str


_TYPES: dict[str, Any] = {
    "baselines_not_awaited": str,
    "budget": _Budget,
    "budget_for_models_spent": _Spent,
    "command": list[str],
    "created": str,
    "designer": str,
    "devices": list[str],
    "ended_early": str,
    "fitness_accepted": str,
    "fitness_messages": list[str],
    "git_commit": str | None,
    "gate_loosened": _Loosened,
    "given_source": str,
    "id": str,
    "message": str,
    "prices": dict[str, dict[str, Any]],
    "recorded_settings": dict[str, Any],
    "seconds": Annotated[float, Field(ge=0, le=1e10)],
    "settings": dict[str, Any],
    "settings_changes": list[_Change],
    "signature": str,
    "status": RunStatus,
    "stopped_by_budget": _Stopped,
    "told_baselines": list[Score],
    "versions": dict[str, str],
    "wall": str,
    "written_fitness": dict[str, Any],
}


def checked_fact(key: str, value: Any) -> Any:
    """The value itself. Raises ValueError where it is not what is stored under `key`; a key that is
    not listed may hold anything."""
    if key not in _TYPES:
        return value
    try:
        _adapter(key).validate_python(value)
    except ValidationError as error:
        raise ValueError(error.errors()[0]["msg"]) from None
    return value


@cache
def _adapter(key: str) -> TypeAdapter[Any]:
    return TypeAdapter(_TYPES[key])
