"""Named variables of Gymnasium's own environments, from `gymnasium_variables/<id>.yaml`; and the
whole state of those of which it is known where it lies."""

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
import torch
import yaml
from gymnasium import spaces
from torch import Tensor

from eureka_agent.task import Channel, Variable

_FOLDER = Path(__file__).with_name("gymnasium_variables")
_OTHER_MODEL = "xml_file"
"""Option of Gymnasium's MuJoCo environments whose model need not have the named joints."""
_PHYSICS, _GENERATOR = "gymnasium.physics", "gymnasium.generator"
_WORD = 64
Ends = Literal["success", "failure", "either", "none"]
StatePlace = Literal["mujoco", "attribute", "hidden"]
"""MuJoCo's data, the environment's attribute `state`, or nowhere."""


@dataclass(frozen=True)
class Part:
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
    actions: Mapping[str, Any]
    """`entries`, unit, frame and doc of an action's numbers; the doc alone of a single choice."""
    state: StatePlace
    """Place of the whole state of the physics; `"hidden"`: it cannot be read from outside."""
    digest: str
    """SHA-256 of the content."""

    def problem(self, space: spaces.Space, options: Mapping[str, Any]) -> str:
        """The reason why the names do not fit; empty if they do."""
        found, size = spaces.flatdim(space), self.parts[-1].columns.stop
        if found != size:
            made = f"made with {dict(options)!r} it has" if options else "it has"
            return f"{made} {found} numbers, and {self.file} names {size}"
        if _OTHER_MODEL in options:
            return f"{_OTHER_MODEL!r} is another model than the one that {self.file} describes"
        return ""

    def action_channels(self, space: spaces.Space) -> tuple[Channel, ...]:
        """Names of a policy's outputs. `space`: the environment's."""
        if not isinstance(space, spaces.Box):
            return (Channel("choice", doc=self.actions["doc"]),)
        unit, frame, doc = (self.actions[name] for name in ("unit", "frame", "doc"))
        bounds = zip(space.low.tolist(), space.high.tolist(), strict=True)
        named = zip(self.actions["entries"], bounds, strict=True)
        return tuple(Channel(name, (), unit, frame, doc, range=ends) for name, ends in named)


def names_of(gymnasium_id: str) -> Names | None:
    """The names of Gymnasium's own environment with this id; None for any other environment."""
    registered = gymnasium.registry.get(gymnasium_id)
    point = "" if registered is None else registered.entry_point
    own = isinstance(point, str) and point.startswith("gymnasium.envs.")
    return _names(gymnasium_id) if own and (_FOLDER / f"{gymnasium_id}.yaml").is_file() else None


