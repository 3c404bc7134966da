"""Account of the requests to models: by who asked, by the attempt that it was for, and in all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from eureka_agent import wording
from eureka_agent.records import Message

NO_ATTEMPT = "(none)"

SUMMED_TIME = (
    "Times are sums over the requests, of which several can be under way at once: they can be"
    " longer than the run."
)


@dataclass(frozen=True, kw_only=True)
class LedgerLine:
    """Requests that belong together."""

    name: str
    model: str
    requests: int
    uncounted: int
    """Requests whose tokens the server did not count: they are not in the sums."""
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    seconds: float
    """Sum of the times that the replies took; several may have been under way at once."""
    money: Decimal | None
    """US dollars; None where that of any request is unknown."""


@dataclass(frozen=True)
class Ledger:
    """A run's account."""

    messages: tuple[Message, ...]

    @property
    def empty(self) -> bool:
        return not self.messages

    @cached_property
    def by_role(self) -> tuple[LedgerLine, ...]:
        """In the order in which they first asked; a role that asked two models has two lines."""
        return _grouped(self.messages, lambda message: (message.role, message.model))

    @cached_property
    def by_attempt(self) -> tuple[LedgerLine, ...]:
        """In the attempts' order."""
        lines = _grouped(self.messages, lambda message: (message.attempt or NO_ATTEMPT, ""))
        return tuple(sorted(lines, key=lambda line: _place(line.name)))

    @cached_property
    def total(self) -> LedgerLine:
        """All of them."""
        return _line("total", "", self.messages)


def format_money(money: Decimal | None) -> str:
    """US dollars; four decimals, so that a cent's parts show. An unknown amount says so."""
    return "unknown" if money is None else f"${money:,.4f}"


def _grouped(
    messages: Sequence[Message], key: Callable[[Message], tuple[str, str]]
) -> tuple[LedgerLine, ...]:
    groups: dict[tuple[str, str], list[Message]] = {}
    for message in messages:
        groups.setdefault(key(message), []).append(message)
    return tuple(_line(name, model, members) for (name, model), members in groups.items())


def _line(name: str, model: str, messages: Sequence[Message]) -> LedgerLine:
    costs = [message.cost for message in messages]
    known = [cost.money for cost in costs if cost.money is not None]
    return LedgerLine(
        name=name,
        model=model,
        requests=len(costs),
        uncounted=sum(
            cost.prompt_tokens is None or cost.completion_tokens is None for cost in costs
        ),
        prompt_tokens=sum(cost.prompt_tokens or 0 for cost in costs),
        cached_tokens=sum(cost.cached_tokens or 0 for cost in costs),
        completion_tokens=sum(cost.completion_tokens or 0 for cost in costs),
        seconds=sum(cost.seconds for cost in costs),
        money=sum(known, Decimal(0)) if len(known) == len(costs) else None,
    )


def _place(attempt: str) -> tuple[int, ...]:
    """`2-05-r1` → (2, 5, 1); what is for no attempt comes first."""
    parts = attempt.replace("r", "").split("-")
    return tuple(int(part) for part in parts) if all(part.isdigit() for part in parts) else ()


NOTHING_ASKED = Ledger(())


def render_ledger(account: Ledger) -> RenderableType:
    """For `eureka show RUN --cost`."""
    if account.empty:
        return Text("no LLM was asked")
    by_role = _table("who asked", "model", [*account.by_role, account.total])
    by_attempt = _table("attempt", "", account.by_attempt)
    parts: list[RenderableType] = [by_role, Text(), by_attempt, Text(), Text(SUMMED_TIME)]
    if account.total.uncounted:
        replies = wording.plural(account.total.uncounted, "reply", "replies")
        parts += [
            Text(),
            Text(
                f"{replies} came without a count of tokens: their tokens are not in the sums, and"
                " their cost is unknown."
            ),
        ]
    elif account.total.money is None:
        parts += [
            Text(),
            Text(
                "A cost is unknown where no price of the model is known; --price gives one to a new"
                " search."
            ),
        ]
    return Group(*parts)


def _table(title: str, second: str, lines: Sequence[LedgerLine]) -> Table:
    table = Table(
        box=None, pad_edge=False, header_style="bold", show_edge=False, padding=(0, 2, 0, 0)
    )
    table.add_column(title, no_wrap=True)
    if second:
        table.add_column(second, overflow="fold")
    cached = any(line.cached_tokens for line in lines)  # else a column of zeros
    for name in (
        "requests",
        "prompt",
        *(["of it cached"] if cached else []),
        "reply",
        "summed time",
        "cost",
    ):
        table.add_column(name, justify="right", no_wrap=True)
    for line in lines:
        cells = [
            line.name,
            *([line.model] if second else []),
            f"{line.requests:,}",
            f"{line.prompt_tokens:,}",
            *([f"{line.cached_tokens:,}"] if cached else []),
            f"{line.completion_tokens:,}",
            wording.duration(line.seconds),
            format_money(line.money),
        ]
        table.add_row(*cells, style="bold" if line.name == "total" else "")
    return table


def ledger_to_json(account: Ledger) -> dict[str, Any]:
    """The account in plain JSON types; an unknown amount of money is null."""
    return {
        "by_role": [{"role": line.name, **_line_to_json(line)} for line in account.by_role],
        "by_attempt": [
            {"attempt": None if line.name == NO_ATTEMPT else line.name, **_line_to_json(line)}
            for line in account.by_attempt
        ],
        "total": _line_to_json(account.total),
    }


def _line_to_json(line: LedgerLine) -> dict[str, Any]:
    return {
        **({"model": line.model} if line.model else {}),
        "requests": line.requests,
        "uncounted": line.uncounted,
        "prompt_tokens": line.prompt_tokens,
        "cached_tokens": line.cached_tokens,
        "completion_tokens": line.completion_tokens,
        "seconds": round(line.seconds, 3),
        "money": None if line.money is None else str(line.money),
    }
