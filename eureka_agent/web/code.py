"""Source of a reward, line by line, with the critic's findings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from eureka_agent.records import Finding
from eureka_agent.report.html.source import LONGEST_SOURCE
from eureka_agent.text import clipped, escape_unprintable


@dataclass(frozen=True)
class Line:
    """A line of a source with the critic's findings on it."""

    number: int
    code: Markup
    findings: tuple[Finding, ...]


def code_lines(source: str, findings: Sequence[Finding]) -> list[Line]:
    """Highlighted lines, each with the findings on it."""
    shown = escape_unprintable(clipped(source.rstrip(), LONGEST_SOURCE), keep="\n\t")
    code = highlight(shown, PythonLexer(stripnl=False), HtmlFormatter(nowrap=True))
    at: dict[int | None, list[Finding]] = {}
    for finding in findings:
        at.setdefault(finding.line, []).append(finding)
    return [
        Line(number, Markup(line), tuple(at.get(number, ())))
        for number, line in enumerate(code.rstrip("\n").split("\n"), 1)
    ]


def without_line(findings: Sequence[Finding], lines: Sequence[Line]) -> list[Finding]:
    """Findings that are at none of these lines."""
    return [each for each in findings if not 1 <= (each.line or 0) <= len(lines)]
