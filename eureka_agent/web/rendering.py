"""Templates, a reward's source line by line, and the videos that a page may show. All that is
filled in is escaped, and characters that cannot be seen are written out: sentences, code, names and
replies come from people, models and environments."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment
from markupsafe import Markup

from eureka_agent import wording
from eureka_agent.archive.artefacts import BEST, GIF, VIDEO, attempt_folder
from eureka_agent.archive.safe_files import inside
from eureka_agent.attempt_words import fitness_words, origin, remark
from eureka_agent.errors import RunFolderError
from eureka_agent.records import Finding
from eureka_agent.report.html.document import template_environment
from eureka_agent.report.html.source import highlighted
from eureka_agent.text import clipped, escape_unprintable, one_line

FOLDER = Path(__file__).resolve().parent
LONGEST_TEXT = 200_000
"""Characters of one text that a page shows."""


def _shown(value: object) -> object:
    """Value as it is filled in: text of the templates is left alone."""
    if isinstance(value, Markup) or not isinstance(value, str):
        return "" if value is None else value
    shown = clipped(value.replace("\r\n", "\n"), LONGEST_TEXT)
    return escape_unprintable(shown, keep="\n\t")


def _age(time: str) -> str:
    """`3 minutes ago`; empty for an invalid time."""
    try:
        seconds = (datetime.now(UTC) - datetime.fromisoformat(time)).total_seconds()
    except (ValueError, TypeError):
        return ""
    for size, unit in ((86_400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= 2 * size:
            return f"{wording.plural(int(seconds // size), unit)} ago"
    return "just now"


@cache
def templates() -> Environment:
    """The page's templates."""
    environment = template_environment(FOLDER / "templates", _shown)
    numbers = (wording.count, wording.duration, wording.money, wording.number, wording.plus_minus)
    texts = (fitness_words, one_line, origin, remark, wording.plural, wording.words)
    environment.filters |= {"age": _age, "title_words": wording.title}
    environment.filters |= {each.__name__: each for each in (*numbers, *texts)}
    return environment


def render(name: str, **values: Any) -> str:
    """A template filled in."""
    return templates().get_template(name).render(values)


@dataclass(frozen=True)
class CodeLine:
    """A line of a source with the critic's findings on it."""

    number: int
    code: Markup
    findings: tuple[Finding, ...]


def code_lines(source: str, findings: Sequence[Finding]) -> list[CodeLine]:
    """Highlighted lines, each with the findings on it."""
    code = str(highlighted(source))
    at: dict[int | None, list[Finding]] = {}
    for finding in findings:
        at.setdefault(finding.line, []).append(finding)
    return [
        CodeLine(number, Markup(line), tuple(at.get(number, ())))
        for number, line in enumerate(code.rstrip("\n").split("\n"), 1)
    ]


def without_line(findings: Sequence[Finding], lines: Sequence[CodeLine]) -> list[Finding]:
    """Findings that are at none of these lines."""
    return [each for each in findings if not 1 <= (each.line or 0) <= len(lines)]


NAMES = {VIDEO: "video/mp4", GIF: "image/gif"}
_CLIP = re.compile(r"clip-\d{1,6}\.mp4")
"""Clips of a refinement; a page of it names them."""


def media_type(name: str) -> str:
    """Media type of a video's file; empty for a name that no video has."""
    return NAMES.get(name) or (NAMES[VIDEO] if _CLIP.fullmatch(name) else "")


def video_file(run: Path, place: str, name: str) -> Path | None:
    """File of a video; None where there is none. `place`: an attempt, or `BEST`. Raises
    RunFolderError for a path that leaves the run."""
    if not media_type(name):
        raise RunFolderError(
            f"{name[:100]!r} is no video of a run", f"expected {' or '.join(NAMES)}"
        )
    folder = inside(run, BEST) if place == BEST else attempt_folder(run, place)
    file = inside(folder, name)
    return file if file.is_file() else None


def videos_in(run: Path, place: str) -> tuple[str, ...]:
    """Names of the videos of an attempt, or of the best one; none in a folder not to be trusted."""
    with suppress(RunFolderError):
        return tuple(name for name in NAMES if video_file(run, place, name) is not None)
    return ()
