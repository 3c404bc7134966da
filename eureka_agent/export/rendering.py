"""The templates of an export, filled in."""

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
    """The file that `templates/<template>.j2` makes; a value that it misses is an error."""
    return _templates().get_template(f"{template}.j2").render(**values).strip() + "\n"


@cache
def _templates() -> jinja2.Environment:
    templates = jinja2.Environment(  # Python and Markdown, never HTML
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters.update(
        comment=comment,
        escaped=escaped,
        code=code,
        column_name=column_name,
        string=string,
        batch_shape=batch_shape,
        plural=plural,
    )
    return templates


def comment(text: str) -> str:
    """Text as Python comments: whatever ends a line in it begins another comment, so that no text
    becomes code."""
    lines = [
        part
        for line in text.replace("\0", "").splitlines()
        for part in textwrap.wrap(line, _WIDTH) or [""]
    ]
    return "\n".join(f"# {line}".rstrip() for line in lines)


def column_name(text: str) -> str:
    """A name as code, but for one that a table's cell cannot hold as such."""
    return code(text) if re.fullmatch(r"[\w.,\[\]-]+", text) else escaped(text)


def string(text: str) -> str:
    """Text as a string literal of Python's, in double quotes."""
    return json.dumps(text, ensure_ascii=False)


def batch_shape(shape: tuple[int, ...]) -> str:
    """`(batch,)`, `(batch, 3)`: the shape in which a reward gets a variable."""
    return f"(batch, {', '.join(str(size) for size in shape)})" if shape else "(batch,)"
