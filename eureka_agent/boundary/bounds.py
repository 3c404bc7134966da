"""Bounds of messages and files, which the driver checks in all that a worker says."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from eureka_agent.records import Credit, Finding, Record
from eureka_agent.text import plain_line

MAX_LINE_BYTES = 16 << 20
"""Longest line of a worker. It has room for 100,000 episodes."""
MAX_FILE_BYTES = 256 << 20
"""Largest file in either direction."""
FILE_NAME_PATTERN = r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"
"""A plain name, never a path. A later file replaces an earlier one of the same name."""
OPENING_SECONDS = 1200.0
"""Most time in which a command environment describes itself."""
_LONGEST_REFERENCE = 1000
MOST_GPUS = 1024
MOST_TIMERS = 20
KERNELS_FILE = "kernels.safetensors"
"""Name of the compiled kernels: bytes (uint8) by their path in a cache folder."""
EPISODES_PREFIX = "episodes-"
"""Prefix of the names of files that `ScoreTransitions` and `GiveCredit` read."""
MOST_CREDITED = 16
"""Rewards of one `GiveCredit`. Their ranks fit into what a confined process may tell."""

MARK = "EUREKA_WORKER"
"""Variable in every process of one worker, in any session and with any parent."""
PASSED_ON = (
    *("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "MUJOCO_GL", "PYOPENGL_PLATFORM"),
    *("LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "SYSTEMROOT"),
    "GLIBC_TUNABLES",
)
"""Environment variables passed on to a worker, and by it to a command. An allow-list, so that a key
under any name is not passed on."""

MOST_ASKED_STEPS = 1 << 18
MOST_SCORES = 1000
"""Policies scored by one command. A line has room for millions of empty scores, which take
gigabytes when they are parsed."""
MOST_FILMED = 6
"""Panels side by side in a video."""
MOST_FINDINGS = 200
"""Findings of one dry run in a message."""
MOST_SHOWN_FINDINGS = 12
"""Findings of one dry run that are kept, errors first. They reach models and the report, and a
process that runs hostile code wrote them."""
LONGEST_FINDING = 240
"""Characters of a finding's message: enough for an exception, too few for a page of memory."""
LONGEST_HINT = 400
"""Characters of a hint. It may list the shapes of a reward's arguments."""
LONGEST_FAULT = 1000
"""Characters of a message about an environment's fault: a path, a line and the exception."""


def _plain_findings(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """The findings within the bounds. Raises ValueError for codes and places that no dry run
    gives."""
    for each in findings:
        places = (each.line or 0, each.column or 0)
        if re.fullmatch(r"D3[0-9]{2}", each.code) is None or not all(
            0 <= place < 1 << 31 for place in places
        ):
            raise ValueError(f"a dry run has no finding {each.code[:20]!r} at {places}")
    shown = sorted(findings, key=lambda each: each.severity != "error")[:MOST_SHOWN_FINDINGS]
    return tuple(
        each.model_copy(
            update={
                "message": plain_line(each.message, LONGEST_FINDING),
                "hint": plain_line(each.hint, LONGEST_HINT),
            }
        )
        for each in (findings if len(findings) == len(shown) else shown)
    )


PicturePixels = Annotated[int, Field(ge=64, le=1920)]
Reference = Annotated[str, Field(max_length=_LONGEST_REFERENCE)]
"""Name of a job or of a sent file, which is looked up and never shown."""
ShortText = Annotated[str, AfterValidator(lambda text: plain_line(text, LONGEST_FINDING))]
Findings = Annotated[
    tuple[Finding, ...], Field(max_length=MOST_FINDINGS), AfterValidator(_plain_findings)
]

Credits = Annotated[tuple[Credit | None, ...], Field(max_length=MOST_CREDITED)]


class FileHeader(Record):
    """The line before a file's bytes. It has no answer."""

    type: Literal["file"] = "file"
    name: str = Field(pattern=f"^{FILE_NAME_PATTERN}$")
    size: int = Field(ge=0, le=MAX_FILE_BYTES)
    """Bytes after the line's end."""
