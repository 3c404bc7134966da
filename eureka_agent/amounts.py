"""Whole numbers as people type them: `200000`, `200_000`, `200k`, `1.5M` and `2e5`."""

from __future__ import annotations

import re

SUFFIXES = {"k": 3, "M": 6, "G": 9}
"""Powers of ten by their letters, as `wording.count` writes them."""
EXAMPLES = "such as 8, 200k, 1.5M or 2e5"
_FORM = re.compile(r"([-+]?\d+(?:_\d+)*)(?:\.(\d+))?(?:([kMG])|[eE]\+?(\d{1,2}))?", re.ASCII)


def whole_number(text: str) -> int:
    """The number that a text stands for. Raises ValueError for another text or a fraction."""
    found = _FORM.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is no number")
    digits, fraction, suffix, exponent = found.groups()
    power = SUFFIXES[suffix] if suffix else int(exponent or 0)
    decimals = (fraction or "").rstrip("0")
    if len(decimals) > power:
        raise ValueError(f"{text!r} is no whole number")
    return int(digits + decimals.ljust(power, "0"))
