"""Isaac Gym's helper functions that a reward may call without an import, and the modules that
published rewards import them from. No torch."""

from __future__ import annotations

HELPER_NAMES: tuple[str, ...] = (
    "compute_heading_and_up",
    "get_euler_xyz",
    "normalize",
    "normalize_angle",
    "quat_apply",
    "quat_axis",
    "quat_conjugate",
    "quat_diff_rad",
    "quat_from_angle_axis",
    "quat_mul",
    "quat_rotate",
    "quat_rotate_inverse",
    "quat_to_angle_axis",
    "quat_unit",
    "scale",
    "tensor_clamp",
    "tf_vector",
    "unscale",
)
"""Functions of `eureka_agent/training/reward_helpers.py`."""

_MODULES = ("torch_jit_utils", "torch_utils")


def is_helper_module(module: str | None) -> bool:
    """True for `isaacgym.torch_utils`, `isaacgymenvs.utils.torch_jit_utils` and the like. Such an
    import is dropped, never executed."""
    return module is not None and module.rpartition(".")[2] in _MODULES
