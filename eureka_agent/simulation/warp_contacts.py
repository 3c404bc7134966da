"""A kernel that gives mujoco_warp's contacts MuJoCo's frames where they differ. Needs warp."""

# without `from __future__ import annotations`: warp reads the kernel's annotations

from typing import Any

import mujoco
import warp as wp

_PLANE = wp.constant(int(mujoco.mjtGeom.mjGEOM_PLANE))
_CAPSULE = wp.constant(int(mujoco.mjtGeom.mjGEOM_CAPSULE))
_UPRIGHT = wp.constant(1e-6)


@wp.kernel(enable_backward=False)
def _align(
    count: wp.array[int],
    room: int,
    geoms: wp.array[wp.vec2i],
    worlds: wp.array[int],
    geom_type: wp.array[int],
    geom_xmat: wp.array2d[wp.mat33],
    frames: wp.array[wp.mat33],
) -> None:
    contact = wp.tid()
    if contact >= wp.min(count[0], room):
        return
    pair = geoms[contact]
    if pair[0] < 0 or pair[1] < 0:
        return
    if geom_type[pair[0]] != _PLANE or geom_type[pair[1]] != _CAPSULE:
        return
    turn = geom_xmat[worlds[contact], pair[1]]
    axis = wp.vec3(turn[0, 2], turn[1, 2], turn[2, 2])
    frame = frames[contact]
    normal = wp.vec3(frame[0, 0], frame[0, 1], frame[0, 2])
    along = axis - normal * wp.dot(normal, axis)
    if wp.length(along) < _UPRIGHT:
        return
    along = wp.normalize(along)
    across = wp.cross(normal, along)
    frames[contact] = wp.matrix_from_rows(normal, along, across)


def align_with_capsules(model: Any, data: Any) -> None:
    """Align the first tangent of capsule-plane contacts with the capsule, as MuJoCo does: a turned
    pyramidal cone allows other forces. mujoco_warp does so only beyond 30° to the normal."""
    contact = data.contact
    inputs = [data.nacon, data.naconmax, contact.geom, contact.worldid]
    inputs += [model.geom_type, data.geom_xmat]
    wp.launch(_align, dim=data.naconmax, inputs=inputs, outputs=[contact.frame])
