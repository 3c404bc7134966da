"""Templates. All that is filled in is escaped, and characters that cannot be seen are written out:
sentences, code, names and replies come from people, models and environments."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from eureka_agent import wording
from eureka_agent.attempt_words import fitness_words, origin, remark
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
    environment = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        finalize=_shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "age": _age,
        "count": wording.count,
        "duration": wording.duration,
        "fitness_words": fitness_words,
        "money": wording.money,
        "number": wording.number,
        "one_line": one_line,
        "origin": origin,
        "plus_minus": wording.plus_minus,
        "plural": wording.plural,
        "remark": remark,
        "title_words": wording.title,
        "words": wording.words,
    }
    return environment


def compile_all() -> None:
    """Compile the templates."""
    for name in templates().list_templates():
        templates().get_template(name)


def render(name: str, **values: Any) -> str:
    """A template filled in."""
    return templates().get_template(name).render(values)
