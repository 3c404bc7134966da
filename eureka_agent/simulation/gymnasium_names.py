"""Named variables of Gymnasium's own environments, from `gymnasium_variables/<id>.yaml`."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import prod
from pathlib import Path
from typing import Any, Literal

import gymnasium
import numpy
import yaml
from gymnasium import spaces
from torch import Tensor

from eureka_agent.task import Channel, Variable

_FOLDER = Path(__file__).with_name("gymnasium_variables")
_OTHER_MODEL = "xml_file"
"""Option of Gymnasium's MuJoCo environments whose model need not have the named joints."""
Ends = Literal["success", "failure", "either", "none"]
StatePlace = Literal["mujoco", "attribute", "hidden"]
"""MuJoCo's data, the environment's attribute `state`, or nowhere."""


@dataclass(frozen=True)
class Part:
    """A part of an observation vector that is a variable."""

    variable: Variable
    columns: slice
    entries: tuple[str, ...]
    """Names of its numbers in order; empty for a single one."""
    scale: float
    """Factor from the variable to the observation."""

    def values(self, observations: Tensor) -> Tensor:
        """The variable's values. `observations`: shape (num_envs, num_observations)."""
        found = observations[:, self.columns]
        found = found if self.scale == 1.0 else found / self.scale
        return found.reshape(len(observations), *self.variable.shape)

    @property
    def channel(self) -> Channel:
        """The part among the names of a policy's inputs."""
        each = self.variable
        return Channel(each.name, self.entries, each.unit, each.frame, each.doc, self.scale)


@dataclass(frozen=True)
class Names:
    """The file of one id."""

    file: str
    doc: str
    """Description of the environment; its first paragraph is the summary."""
    sentence: str
    ends_by: Ends
    """Meaning of an episode's end, which Gymnasium does not tell."""
    ends_when: str
    """Condition of an end in words; empty where the environment's attributes tell it."""
    masses_and_sizes: tuple[str, ...]
    parts: tuple[Part, ...]
    """All numbers of the observation, in their order."""
    info: Mapping[str, Variable]
    """Variables that are numbers of the info, by key."""
    actions: tuple[Mapping[str, str], ...]
    """Name, unit, frame and doc of each number of an action; empty for choices."""
    state: StatePlace
    """Place of the whole state of the physics; `"hidden"`: it cannot be read from outside."""
    digest: str
    """SHA-256 of the content."""

    @property
    def size(self) -> int:
        """Numbers of the observation that it names."""
        return self.parts[-1].columns.stop

    def problem(self, space: spaces.Space, options: Mapping[str, Any]) -> str:
        """The reason why the names do not fit; empty if they do."""
        found = spaces.flatdim(space)
        if found != self.size:
            made = f"made with {dict(options)!r} it has" if options else "it has"
            return f"{made} {found} numbers, and {self.file} names {self.size}"
        if _OTHER_MODEL in options:
            return f"{_OTHER_MODEL!r} is another model than the one that {self.file} describes"
        return ""

    def action_channels(self, space: spaces.Space) -> tuple[Channel, ...]:
        """Names of a policy's outputs. `space`: the environment's."""
        assert isinstance(space, spaces.Box)
        bounds = zip(space.low.tolist(), space.high.tolist(), strict=True)
        return tuple(
            Channel(each["name"], (), each["unit"], each["frame"], each["doc"], range=(low, high))
            for each, (low, high) in zip(self.actions, bounds, strict=True)
        )


def names_of(gymnasium_id: str) -> Names | None:
    """The names of Gymnasium's own environment with this id; None for any other environment."""
    registered = gymnasium.registry.get(gymnasium_id)
    point = None if registered is None else registered.entry_point
    if not isinstance(point, str) or not point.startswith("gymnasium.envs."):
        return None
    return _names(gymnasium_id) if gymnasium_id in named_ids() else None


def named_ids() -> frozenset[str]:
    """The ids that have names."""
    return frozenset(path.stem for path in _FOLDER.glob("*.yaml"))


@cache
def _names(gymnasium_id: str) -> Names:
    content = _content(gymnasium_id)
    ends = content["ends"]
    return Names(
        file=f"{gymnasium_id}.yaml",
        doc=content["doc"].strip() + _actions_text(content.get("actions")),
        sentence=content["sentence"],
        ends_by=ends["by"],
        ends_when=ends.get("when", ""),
        masses_and_sizes=tuple(content.get("masses_and_sizes", ())),
        parts=_parts(content["observation"]),
        info={each["name"]: _variable(each) for each in content.get("info", ())},
        actions=_actions(content.get("actions")),
        state=content.get("state", "hidden"),
        digest=hashlib.sha256(repr(content).encode()).hexdigest(),
    )


def _content(gymnasium_id: str) -> dict[str, Any]:
    """A file's content on top of that of the file `same_as`; `change` replaces parts of entries."""
    content = yaml.safe_load((_FOLDER / f"{gymnasium_id}.yaml").read_text(encoding="utf-8"))
    base = content.pop("same_as", None)
    if base is None:
        return content
    changes = {each["name"]: each for each in content.pop("change", ())}
    merged = {**_content(base), **content}
    merged["observation"] = [
        {**each, **changes.pop(each["name"], {})} for each in merged["observation"]
    ]
    assert not changes, f"{gymnasium_id}.yaml changes {', '.join(changes)}, which {base} lacks"
    return merged


def _shape(entry: Mapping[str, Any]) -> tuple[int, ...]:
    named = entry.get("entries")
    return tuple(entry.get("shape", ())) if named is None else (len(named),)


def _variable(entry: Mapping[str, Any]) -> Variable:
    named = entry.get("entries", ())
    letters = all(len(each) == 1 for each in named)  # the doc explains axes itself
    order = "" if letters else f"; in this order: {', '.join(named)}"
    limits = entry.get("range")
    return Variable(
        entry["name"],
        _shape(entry),
        entry["unit"],
        entry["frame"],
        entry["doc"] + order,
        None if limits is None else (float(limits[0]), float(limits[1])),
    )


def _parts(entries: Sequence[Mapping[str, Any]]) -> tuple[Part, ...]:
    parts, start = list[Part](), 0
    for entry in entries:
        shape = _shape(entry)
        indices = numpy.ndindex(*shape) if shape else ()
        numbers = entry.get("entries", [",".join(map(str, index)) for index in indices])
        columns = slice(start, start + prod(shape))
        parts.append(
            Part(_variable(entry), columns, tuple(numbers), float(entry.get("scale", 1.0)))
        )
        start = columns.stop
    return tuple(parts)


def _actions(entry: Mapping[str, Any] | None) -> tuple[Mapping[str, str], ...]:
    if entry is None:
        return ()
    same = {name: entry[name] for name in ("unit", "frame", "doc")}
    return tuple({"name": name, **same} for name in entry["entries"])


def _actions_text(entry: Mapping[str, Any] | None) -> str:
    """A paragraph on the order and meaning of actions."""
    if entry is None:
        return ""
    several = len(entry["entries"]) > 1
    order = f", in this order: {', '.join(entry['entries'])}" if several else ""
    return f"\n\nActions{order}. {entry['doc'][:1].upper()}{entry['doc'][1:]}."
