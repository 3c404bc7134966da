"""Masses and sizes of a MuJoCo model in words."""

from __future__ import annotations

import mujoco
import numpy as np

MOST_LINES = 16
"""Most kinds of bodies that are listed; a humanoid's hands have more."""
_MOST_GEOMS = 3
"""Most geoms of one body that are listed; more are counted."""


def masses_and_sizes(model: mujoco.MjModel) -> tuple[str, ...]:
    """Total mass, then each moving body's mass (kg) and geoms (m); equal bodies share an entry."""
    names: dict[str, list[str]] = {}
    for body in range(1, model.nbody):
        names.setdefault(_body(model, body), []).append(model.body(body).name or f"body {body}")
    lines = [
        f"{', '.join(alike)}: {text}{' each' if len(alike) > 1 else ''}"
        for text, alike in names.items()
    ]
    if len(lines) > MOST_LINES:
        lines = [*lines[:MOST_LINES], f"{len(lines) - MOST_LINES} further kinds of bodies"]
    return (f"{model.body_mass[1:].sum():.3g} kg in all", *lines)


def _body(model: mujoco.MjModel, body: int) -> str:
    first, count = int(model.body_geomadr[body]), int(model.body_geomnum[body])
    geoms = [_geom(model, geom) for geom in range(first, first + count)]
    kinds = {text: geoms.count(text) for text in geoms}
    told = [text if number == 1 else f"{number} × {text}" for text, number in kinds.items()]
    if len(told) > _MOST_GEOMS:
        told = [f"{count} geoms"]
    return f"{model.body_mass[body]:.3g} kg{', ' if told else ''}{' + '.join(told)}"


def _geom(model: mujoco.MjModel, geom: int) -> str:
    kind = mujoco.mjtGeom(int(model.geom_type[geom]))
    size: np.ndarray = model.geom_size[geom]
    if kind == mujoco.mjtGeom.mjGEOM_SPHERE:
        return f"sphere of radius {size[0]:.3g} m"
    if kind in (mujoco.mjtGeom.mjGEOM_CAPSULE, mujoco.mjtGeom.mjGEOM_CYLINDER):
        # without a capsule's caps, as in MJCF
        return f"{_name(kind)} of radius {size[0]:.3g} and length {2 * size[1]:.3g} m"
    if kind in (mujoco.mjtGeom.mjGEOM_BOX, mujoco.mjtGeom.mjGEOM_ELLIPSOID):
        return f"{_name(kind)} of {' × '.join(f'{2 * half:.3g}' for half in size)} m"
    return _name(kind)


def _name(kind: mujoco.mjtGeom) -> str:
    return kind.name.removeprefix("mjGEOM_").lower()