@cache
def _names(gymnasium_id: str) -> Names:
    content = _content(gymnasium_id)
    ends, actions = content["ends"], content.get("actions", {})
    doc = content["doc"].strip()
    if "entries" in actions:
        several = len(actions["entries"]) > 1
        order = f", in this order: {', '.join(actions['entries'])}" if several else ""
        doc += f"\n\nActions{order}. {actions['doc'][:1].upper()}{actions['doc'][1:]}."
    return Names(
        file=f"{gymnasium_id}.yaml",
        doc=doc,
        sentence=content["sentence"],
        ends_by=ends["by"],
        ends_when=ends.get("when", ""),
        masses_and_sizes=tuple(content.get("masses_and_sizes", ())),
        parts=_parts(content["observation"]),
        info={each["name"]: _variable(each) for each in content.get("info", ())},
        actions=actions,
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
    entries = merged["observation"]
    merged["observation"] = [{**each, **changes.pop(each["name"], {})} for each in entries]
    assert not changes, f"{gymnasium_id}.yaml changes {', '.join(changes)}, which {base} lacks"
    return merged


def _variable(entry: Mapping[str, Any]) -> Variable:
    named = entry.get("entries", ())
    letters = all(len(each) == 1 for each in named)  # the doc explains axes itself
    doc = entry["doc"] + ("" if letters else f"; in this order: {', '.join(named)}")
    shape = (len(named),) if named else tuple(entry.get("shape", ()))
    low, high = map(float, entry.get("range", (0.0, 0.0)))
    limits = (low, high) if low < high else None
    return Variable(entry["name"], shape, entry["unit"], entry["frame"], doc, limits)


def _parts(entries: Sequence[Mapping[str, Any]]) -> tuple[Part, ...]:
    parts, start = list[Part](), 0
    for entry in entries:
        variable = _variable(entry)
        indices = numpy.ndindex(*variable.shape) if variable.shape else ()
        numbers = entry.get("entries", [",".join(map(str, index)) for index in indices])
        columns = slice(start, start + prod(variable.shape))
        parts.append(Part(variable, columns, tuple(numbers), float(entry.get("scale", 1.0))))
        start = columns.stop
    return tuple(parts)


# ── states ────────────────────────────────────────────────────────────────────────────────────────


def read_state(environment: gymnasium.Env, place: StatePlace) -> dict[str, Tensor]:
    """The state of physics and random numbers, as tensors of one size for all copies."""
    physics: Any = environment.unwrapped
    if place == "mujoco":
        import mujoco

        whole = mujoco.mjtState.mjSTATE_INTEGRATION
        integrated = numpy.empty(mujoco.mj_stateSize(physics.model, whole))
        mujoco.mj_getState(physics.model, physics.data, integrated, whole)
        # a step reads these before it computes them, one physics step late
        poses = physics.data.xpos.reshape(-1), physics.data.xipos.reshape(-1)
        values = numpy.concatenate([integrated, *poses])
    else:
        state = numpy.asarray(physics.state)
        # single precision, where an environment has it, is kept
        values = numpy.array([*state, state.dtype == numpy.float32], dtype=numpy.float64)
    generator = physics.np_random.bit_generator.state
    # its PCG64 has two numbers of 128 bits, here in words of 64, and a buffered half word
    long = (generator["state"][name] for name in ("state", "inc"))
    words = [number >> shift & (2**_WORD - 1) for number in long for shift in (0, _WORD)]
    words += [generator["has_uint32"], generator["uinteger"]]
    numbers = numpy.array(words, dtype=numpy.uint64).view(numpy.int64)
    return {_PHYSICS: torch.from_numpy(values), _GENERATOR: torch.from_numpy(numbers)}


def write_state(environment: gymnasium.Env, place: StatePlace, state: dict[str, Tensor]) -> None:
    """Put back what `read_state` gave, of this copy or another one."""
    environment.reset(seed=0)  # a copy that was never reset refuses to be stepped
    physics: Any = environment.unwrapped
    values = state[_PHYSICS].numpy()
    if place == "mujoco":
        import mujoco

        whole = mujoco.mjtState.mjSTATE_INTEGRATION
        size = mujoco.mj_stateSize(physics.model, whole)
        integrated = values[:size].copy()
        mujoco.mj_setState(physics.model, physics.data, integrated, whole)
        # for pictures; it changes the solver's start
        mujoco.mj_forward(physics.model, physics.data)
        mujoco.mj_setState(physics.model, physics.data, integrated, whole)
        positions, centres = numpy.split(values[size:], 2)
        physics.data.xpos[:] = positions.reshape(-1, 3)
        physics.data.xipos[:] = centres.reshape(-1, 3)
    else:
        physics.state = values[:-1].astype(numpy.float32 if values[-1] else numpy.float64)
    words = state[_GENERATOR].numpy().view(numpy.uint64).tolist()
    low, high, low_inc, high_inc, buffered, half = words
    generator = physics.np_random.bit_generator
    numbers = {"state": low | high << _WORD, "inc": low_inc | high_inc << _WORD}
    rest = {"has_uint32": buffered, "uinteger": half}
    generator.state = {**generator.state, "state": numbers, **rest}
