"""Rendering of an export's templates."""

from __future__ import annotations

import json
import re
import textwrap
from functools import cache
from pathlib import Path
from typing import Any

import jinja2

from eureka_agent.markup import code, escaped
from eureka_agent.wording import plural

_WIDTH = 118
TEMPLATES = Path(__file__).resolve().parent / "templates"


def render(template: str, **values: Any) -> str:
    """Text of `templates/<template>.j2`; a missing value is an error."""
    return _templates().get_template(f"{template}.j2").render(**values).strip() + "\n"


@cache
def _templates() -> jinja2.Environment:
    templates = jinja2.Environment(  # Python and Markdown, never HTML
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters = (comment, escaped, code, column_name, string, batch_shape, plural)
    templates.filters |= {each.__name__: each for each in filters}
    return templates


def comment(text: str) -> str:
    """Text as Python comments, one for every kind of line end, so that no text becomes code."""
    lines = [
        part
        for line in text.replace("\0", "").splitlines()
        for part in textwrap.wrap(line, _WIDTH) or [""]
    ]
    return "\n".join(f"# {line}".rstrip() for line in lines)


def column_name(text: str) -> str:
    """Name as code, or escaped where a table's cell could not hold the code."""
    return code(text) if re.fullmatch(r"[\w.,\[\]-]+", text) else escaped(text)


def string(text: str) -> str:
    """Text as a Python string literal in double quotes."""
    return json.dumps(text, ensure_ascii=False)


def batch_shape(shape: tuple[int, ...]) -> str:
    """Shape of a variable in a reward: `(batch,)`, `(batch, 3)`."""
    return f"(batch, {', '.join(str(size) for size in shape)})" if shape else "(batch,)"
