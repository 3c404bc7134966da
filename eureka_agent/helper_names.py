"""Isaac Gym's helper functions that a reward may call without an import, and the modules that
published rewards import them from. No torch."""

from __future__ import annotations

HELPER_NAMES: tuple[str, ...] = (
    "axisangle2quat",
    "calc_heading",
    "calc_heading_quat",
    "calc_heading_quat_inv",
    "compute_heading_and_up",
    "compute_rot",
    "copysign",
    "get_basis_vector",
    "get_euler_xyz",
    "local_to_world_space",
    "my_quat_rotate",
    "normalize",
    "normalize_angle",
    "quat_apply",
    "quat_axis",
    "quat_conjugate",
    "quat_diff_rad",
    "quat_from_angle_axis",
    "quat_from_euler_xyz",
    "quat_mul",
    "quat_rotate",
    "quat_rotate_inverse",
    "quat_to_angle_axis",
    "quat_to_exp_map",
    "quat_unit",
    "saturate",
    "scale",
    "scale_transform",
    "tensor_clamp",
    "tf_apply",
    "tf_combine",
    "tf_inverse",
    "tf_vector",
    "unscale",
    "unscale_transform",
)
"""Functions of `eureka_agent/training/reward_helpers.py`."""

_MODULES = ("torch_jit_utils", "torch_utils")


def is_helper_module(module: str | None) -> bool:
    """True for `isaacgym.torch_utils`, `isaacgymenvs.utils.torch_jit_utils` and the like. Such an
    import is dropped, never executed."""
    return module is not None and module.rpartition(".")[2] in _MODULES
