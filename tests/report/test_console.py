"""Python source on the terminal, with colours and without."""

from __future__ import annotations

import io

import pytest
from rich.panel import Panel
from rich.text import Text

from eureka_agent.report.terminal import CleanConsole, PythonSource

SOURCE = f"def f(x):\n\tif x:\n\t\treturn 'a {'word ' * 40}'\n\n    # 語{'語' * 60}\n    y = {'9' * 120}\n"


@pytest.mark.parametrize("width", [40, 100])
def test_a_source_is_wrapped_alike_with_colours_and_without(width: int) -> None:
    coloured, plain = io.StringIO(), io.StringIO()
    terminal = CleanConsole(
        file=coloured, width=width, force_terminal=True, color_system="truecolor"
    )
    for console in (terminal, CleanConsole(file=plain, width=width, color_system=None)):
        console.print(Panel(PythonSource(SOURCE)))
    assert "\x1b[" in coloured.getvalue()
    assert "\x1b[" not in plain.getvalue()
    assert Text.from_ansi(coloured.getvalue()).plain == plain.getvalue()
