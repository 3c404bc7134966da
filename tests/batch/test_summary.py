"""The summary of a batch as text, and what a terminal shows of a batch at work."""

from __future__ import annotations

import io
from decimal import Decimal

from rich.console import Console

from eureka_agent.batch.intents import BatchEvent
from eureka_agent.batch.summary import BatchView, SummaryRow, counts, markdown

ROWS = [
    SummaryRow("ant-seed0", "finished", "ant · run", trained=3, attempts=4, best="3.10 m",
               human="2.60 m", human_normalized=1.25, env_steps=1_500_000, money=Decimal("1.5")),
    SummaryRow("ant-seed1", "failed", message="=no engine | none", money=Decimal(0)),
]  # fmt: skip


def test_the_text_has_every_search() -> None:
    text = markdown("night", "Finished", ROWS)
    assert "| ant-seed0 | finished | ant · run | – | 3/4 | 3.10 m | 2.60 m | 1.25 | – |" in text
    assert "- **ant-seed1**: =no engine | none" in text


def test_money_is_the_sum_of_what_is_known_or_unknown() -> None:
    found = counts(ROWS)
    assert (found["searches"], found["finished"], found["failed"]) == ("2", "1", "1")
    assert (found["trained"], found["env steps"], found["on models"]) == ("3", "1.50M", "$1.50")
    begun = SummaryRow("ant-seed2", "running", attempts=1)
    assert counts([*ROWS, begun])["on models"] == "–"


def event(kind: str, search: str | None = None, text: str = "") -> BatchEvent:
    return BatchEvent(number=1, time=0.0, kind=kind, search=search, text=text)


def test_without_a_terminal_each_event_is_a_line() -> None:
    written = io.StringIO()
    with BatchView(Console(file=written, width=20)) as view:
        view.event(event("failed", "a-search-with-a-long-name", "the reason of it"))
        view.rows(ROWS)
    line = written.getvalue()
    assert line.endswith(" a-search-with-a-long-name: failed the reason of it\n")
    assert line.count("\n") == 1


def test_on_a_terminal_the_table_stands_below_the_events() -> None:
    written = io.StringIO()
    console = Console(file=written, force_terminal=True, color_system=None, width=120, height=20)
    with BatchView(console) as view:
        view.rows(ROWS)
        begin = len(written.getvalue())
        view.event(event("warning", None, "no room"))
    shown = written.getvalue()[begin:]
    assert shown.index("warning no room") < shown.index("ant-seed0")
