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


def variable_with_key(content: bytes) -> str:
    """Name of the environment variable whose key the content holds; empty for none."""
    return next((name for value, name in _secrets().items() if os.fsencode(value) in content), "")


def _secrets() -> dict[str, str]:
    """Names of variables by their keys, the longest key first, so that a key that begins with
    another is replaced as a whole."""
    named = {value.strip(): name for name, value in os.environ.items() if _NAMES.search(name)}
    keys = sorted((value for value in named if len(value) >= _SHORTEST), key=len, reverse=True)
    return {value: named[value] for value in keys}
