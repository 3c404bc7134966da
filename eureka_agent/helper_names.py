"""Names of the helper functions that every reward finds without an import."""

from __future__ import annotations

HELPER_NAMES: tuple[str, ...] = ("quat_mul",)
