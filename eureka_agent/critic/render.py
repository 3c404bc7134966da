"""A verdict as text, in the form of a linter: place, code, message, the line itself, hint."""

from __future__ import annotations

from collections import Counter

from eureka_agent.records import Finding, Verdict
from eureka_agent.wording import plural

_COLOURS = {"error": "red", "warning": "yellow", "note": "cyan"}


def render_verdict(verdict: Verdict, source: str, path: str, *, markup: bool = False) -> str:
    """All findings and a summary. With `markup` it has rich's colour tags, and the rest is
    escaped."""
    parts = [render_finding(finding, source, path, markup=markup) for finding in verdict.findings]
    severities = Counter[str](finding.severity for finding in verdict.findings)
    counts = ", ".join(plural(severities[each], each) for each in _COLOURS if severities[each])
    outcome = "accepted" if verdict.accepted else "rejected"
    summary = (
        f"{outcome} ({counts or 'no findings'}; {', '.join(verdict.steps_run)};"
        f" {verdict.seconds:.1f} s)"
    )
    if markup:
        colour = "green" if verdict.accepted else "red"
        summary = f"[bold {colour}]{outcome}[/]{_escape(summary[len(outcome) :])}"
    return "\n".join([*parts, summary])


def render_line(verdict: Verdict, source: str, path: str, *, markup: bool = False) -> str:
    """One line for a file among others: its first error, or the codes of its findings."""
    errors = [finding for finding in verdict.findings if finding.severity == "error"]
    said = ", ".join(sorted({finding.code for finding in verdict.findings}))
    outcome = "accepted" if verdict.accepted else "rejected"
    where = f"{path}:{errors[0].line}" if errors and errors[0].line is not None else path
    text = (
        f"{where} {errors[0].code} {errors[0].message}"
        if errors
        else f"{path}{f' ({said})' if said else ''}"
    )
    return (
        f"[{'green' if verdict.accepted else 'red'}]{outcome}[/] {_escape(text)}"
        if markup
        else f"{outcome} {text}"
    )


def render_finding(finding: Finding, source: str, path: str, *, markup: bool = False) -> str:
    """`reward.py:3:5 C303 unknown variable 'torso_velocty': did you mean 'torso_velocity'?` with
    its line and a caret."""
    where = ":".join(str(part) for part in (path, finding.line, finding.column) if part is not None)
    text = finding.message
    if finding.hint.startswith("did you mean"):
        text += f": {finding.hint}"
    code = finding.code if finding.severity == "error" else f"{finding.code} ({finding.severity})"
    if markup:
        colour = _COLOURS[finding.severity]
        lines = [f"[bold]{_escape(where)}[/] [{colour}]{code}[/] {_escape(text)}"]
    else:
        lines = [f"{where} {code} {text}"]
    for line in _excerpt(finding, source):
        lines.append(f"[dim]{_escape(line)}[/]" if markup else line)
    if finding.hint and not finding.hint.startswith("did you mean"):
        lines.append(
            f"[cyan]  hint:[/] {_escape(finding.hint)}" if markup else f"  hint: {finding.hint}"
        )
    return "\n".join(lines)


def _excerpt(finding: Finding, source: str) -> list[str]:
    lines = source.splitlines()
    if finding.line is None or not 0 < finding.line <= len(lines):
        return []
    text = lines[finding.line - 1]
    shown = [f"    {text}"]
    if finding.column is not None:
        # tabs stay tabs, so that the caret stands below its character
        before = "".join(
            character if character == "\t" else " " for character in text[: finding.column - 1]
        )
        shown.append(f"    {before}^")
    return shown


def _escape(text: str) -> str:
    from rich.markup import escape

    return escape(text)
