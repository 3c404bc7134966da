"""Errors in a terminal are broken at words, keep commands whole, and have no colour if none is
wanted. In a pipe they stay as they are."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from eureka_agent.cli.output import wrapped

COMMAND = [sys.executable, "-m", "eureka_agent.cli.main"]


def on_terminal(
    folder: Path, columns: int, arguments: list[str], **variables: str
) -> tuple[int, str]:
    """Exit status and output of the command in a terminal of so many columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {
        name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS")
    }
    environment |= {"TERM": "xterm-256color", **variables}
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=folder,
        env=environment,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    output = b""
    try:
        while part := os.read(ours, 65536):
            output += part
    except OSError:  # how the end of a terminal reads
        pass
    finally:
        os.close(ours)
    return process.wait(), output.decode().replace("\r\n", "\n")


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def test_an_error_is_broken_at_words_and_its_hint_is_indented(tmp_path: Path) -> None:
    columns = 40
    in_a_pipe = subprocess.run(
        [*COMMAND, "envs", "zzz"], cwd=tmp_path, capture_output=True, text=True
    ).stderr
    status, output = on_terminal(tmp_path, columns, ["envs", "zzz"])
    assert status == 2
    lines = plain(output).splitlines()
    assert all(len(line) <= columns for line in lines), lines
    (hint,) = [number for number, line in enumerate(lines) if line.startswith(" hint: ")]
    assert len(lines[hint:]) > 1
    for group in (lines[:hint], lines[hint:]):
        assert all(line.startswith("       ") and line[7] != " " for line in group[1:])
    assert " ".join(line.strip() for line in lines) == " ".join(
        line.strip() for line in in_a_pipe.splitlines()
    )


class _Terminal:
    """A stream that is a terminal of 40 columns, by COLUMNS."""

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        raise OSError


def test_what_can_be_pasted_stays_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    stream = _Terminal()
    text = (
        "cannot write: the disk is full, so free some space, then `eureka resume 'runs/of"
        " mine/20261121-115500_hop'` and wait for it"
    )
    assert wrapped(text, 7, stream).split("\n") == [  # type: ignore[arg-type]
        "cannot write: the disk is full,",  # 31 of 33 columns
        "       so free some space, then",
        "       `eureka resume 'runs/of mine/20261121-115500_hop'`",
        "       and wait for it",
    ]
    text = "say what the policy is to do: eureka search 'hover at the goal' --env quadcopter"
    assert wrapped(text, 0, stream).split("\n") == [  # type: ignore[arg-type]
        "say what the policy is to do:",
        "eureka search 'hover at the goal' --env quadcopter",
    ]
    assert wrapped("two\n  lines", 2, stream) == "two\n    lines"  # type: ignore[arg-type]
