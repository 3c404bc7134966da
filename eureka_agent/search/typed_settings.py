"""Settings as a person types them."""

from __future__ import annotations

import shlex
from typing import Any


def value_text(value: Any) -> str:
    """A setting's value in a sentence: `'ant'`, `64,64`, `on`; `'openai/a', 'openai/b'` for what is
    given several times."""
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
    """The flag that gives a setting this value, for a shell: `--strategy best-of-n`,
    `--no-racing`."""
    flag = name.replace("_", "-")
    if isinstance(value, bool):
        return f"--{flag}" if value else f"--no-{flag}"
    return f"--{flag} {shlex.quote(str(value))}"
