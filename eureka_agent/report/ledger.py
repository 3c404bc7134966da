"""Account of the requests to models: by role, by attempt, and in total."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

from eureka_agent import wording
from eureka_agent.journal.entries import Asked
from eureka_agent.records import Message
from eureka_agent.report.blocks import Block, Grid, Words

NO_ATTEMPT = "(none)"

SUMMED_TIME = (
    "Times are sums over the requests, of which several can be under way at once: they can be"
    " longer than the run."
)


@dataclass(frozen=True, kw_only=True)
class LedgerLine:
    """Sums over a group of requests."""

    name: str
    model: str
    requests: int
    uncounted: int
    """Requests whose tokens the server did not count: they are not in the sums."""
    batched: int
    """Requests that were answered in a batch, at half the price."""
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    seconds: float
    """Sum of the replies' times; requests may overlap."""
    money: Decimal | None
    """US dollars; None where unknown for any request."""


@dataclass(frozen=True)
class Ledger:
    """Account of a run."""

    messages: tuple[Message, ...]

    @cached_property
    def by_role(self) -> tuple[LedgerLine, ...]:
        """A line for each role and model, in the order of their first requests."""
        return _grouped(self.messages, lambda message: (message.role, message.model))

    @cached_property
    def by_attempt(self) -> tuple[LedgerLine, ...]:
        """A line for each attempt, in order."""
        lines = _grouped(self.messages, lambda message: (message.attempt or NO_ATTEMPT, ""))
        return tuple(sorted(lines, key=lambda line: _place(line.name)))

    @cached_property
    def total(self) -> LedgerLine:
        """Line for all requests."""
        return _line("total", "", self.messages)

    @property
    def asked(self) -> Asked:
        """The account in brief."""
        total = self.total
        return Asked(
            requests=total.requests,
            uncounted=total.uncounted,
            tokens=total.prompt_tokens + total.completion_tokens,
            money=total.money,
        )


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
        batched=sum(cost.batched for cost in costs),
        prompt_tokens=sum(cost.prompt_tokens or 0 for cost in costs),
        cached_tokens=sum(cost.cached_tokens or 0 for cost in costs),
        completion_tokens=sum(cost.completion_tokens or 0 for cost in costs),
        seconds=sum(cost.seconds for cost in costs),
        money=sum(known, Decimal(0)) if len(known) == len(costs) else None,
    )


def _place(attempt: str) -> tuple[int, ...]:
    """`2-05-r1` → (2, 5, 1); `NO_ATTEMPT` comes first."""
    parts = attempt.replace("r", "").split("-")
    return tuple(int(part) for part in parts) if all(part.isdigit() for part in parts) else ()


NOTHING_ASKED = Ledger(())


def ledger_grid(title: str, lines: Sequence[LedgerLine]) -> Grid:
    """A table of lines, whose names have this title."""
    numbers = ("requests", "prompt", "of it cached", "reply", "summed time", "cost")
    rows = [
        (
            *(line.name, line.model, f"{line.requests:,}", f"{line.prompt_tokens:,}"),
            *(f"{line.cached_tokens:,}", f"{line.completion_tokens:,}"),
            *(wording.duration(line.seconds), wording.money(line.money)),
        )
        for line in lines
    ]
    return Grid((title, "model", *numbers), rows, numbers=numbers)


def ledger_blocks(account: Ledger) -> list[Block]:
    """Both tables, for `eureka show RUN --cost`."""
    if not account.messages:
        return [Words("no LLM was asked")]
    total = account.total
    notes = [SUMMED_TIME]
    if total.batched:
        requests = wording.plural(total.batched, "request")
        notes.append(f"{requests} came in a batch (--llm-batch), at half the price.")
    if total.uncounted:
        replies = wording.plural(total.uncounted, "reply", "replies")
        notes.append(
            f"{replies} came without a count of tokens: their tokens are not in the sums, and their"
            " cost is unknown."
        )
    elif total.money is None:
        notes.append(
            "A cost is unknown where no price of the model is known; --price gives one to a new"
            " search."
        )
    by_role = ledger_grid("who asked", (*account.by_role, total))
    return [by_role, ledger_grid("attempt", account.by_attempt), Words(" ".join(notes))]


def ledger_to_json(account: Ledger) -> dict[str, Any]:
    """Account in plain JSON types; an unknown amount of money is null."""
    return {
        "by_role": [{"role": line.name, **_line_to_json(line)} for line in account.by_role],
        "by_attempt": [
            {"attempt": None if line.name == NO_ATTEMPT else line.name, **_line_to_json(line)}
            for line in account.by_attempt
        ],
        "total": _line_to_json(account.total),
    }


def _line_to_json(line: LedgerLine) -> dict[str, Any]:
    money = None if line.money is None else str(line.money)
    values = {**asdict(line), "seconds": round(line.seconds, 3), "money": money}
    return {name: value for name, value in values.items() if name != "name" and value != ""}
