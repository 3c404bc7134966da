"""Numbers, counts and durations in the words of every report."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from eureka_agent.text import one_line

LONGEST_TITLE = 200
MISSING = "–"


def number(value: float | None) -> str:
    """Four significant digits with thousands separators; a dash for unknown."""
    if value is None or math.isnan(value):
        return MISSING
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    magnitude = abs(value)
    if magnitude >= 99_999_500:
        return f"{value:.3e}"
    if magnitude >= 999.95:
        return f"{value:,.0f}"
    if magnitude >= 99.995:
        return f"{value:.1f}"
    if magnitude >= 0.9995:
        return f"{value:.2f}"
    if magnitude == 0:
        return "0"
    return f"{value:.3f}" if magnitude >= 0.0995 else f"{value:.3g}"


def significant(value: float | None, digits: int = 4, unknown: str = "unknown") -> str:
    """Number for a prompt, with so many significant digits."""
    return unknown if value is None else f"{value:.{digits}g}"


def plus_minus(mean: float | None, deviation: float | None) -> str:
    """`12.34 ± 0.56`, with the mean's decimals; the mean alone without a deviation."""
    text = number(mean)
    if mean is None or deviation is None or not math.isfinite(deviation):
        return text
    decimals = len(text.partition(".")[2]) if "e" not in text else 0
    rounded = f"{deviation:,.{decimals}f}"
    return f"{text} ± {rounded if float(rounded.replace(',', '')) else number(deviation)}"


def strength(mean: float, deviation: float) -> str:
    """`+1.25 ± 0.50`."""
    return f"{mean:+.2f} ± {deviation:.2f}"


def count(value: float) -> str:
    """Three digits with k, M or G: `204k`, `1.23M`."""
    for size, suffix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size * 0.9995:
            scaled = value / size
            digits = 0 if scaled >= 99.95 else 1 if scaled >= 9.995 else 2
            return f"{scaled:.{digits}f}{suffix}"
    return f"{value:.0f}"


def file_size(size: int) -> str:
    """`0 B`, `812 kB`, `3.7 MB`, in powers of 1000."""
    if size < 1000:
        return f"{size} B"
    scaled, units = float(size), iter(("kB", "MB", "GB", "TB"))
    unit = ""
    while scaled >= 999.5 and (bigger := next(units, "")):
        scaled, unit = scaled / 1000, bigger
    return f"{scaled:.{1 if scaled < 9.95 else 0}f} {unit}"


def clock_time(seconds: float) -> str:
    """`1:05` or `2:03:04`, for the live view."""
    whole = max(0, round(seconds))
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"


def duration(seconds: float) -> str:
    """`0.4 s`, `42 s`, `3 min 5 s`, `2 h 10 min`, for prose."""
    if seconds < 9.95:
        return f"{max(seconds, 0.0):.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60} min"


def rough_duration(seconds: float) -> str:
    """`1.5 s`, `20 s`, `45 min`, `3 h`: a wait or an estimate."""
    if seconds < 10:
        return f"{seconds:.1f} s" if seconds % 1 else f"{seconds:g} s"
    if seconds < 600:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"


def plural(amount: int, one: str, many: str = "") -> str:
    """`1 training`, `3 trainings`."""
    return f"{amount:,} {one if amount == 1 else many or one + 's'}"


def some_of(names: Sequence[str], most: int) -> str:
    """`a, b and 3 more`: the first names of many."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def money(amount: Decimal | None) -> str:
    """US dollars with four decimals, since a request may cost parts of a cent; `unknown`."""
    return "unknown" if amount is None else f"${amount:,.4f}"


def words(operator: str) -> str:
    """Name of an operator or a stage with spaces for underscores."""
    return operator.replace("_", " ")


def without_trailing_comments(source: str) -> str:
    """`source` up to its last line of code."""
    # `splitlines` also breaks where Python does not: the rest of such a comment would become code
    lines = re.split("\r\n|\r|\n", source)
    while len(lines) > 1 and (not lines[-1].strip() or lines[-1].startswith("#")):
        lines.pop()
    return "\n".join(lines)


def title(sentence: str) -> str:
    """A sentence as a heading, cut to one line where it is long."""
    return sentence if len(sentence) <= LONGEST_TITLE else one_line(sentence, LONGEST_TITLE)


def value_text(value: Any) -> str:
    """A setting's value in a sentence: `'ant'`, `64,64`, `on`, or `'openai/a', 'openai/b'` for a
    list."""
    if value is None:
        return "not given"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, list | tuple):
        if any(isinstance(each, str) for each in value):
            return ", ".join(map(repr, value))
        return ",".join(map(str, value)) or "not given"
    return repr(value) if isinstance(value, str) else str(value)


def flag_text(name: str, value: Any) -> str:
    """The flag for a setting's value, quoted for a shell: `--strategy islands`, `--no-novelty`."""
    flag = name.replace("_", "-")
    if isinstance(value, bool):
        return f"--{flag}" if value else f"--no-{flag}"
    return f"--{flag} {shlex.quote(str(value))}"
