"""Names in a MuJoCo model: one, or a list of names and patterns; and its bodies in words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypeVar, get_args

import mujoco

from eureka_agent.errors import EnvironmentLoadError, close_match
from eureka_agent.wording import some_of

Kind = Literal["joint", "body", "site", "geom", "sensor", "actuator"]
Names = str | Sequence[str]
"""One name; or a list of names and patterns, which is a group."""

_Found = TypeVar("_Found")
_KINDS: dict[Kind, mujoco.mjtObj] = {
    kind: getattr(mujoco.mjtObj, f"mjOBJ_{kind.upper()}") for kind in get_args(Kind)
}
_MOST_LISTED = 20
_MOST_KINDS = 16
"""Most kinds of bodies that are listed; a humanoid's hands have more."""
_MOST_GEOMS = 3
"""Most geoms of one body that are listed; more are counted."""


def ids_by_name(model: mujoco.MjModel, kind: Kind) -> dict[str, int]:
    """Named objects of a kind in the MJCF's order."""
    size = "njnt" if kind == "joint" else f"n{kind}"
    ids = range(getattr(model, size))
    named = ((mujoco.mj_id2name(model, _KINDS[kind], index), index) for index in ids)
    return {name: index for name, index in named if name}


def find(model: mujoco.MjModel, kind: Kind, names: Names) -> dict[str, int]:
    """Ids by name, in the order of `names`; in a list an unknown name is a regular expression for
    whole names, in the MJCF's order. Raises EnvironmentLoadError."""
    return _find(model, f"<{kind}>", ids_by_name(model, kind), names)


def find_geoms(model: mujoco.MjModel, names: Names) -> dict[str, tuple[Kind, tuple[int, ...]]]:
    """Kinds of named geoms or bodies, and their geoms' ids. Raises EnvironmentLoadError."""
    known: dict[str, tuple[Kind, tuple[int, ...]]] = {
        name: ("body", geoms_of(model, body)) for name, body in ids_by_name(model, "body").items()
    }
    known |= {name: ("geom", (geom,)) for name, geom in ids_by_name(model, "geom").items()}
    return _find(model, "<geom> or <body>", known, names)


def geoms_of(model: mujoco.MjModel, body: int) -> tuple[int, ...]:
    first = int(model.body_geomadr[body])
    return tuple(range(first, first + int(model.body_geomnum[body])))


def controls_of(model: mujoco.MjModel, actuator: int) -> dict[str, int]:
    """Columns in ctrl of an actuator by name: its own, with its input's where it has several."""
    first, count = int(model.actuator_ctrladr[actuator]), int(model.actuator_ctrlnum[actuator])
    name = model.actuator(actuator).name or f"actuator_{actuator}"
    if count == 1:
        return {name: first}
    inputs = (mujoco.mj_actuatorInputName(model, actuator, each) for each in range(count))
    return {f"{name}_{each or number}": first + number for number, each in enumerate(inputs)}


def _find(
    model: mujoco.MjModel, kind: str, known: Mapping[str, _Found], names: Names
) -> dict[str, _Found]:
    if not (isinstance(names, Sequence) and names):
        what = f"{names!r} names no {kind}: expected a name, or a list of names and patterns"
        raise EnvironmentLoadError(what, f"the MJCF has: {_listed(known)}")
    found: dict[str, _Found] = {}
    for name in [names] if isinstance(names, str) else names:
        try:
            is_name = isinstance(names, str) or name in known
            matches = [name] if is_name else [each for each in known if re.fullmatch(name, each)]
        except (re.error, TypeError) as error:
            what = f"{name!r} is neither the name of a {kind} nor a regular expression: {error}"
            hint = "a pattern matches whole names: '.*_knee' matches all that end in _knee"
            raise EnvironmentLoadError(what, hint) from None
        if not set(matches) & known.keys():
            raise unknown_name(model, kind, name, known)
        found.update((match, known[match]) for match in matches)
    return found


def unknown_name(
    model: mujoco.MjModel, kind: str, name: str, known: Iterable[str]
) -> EnvironmentLoadError:
    kinds = [other for other in _KINDS if name in ids_by_name(model, other)]
    if kinds:
        hint = f"{name!r} is the name of a {' and of a '.join(kinds)}"
    elif close := close_match(name, known):
        hint = f"did you mean {close!r}?"
    else:
        hint = f'use one of these, or write name="{name}" into the MJCF'
    what = f"the MJCF has no {kind} named {name!r}; it has: {_listed(known)}"
    return EnvironmentLoadError(what, hint)


def _listed(names: Iterable[str]) -> str:
    return some_of(sorted(names), _MOST_LISTED) or "none"


# ── masses and sizes ──────────────────────────────────────────────────────────────────────────────


def masses_and_sizes(model: mujoco.MjModel) -> tuple[str, ...]:
    """Total mass, then each moving body's mass (kg) and geoms (m); equal bodies share an entry."""
    names: dict[str, list[str]] = {}
    for body in range(1, model.nbody):
        geoms = [_geom(model, geom) for geom in geoms_of(model, body)]
        kinds = {text: geoms.count(text) for text in geoms}
        told = [text if number == 1 else f"{number} × {text}" for text, number in kinds.items()]
        told = told if len(told) <= _MOST_GEOMS else [f"{len(geoms)} geoms"]
        text = f"{model.body_mass[body]:.3g} kg{', ' if told else ''}{' + '.join(told)}"
        names.setdefault(text, []).append(model.body(body).name or f"body {body}")
    pairs = ((text, alike, " each" * (len(alike) > 1)) for text, alike in names.items())
    lines = [f"{', '.join(alike)}: {text}{each}" for text, alike, each in pairs]
    if len(lines) > _MOST_KINDS:
        lines = [*lines[:_MOST_KINDS], f"{len(lines) - _MOST_KINDS} further kinds of bodies"]
    return (f"{model.body_mass[1:].sum():.3g} kg in all", *lines)


def _geom(model: mujoco.MjModel, geom: int) -> str:
    kind = mujoco.mjtGeom(int(model.geom_type[geom])).name.removeprefix("mjGEOM_").lower()
    size = model.geom_size[geom]
    if kind == "sphere":
        return f"sphere of radius {size[0]:.3g} m"
    if kind in ("capsule", "cylinder"):
        # without a capsule's caps, as in MJCF
        return f"{kind} of radius {size[0]:.3g} and length {2 * size[1]:.3g} m"
    if kind in ("box", "ellipsoid"):
        return f"{kind} of {' × '.join(f'{2 * half:.3g}' for half in size)} m"
    return kind
