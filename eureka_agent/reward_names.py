"""Names in a reward: of its arguments, of the helper functions that it may call, and of its
components. No torch."""

from __future__ import annotations

import builtins
import keyword
import unicodedata
from collections.abc import Collection

BUILTINS = frozenset(
    """abs all any bool dict divmod enumerate filter float frozenset int isinstance len list map max
    min pow range reversed round set slice sorted str sum tuple zip True False None ValueError
    TypeError RuntimeError""".split()  # noqa: SIM905
)
"""Built-ins that a reward may use, and whose names it may give to its own values."""
ALL_BUILTINS = frozenset(dir(builtins))
MODULES_THERE = ("torch", "math")
"""Modules that a reward has without an import."""


def is_argument_name(name: object) -> bool:
    """True for a name that Python and the critic take for an argument of a reward."""
    return (
        isinstance(name, str)
        and name.isidentifier()
        and unicodedata.normalize("NFKC", name) == name  # else Python reads another name
        and not keyword.iskeyword(name)
        and not name.startswith("__")
        and name not in MODULES_THERE
        and name not in ALL_BUILTINS - BUILTINS
    )


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
"""Isaac Gym's helper functions that a reward may call without an import
(`eureka_agent/training/reward_helpers.py`)."""

_MODULES = ("torch_jit_utils", "torch_utils")
"""Modules that published rewards import them from."""


def is_helper_module(module: str | None) -> bool:
    """True for `isaacgym.torch_utils`, `isaacgymenvs.utils.torch_jit_utils` and the like. Such an
    import is dropped, never executed."""
    return module is not None and module.rpartition(".")[2] in _MODULES


LONGEST_NAME = 80
"""Characters of a component's name: it stands in tables, reports and other models' prompts."""
MOST_COMPONENTS = 100
"""Components of a reward: each is a curve, and a row in tables and prompts."""


def component_fault(name: str) -> tuple[str, str] | None:
    """Message and hint for an invalid name; None for a valid one."""
    if len(name) <= LONGEST_NAME and name.isprintable() and name.strip():
        return None
    expected = f"expected one line of 1 to {LONGEST_NAME} visible characters"
    message = f"a component's name is {name[:LONGEST_NAME]!r}, {expected}"
    return message, "use names such as 'forward'"


def changed_names_fault(first: Collection[str], now: Collection[str]) -> tuple[str, str] | None:
    """Message and hint for components other than the first call's; None for the same ones."""
    changes = {
        "new": [name for name in now if name not in first],
        "missing": [name for name in first if name not in now],
    }
    told = [
        f"{', '.join(map(repr, names[:3]))}{', …' if len(names) > 3 else ''} {what}"
        for what, names in changes.items()
        if names
    ]
    if not told:
        return None
    return (
        f"the components are not those of the first call: {' and '.join(told)}",
        "return the same names in every call, zeros where a component has no part",
    )
