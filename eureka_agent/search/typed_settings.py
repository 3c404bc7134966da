"""Settings in the form in which users type them."""

from __future__ import annotations

import shlex
from typing import Any


def value_text(value: Any) -> str:
    """A setting's value in a sentence: `'ant'`, `64,64`, `on`, or `'openai/a', 'openai/b'` for a
    list."""
    if value is None:
        return "not given"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, list | tuple):
        if any(isinstance(each, str) for each in value):
            return ", ".join(map(repr, value))
        return ",".join(map(str, value)) or "not given"
    return repr(value) if isinstance(value, str) else str(value)


def flag_text(name: str, value: Any) -> str:
    """The flag for a setting's value, quoted for a shell: `--strategy tree`, `--no-novelty`."""
    flag = name.replace("_", "-")
    if isinstance(value, bool):
        return f"--{flag}" if value else f"--no-{flag}"
    return f"--{flag} {shlex.quote(str(value))}"
