"""Source of rewards in a document: highlighted, and compared with its parent's."""

from __future__ import annotations

import difflib

from markupsafe import Markup

from eureka_agent.text import clipped, escape_unprintable

LONGEST_SOURCE = 50_000
"""Characters of one source that a document shows."""
MOST_COMPARED = 2_000
"""Lines of a source that is compared, since the time grows with their square."""
_KINDS = {"+": "added", "-": "removed", "@": "place"}


def highlighted(source: str) -> Markup:
    """Python source as lines of HTML; the colours of its classes are in `style.css`."""
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer

    return Markup(highlight(_shown(source), PythonLexer(stripnl=False), HtmlFormatter(nowrap=True)))


def _shown(source: str) -> str:
    return escape_unprintable(clipped(source.rstrip(), LONGEST_SOURCE), keep="\n\t")


def difference_to_parent(parent: str, child: str) -> Markup:
    """Unified difference of two sources as an element; empty where they are equal."""
    before, after = (_shown(source).split("\n") for source in (parent, child))
    lines = list(
        difflib.unified_diff(before[:MOST_COMPARED], after[:MOST_COMPARED], lineterm="", n=3)
    )
    if not lines:
        return Markup()
    marked = [
        Markup('<span class="{}">{}</span>').format(_KINDS.get(line[:1], ""), line)
        for line in lines[2:]  # without the names of two files
    ]
    return Markup('<pre class="difference"><code>{}</code></pre>').format(Markup().join(marked))
