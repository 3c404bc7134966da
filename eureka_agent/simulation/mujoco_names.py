"""Names in a MuJoCo model: one, or a list of names and patterns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypeVar

import mujoco

from eureka_agent.errors import EnvironmentLoadError, close_match

Kind = Literal["joint", "body", "site", "geom", "sensor", "actuator"]
Names = str | Sequence[str]
"""One name; or a list of names and patterns, which is a group."""

_Found = TypeVar("_Found")
_KINDS: dict[Kind, tuple[mujoco.mjtObj, str]] = {
    "joint": (mujoco.mjtObj.mjOBJ_JOINT, "njnt"),
    "body": (mujoco.mjtObj.mjOBJ_BODY, "nbody"),
    "site": (mujoco.mjtObj.mjOBJ_SITE, "nsite"),
    "geom": (mujoco.mjtObj.mjOBJ_GEOM, "ngeom"),
    "sensor": (mujoco.mjtObj.mjOBJ_SENSOR, "nsensor"),
    "actuator": (mujoco.mjtObj.mjOBJ_ACTUATOR, "nactuator"),
}
_MOST_LISTED = 20


def ids_by_name(model: mujoco.MjModel, kind: Kind) -> dict[str, int]:
    """Named objects of a kind in the MJCF's order."""
    object_type, size = _KINDS[kind]
    named = (
        (mujoco.mj_id2name(model, object_type, index), index)
        for index in range(getattr(model, size))
    )
    return {name: index for name, index in named if name}


def find(model: mujoco.MjModel, kind: Kind, names: Names) -> dict[str, int]:
    """Ids by name, in the order of `names`; in a list an unknown name is a regular expression for
    whole names, in the MJCF's order. Raises EnvironmentLoadError."""
    return _find(model, f"<{kind}>", ids_by_name(model, kind), names)


def find_geoms(model: mujoco.MjModel, names: Names) -> dict[str, tuple[Kind, tuple[int, ...]]]:
    """Kinds of named geoms or bodies, and their geoms' ids. Raises EnvironmentLoadError."""
    known: dict[str, tuple[Kind, tuple[int, ...]]] = {}
    for name, body in ids_by_name(model, "body").items():
        first, count = int(model.body_geomadr[body]), int(model.body_geomnum[body])
        known[name] = "body", tuple(range(first, first + count))
    two_meanings = set()
    for name, geom in ids_by_name(model, "geom").items():
        if name in known and known[name][1] != (geom,):
            two_meanings.add(name)
        known[name] = "geom", (geom,)
    found = _find(model, "<geom> or <body>", known, names)
    for name in found:
        if name in two_meanings:
            raise EnvironmentLoadError(
                f"{name!r} is a geom of the MJCF, and a body that has other geoms",
                f"rename one of them in the MJCF: the geom may be {name + '_geom'!r}",
            )
    return found


def can_touch(model: mujoco.MjModel, firsts: Iterable[int], seconds: Iterable[int]) -> bool:
    """True where MuJoCo would compare a geom of the first with one of the second for contacts."""
    named = zip(model.pair_geom1.tolist(), model.pair_geom2.tolist(), strict=True)
    pairs = {frozenset(pair) for pair in named}
    return any(
        frozenset((first, second)) in pairs or _are_compared(model, first, second)
        for first in firsts
        for second in seconds
    )


def controls_of(model: mujoco.MjModel, actuator: int) -> dict[str, int]:
    """Columns in ctrl of an actuator by name: its own, with its input's where it has several."""
    first, count = int(model.actuator_ctrladr[actuator]), int(model.actuator_ctrlnum[actuator])
    name = model.actuator(actuator).name or f"actuator_{actuator}"
    if count == 1:
        return {name: first}
    inputs = (mujoco.mj_actuatorInputName(model, actuator, each) for each in range(count))
    return {f"{name}_{each or number}": first + number for number, each in enumerate(inputs)}


def _are_compared(model: mujoco.MjModel, first: int, second: int) -> bool:
    one, other = int(model.geom_bodyid[first]), int(model.geom_bodyid[second])
    signatures = model.exclude_signature.tolist()
    if (one << 16) + other in signatures or (other << 16) + one in signatures:
        return False
    # bodies without a joint between them count as one
    welded, other_welded = int(model.body_weldid[one]), int(model.body_weldid[other])
    if welded == other_welded:
        return False
    parent, other_parent = (
        int(model.body_weldid[model.body_parentid[body]]) for body in (welded, other_welded)
    )
    filters = not model.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_FILTERPARENT
    if filters and welded and other_welded and (welded == other_parent or other_welded == parent):
        return False
    return bool(
        (model.geom_contype[first] & model.geom_conaffinity[second])
        | (model.geom_contype[second] & model.geom_conaffinity[first])
    )


def _find(
    model: mujoco.MjModel, kind: str, known: Mapping[str, _Found], names: Names
) -> dict[str, _Found]:
    if isinstance(names, str):
        if names not in known:
            raise unknown_name(model, kind, names, known)
        return {names: known[names]}
    if not isinstance(names, Sequence) or not names:
        raise EnvironmentLoadError(
            f"{names!r} names no {kind}: expected a name, or a list of names and patterns",
            f"the MJCF has: {_listed(known)}",
        )
    found: dict[str, _Found] = {}
    for name in names:
        matches = [name] if name in known else _matching(kind, name, known)
        if not matches:
            raise unknown_name(model, kind, name, known)
        found.update((match, known[match]) for match in matches)
    return found


def _matching(kind: str, pattern: str, known: Iterable[str]) -> list[str]:
    try:
        return [name for name in known if re.fullmatch(pattern, name)]
    except (re.error, TypeError) as error:
        raise EnvironmentLoadError(
            f"{pattern!r} is neither the name of a {kind} nor a regular expression: {error}",
            "a pattern matches whole names: '.*_knee' matches all that end in _knee",
        ) from None


def unknown_name(
    model: mujoco.MjModel, kind: str, name: str, known: Iterable[str]
) -> EnvironmentLoadError:
    """The error for an unknown name of a kind."""
    kinds = [other for other in _KINDS if name in ids_by_name(model, other)]
    close = close_match(name, known)
    if any(_matches(name, each) for each in known):
        hint = f"a pattern stands in a list: [{name!r}]"
    elif kinds:
        hint = f"{name!r} is the name of a {' and of a '.join(kinds)}"
    elif close is not None:
        hint = f"did you mean {close!r}?"
    else:
        hint = f'use one of these, or write name="{name}" into the MJCF'
    return EnvironmentLoadError(
        f"the MJCF has no {kind} named {name!r}; it has: {_listed(known)}", hint
    )


def _matches(pattern: str, name: str) -> bool:
    try:
        return re.fullmatch(pattern, name) is not None
    except re.error:
        return False


def _listed(names: Iterable[str]) -> str:
    ordered = sorted(names)
    more = f" and {len(ordered) - _MOST_LISTED} more" if len(ordered) > _MOST_LISTED else ""
    return (", ".join(ordered[:_MOST_LISTED]) or "none") + more
