"""Keeps keys out of whatever is shown or stored: an error's text, a reply that echoes them."""

from __future__ import annotations

import os
import re

_NAMES = re.compile(r"(KEY|SECRET|TOKEN|PASSWORD|PASSWD|CREDENTIAL|JWT)S?(_|$)", re.IGNORECASE)
"""Environment variables whose value is taken for a key."""
_SHORTEST = 8
"""A shorter value is a word, such as a switch, and would black out half of a text."""
PLACEHOLDER = "<key>"


def redact(text: str) -> str:
    """`text` without the value of any environment variable that is named like a key."""
    for value in _secrets():
        text = text.replace(value, PLACEHOLDER)
    return text


def _secrets() -> list[str]:
    """Longest first, so that a key which begins with another one goes as a whole."""
    values = {value.strip() for name, value in os.environ.items() if _NAMES.search(name)}
    return sorted((value for value in values if len(value) >= _SHORTEST), key=len, reverse=True)
