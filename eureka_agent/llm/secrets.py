"""Removal of keys from anything shown or stored: error messages, replies."""

from __future__ import annotations

import os
import re

_NAMES = re.compile(r"(KEY|SECRET|TOKEN|PASSWORD|PASSWD|CREDENTIAL|JWT)S?(_|$)", re.IGNORECASE)
"""Names of environment variables whose value counts as a key."""
_SHORTEST = 8
"""Shortest key; a shorter value is a common word and would be removed everywhere."""
PLACEHOLDER = "<key>"


def redact(text: str) -> str:
    """Replace the values of environment variables that are named like keys."""
    for value in _secrets():
        text = text.replace(value, PLACEHOLDER)
    return text


def _secrets() -> list[str]:
    """Keys, the longest first, so that one that begins with another is replaced as a whole."""
    values = {value.strip() for name, value in os.environ.items() if _NAMES.search(name)}
    return sorted((value for value in values if len(value) >= _SHORTEST), key=len, reverse=True)
