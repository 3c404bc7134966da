"""The account of a run, with sums worked out by hand."""

from __future__ import annotations

from decimal import Decimal
from io import StringIO

from rich.console import Console

from eureka_agent.records import Cost, Message
from eureka_agent.report.ledger import NOTHING_ASKED, Ledger, ledger_blocks, ledger_to_json
from eureka_agent.report.terminal import render_block


def message(
    role: str,
    attempt: str,
    model: str,
    money: str | None,
    prompt: int | None = 100,
    cached: int = 0,
) -> Message:
    cost = Cost(
        money=None if money is None else Decimal(money),
        prompt_tokens=prompt,
        completion_tokens=None if prompt is None else 20,
        cached_tokens=cached,
        seconds=2.0,
    )
    return Message(role=role, attempt=attempt, model=model, request="q", reply="a", cost=cost)


MESSAGES = [
    message("designer", "1-02", "openai/a", "0.10"),
    message("reviewer", "1-02", "openai/b", "0.01"),
    message("designer", "1-02-r1", "openai/a", "0.20", cached=60),
    message("designer", "1-10", "openai/c", "0.40"),
    message("metric", "", "openai/a", "0.05"),
]


def shown(account: Ledger) -> str:
    console = Console(file=StringIO(), width=110)
    for block in ledger_blocks(account):
        console.print(*render_block(block))
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def test_lines_are_by_role_and_model_and_by_attempt_in_the_attempts_order() -> None:
    account = Ledger(tuple(MESSAGES))
    assert [(line.name, line.model, line.requests, line.money) for line in account.by_role] == [
        ("designer", "openai/a", 2, Decimal("0.30")),
        ("reviewer", "openai/b", 1, Decimal("0.01")),
        ("designer", "openai/c", 1, Decimal("0.40")),
        ("metric", "openai/a", 1, Decimal("0.05")),
    ]
    assert [(line.name, line.requests, line.money) for line in account.by_attempt] == [
        ("(none)", 1, Decimal("0.05")),
        ("1-02", 2, Decimal("0.11")),
        ("1-02-r1", 1, Decimal("0.20")),
        ("1-10", 1, Decimal("0.40")),
    ]
    assert (account.total.money, account.total.prompt_tokens, account.total.cached_tokens) == (
        Decimal("0.76"),
        500,
        60,
    )
    assert account.total.seconds == 10.0


def test_one_unknown_cost_makes_a_sum_unknown_and_no_other() -> None:
    account = Ledger((*MESSAGES, message("designer", "1-02", "openai/a", None, prompt=None)))
    assert account.total.money is None
    assert account.total.uncounted == 1
    assert account.total.prompt_tokens == 500
    assert [line.money for line in account.by_attempt if line.name == "1-02"] == [None]
    assert [line.money for line in account.by_attempt if line.name == "1-10"] == [Decimal("0.40")]
    text = shown(account)
    assert "unknown" in text
    assert "1 reply came without a count of tokens" in text
    assert ledger_to_json(account)["total"]["money"] is None


def test_the_tables_have_sums_and_say_that_times_overlap() -> None:
    text = shown(Ledger(tuple(MESSAGES)))
    total = next(line for line in text.splitlines() if line.startswith("total"))
    assert total.split() == ["total", "5", "500", "60", "100", "10", "s", "$0.7600"]
    assert "of which several can be under way at once" in " ".join(text.split())


def test_nobody_was_asked() -> None:
    assert shown(NOTHING_ASKED).strip() == "no LLM was asked"
    assert ledger_to_json(NOTHING_ASKED)["by_role"] == []


def test_half_prices_are_explained() -> None:
    plain = message("designer", "1-01", "openai/a", "0.10")
    batched = plain.model_copy(update={"cost": plain.cost.model_copy(update={"batched": True})})
    assert "half the price" not in shown(Ledger((plain,)))
    assert "2 requests came in a batch (--llm-batch)" in shown(Ledger((plain, batched, batched)))
