"""Blocks of a document as HTML, and `report.html`. The report is one file without any address: it
holds its scripts, styles, charts and the clip, and a policy that lets a browser load nothing else.
All text is escaped, and characters that nobody sees are written as in Python."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from eureka_agent.markup import LONGEST_QUOTATION
from eureka_agent.report import blocks
from eureka_agent.report.html.source import highlighted
from eureka_agent.report.sections import run_document
from eureka_agent.text import clipped, escape_unprintable

if TYPE_CHECKING:
    import jinja2

    from eureka_agent.report.run_report import RunReport

FOLDER = Path(__file__).resolve().parent / "static"
SCRIPTS = ("uPlot.iife.min.js", "charts.js")
"""In the order in which they run; the last one draws the charts above it."""
STYLES = ("uPlot.min.css", "style.css")


@cache
def asset(name: str) -> str:
    """Text of a file in `static/`."""
    return (FOLDER / name).read_text(encoding="utf-8")


def content_security_policy(scripts: tuple[str, ...], styles: tuple[str, ...]) -> str:
    """Policy that allows these inline scripts and styles, media within the document, and nothing
    else, so no request leaves it."""
    return (
        f"default-src 'none'; script-src {_hashes(scripts)}; style-src {_hashes(styles)};"
        " img-src data:; media-src data:; base-uri 'none'; form-action 'none'"
    )


def _hashes(texts: tuple[str, ...]) -> str:
    digests = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts)
    return " ".join(f"'sha256-{digest}'" for digest in digests)


TEMPLATES = Path(__file__).resolve().parent / "templates"
Link = Callable[[str], str]
"""Address of an attempt by its id; empty for none."""


def html_report(report: RunReport) -> str:
    """The report of a run."""
    document = run_document(report)
    scripts, styles = tuple(map(asset, SCRIPTS)), tuple(map(asset, STYLES))
    sections = ((each, blocks_html(each.blocks)) for each in document.sections)
    template = template_environment(TEMPLATES, _visible).get_template("report.html.j2")
    return template.render(
        title=document.title,
        head=blocks_html(document.head),
        sections=[(each, html) for each, html in sections if html],
        policy=content_security_policy(scripts, styles),
        scripts=scripts,
        styles=styles,
    )


def template_environment(folder: Path, finalize: Callable[[object], object]) -> jinja2.Environment:
    """Environment of the templates in a folder, which escapes all values after `finalize`."""
    import jinja2  # slow to import

    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        autoescape=True,
        finalize=finalize,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _visible(value: object) -> object:
    """Text with its control characters as in Python source; markup as it is."""
    return value if hasattr(value, "__html__") else escape_unprintable(str(value), keep="\n\t")


def section_html(section: blocks.Section, link: Link = lambda name: "") -> Markup:
    """A section with its title; empty without blocks."""
    body = blocks_html(section.blocks, link)
    title = Markup('<h2 id="{}">{}</h2>').format(section.name, _text(section.title))
    return title + body if body else body


def blocks_html(parts: Iterable[blocks.Block], link: Link = lambda name: "") -> Markup:
    """Elements of blocks. `link`: for the names of attempts in tables."""
    return Markup().join(_block(block, link) for block in parts)


def _block(block: blocks.Block, link: Link) -> Markup:
    match block:
        case blocks.Words():
            return Markup('<p class="{}">{}</p>').format(block.style, _words(block.text))
        case blocks.Facts():
            rows = (
                Markup('<dt>{}</dt><dd class="{}">{}</dd>').format(
                    _text(name), "strong" if name == block.strong else "", _words(text)
                )
                for name, text in block.rows.items()
            )
            return Markup('<dl class="facts">{}</dl>').format(Markup().join(rows))
        case blocks.Grid():
            return _grid(block, link) if block.rows else Markup()
        case blocks.Source(language="python"):
            code = Markup('<pre class="highlight"><code>{}</code></pre>')
            return code.format(highlighted(block.text))
        case blocks.Source():
            return Markup('<pre class="words"><code>{}</code></pre>').format(_text(block.text))
        case blocks.Quote():
            title = Markup("<h3>{}</h3>").format(_text(block.title)) if block.title else Markup()
            quoted = _text(clipped(block.text.strip(), LONGEST_QUOTATION))
            return title + Markup("<blockquote>{}</blockquote>").format(quoted)
        case blocks.Items():
            lines = (Markup("<li>{}</li>").format(_words(line)) for line in block.lines)
            return Markup("<ul>{}</ul>").format(Markup().join(lines))
        case blocks.DrawingBlock():
            return Markup('<div class="wide">{}</div>').format(block.html())
        case blocks.Folded():
            inner = blocks_html(block.blocks, link)
            folded = Markup("<details><summary>{}</summary>{}</details>")
            return folded.format(_text(block.summary), inner)


def _grid(grid: blocks.Grid, link: Link) -> Markup:
    """A table, whose rows are stacked where a screen is narrow."""
    kinds = ["number" if title in grid.numbers else "name" for title in grid.titles]
    kinds[-1] = "text" if kinds[-1] == "name" else kinds[-1]
    heads = (
        Markup('<th scope="col" class="{}">{}</th>').format(kind, _text(title))
        for kind, title in zip(kinds, grid.titles, strict=True)
    )
    rows = []
    for place, row in enumerate(grid.rows):
        name = grid.id_of(place)
        address = link(name) if name else ""
        first = _words(row[0])
        if address:
            first = Markup('<a href="{}">{}</a>').format(address, first)
        cells = [Markup('<th scope="row" class="name">{}</th>').format(first)]
        cells += [
            Markup('<td data-title="{}" class="{}">{}</td>').format(
                _text(title), kind, _words(cell)
            )
            for title, kind, cell in zip(grid.titles[1:], kinds[1:], row[1:], strict=True)
        ]
        anchor = Markup(' id="attempt-{}"').format(_text(name)) if name and not address else ""
        best = Markup(' class="best"') if name and name == grid.best else ""
        rows.append(Markup("<tr{}{}>{}</tr>").format(anchor, best, Markup().join(cells)))
    head = Markup('<div class="wide"><table class="stacked"><thead><tr>{}</tr></thead>')
    body = Markup("<tbody>{}</tbody></table></div>").format(Markup().join(rows))
    return head.format(Markup().join(heads)) + body


def _words(text: str) -> Markup:
    """Text with its parts in backticks as code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:  # a backtick of its own
        return _text(text)
    code = Markup("<code>{}</code>")
    return Markup().join(
        code.format(_text(part)) if place % 2 else _text(part) for place, part in enumerate(parts)
    )


def _text(text: str) -> Markup:
    return escape(escape_unprintable(text, keep="\n\t"))
