"""Blocks of a document as Markdown: `report.md`, for a person who reads it later."""

from __future__ import annotations

from eureka_agent.markup import Markup, code, escaped, fenced, quoted, table
from eureka_agent.report import blocks
from eureka_agent.report.run_report import RunReport
from eureka_agent.report.sections import run_document


def markdown(report: RunReport) -> str:
    """The report of a run."""
    return document_markdown(run_document(report))


def document_markdown(document: blocks.Document) -> str:
    """A document as a file."""
    head = " ".join(_words(each.text) for each in document.head)
    parts = [f"# {escaped(document.title)}", head, *map(_section, document.sections)]
    return "\n\n".join(filter(None, parts)) + "\n"


def _section(section: blocks.Section) -> str:
    body = "\n\n".join(filter(None, map(_block, section.blocks)))
    return f"## {section.title}\n\n{body}" if body else ""


def _block(block: blocks.Block) -> str:
    match block:
        case blocks.Words():
            return f"**{_words(block.text)}**" if block.style == "strong" else _words(block.text)
        case blocks.Facts():
            return "\n".join(f"- **{name}**: {_words(text)}" for name, text in block.rows.items())
        case blocks.Grid(rows=[]) | blocks.DrawingBlock() | blocks.Folded():
            return ""
        case blocks.Grid():
            rows = [
                [Markup(f"**{escaped(row[0])}**"), *row[1:]]
                if block.best and block.id_of(place) == block.best
                else row
                for place, row in enumerate(block.rows)
            ]
            return table(" | ".join(map(escaped, block.titles)), rows)
        case blocks.Source():
            return fenced(block.text, block.language)
        case blocks.Quote():
            title = f"{escaped(block.title)}:\n\n" if block.title else ""
            return f"{title}{quoted(block.text)}"
        case blocks.Items():
            return "\n".join(f"- {_words(line)}" for line in block.lines)


def _words(text: str) -> str:
    """Escaped text, with its parts in backticks as code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:  # a backtick of its own
        return escaped(text)
    return "".join(
        code(part) if place % 2 else _kept_spaces(part) for place, part in enumerate(parts)
    )


def _kept_spaces(part: str) -> str:
    """A part of a line, with the spaces beside the code."""
    words = escaped(part)
    begin, end = " " * part.startswith(" "), " " * (part.endswith(" ") and bool(part.strip()))
    return f"{begin if words else part}{words}{end}"
