"""Lines that a person types, read without blocking the event loop."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress

import click


async def line(prompt: str = "", *, on_stderr: bool = False) -> str | None:
    """A line without its end; None at the end of the input. `input` would block the loop, which
    handles Ctrl-C."""
    if prompt:
        click.echo(prompt, nl=False, err=on_stderr)
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    try:
        loop.add_reader(sys.stdin, readable.set)
    except PermissionError:  # a file, which keeps nobody waiting
        readable.set()
    try:
        await readable.wait()
    finally:
        with suppress(ValueError, OSError):
            loop.remove_reader(sys.stdin)
    text = sys.stdin.readline()
    return text.rstrip("\r\n") if text else None


async def is_yes(question: str, *, on_stderr: bool = False) -> bool:
    """True for a yes; the end of the input means no."""
    while True:
        answer = (await line(f"{question} [y/N] ", on_stderr=on_stderr) or "").strip().lower()
        if answer in ("y", "yes"):
            return True
        if answer in ("", "n", "no"):
            return False
        click.echo("y or n, please", err=on_stderr)
