"""What the engine says of a build: why it failed, what it made."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from eureka_agent.sandbox.docker.wheelhouse import last_words

_LAST_LINES = 30


class BuildLog:
    """What the engine says of a build."""

    def __init__(self) -> None:
        self.error = ""
        """Why it failed, in one line; empty where it did not."""
        self.found = ""
        """Python and C library of the base image, as `install.py` names them."""
        self.installs = ""
        """What `install.py` was about when it ended, as it names it: packages, requirements,
        imports."""
        self.layers: list[str] = []
        """Images after each step, the base first."""

    def follow(self, answers: Iterable[dict[str, Any]]) -> None:
        """Read it to its end."""
        lines: list[str] = []
        for answer in answers:
            # the engine prints in red what a command writes to standard error
            for line in re.sub(r"\x1b\[[0-9;]*m", "", str(answer.get("stream", ""))).splitlines():
                if layer := re.fullmatch(r" ---> ([0-9a-f]{12,})", line.rstrip()):
                    self.layers.append(layer[1])
                elif line.startswith("FOUND: "):
                    self.found = line.removeprefix("FOUND: ").strip()
                elif line.startswith("INSTALLS: "):
                    self.installs = line.removeprefix("INSTALLS: ").strip()
                elif line.strip() and not line.startswith(
                    (" --->", "Step ", "Removing intermediate container")
                ):
                    lines.append(line.strip())
            del lines[:-_LAST_LINES]
            if "error" in answer:
                installing = any(line.startswith("ERROR") for line in lines)
                self.error = (
                    last_words(lines)
                    if installing
                    else "; ".join([*lines[-2:], str(answer["error"]).strip()])
                )
