"""A terminal that shows what a program writes to it: lines, wrapping, scrolling, and the sequences
that a live view uses."""

from __future__ import annotations

import re

_SEQUENCE = re.compile(r"\x1b\[(\??[\d;]*)([A-Za-z])")


class Terminal:
    """Screen and scrollback of a terminal with automatic margins."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self.lines = [""]
        """Scrollback and screen, from the top."""
        self.row = self.column = 0

    def feed(self, text: str) -> None:
        """Take what a program wrote."""
        place = 0
        while place < len(text):
            found = _SEQUENCE.match(text, place)
            if found is not None:
                self._command(found[2], found[1])
                place = found.end()
                continue
            self._character(text[place])
            place += 1

    @property
    def text(self) -> list[str]:
        """Scrollback and screen without what is empty at the end."""
        return "\n".join(line.rstrip() for line in self.lines).rstrip("\n").split("\n")

    def _character(self, character: str) -> None:
        if character == "\r":
            self.column = 0
        elif character == "\n":
            self._down()
            self.column = 0
        else:
            if self.column == self.width:  # the margin wraps with the next character, not before
                self._down()
                self.column = 0
            line = self.lines[self.row].ljust(self.column)
            self.lines[self.row] = line[: self.column] + character + line[self.column + 1 :]
            self.column += 1

    def _down(self) -> None:
        self.row += 1
        if self.row == len(self.lines):
            self.lines.append("")

    def _command(self, letter: str, argument: str) -> None:
        if letter == "A":
            top = max(0, len(self.lines) - self.height)  # the scrollback cannot be reached
            self.row = max(top, self.row - int(argument or 1))
        elif letter == "K":
            self.lines[self.row] = ""
        elif letter not in "mhl":
            raise AssertionError(f"a sequence that this terminal does not know: {argument}{letter}")
