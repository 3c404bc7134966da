from __future__ import annotations

from decimal import Decimal
from io import StringIO

import pytest

from eureka_agent.records import TaskDescription
from eureka_agent.report.plan import (
    RoleEstimate,
    SearchEstimate,
    SearchPlan,
    facts_of,
    plan_to_json,
    render_plan,
)
from eureka_agent.report.terminal import CleanConsole
from eureka_agent.settings import SearchSettings
from eureka_agent.training_counts import TrainingCounts

ROLES = (
    RoleEstimate("designer", "openai/one", 16, 96_000, 9_600, Decimal("0.192")),
    RoleEstimate("analyst", "openai/mine", 1, 2_500, 425, None),
)


def plan_of(description: TaskDescription, money: Decimal | None) -> SearchPlan:
    estimate = SearchEstimate(28, 280_000, 250.0, 17, 98_500, 10_025, money)
    counts = TrainingCounts(
        candidates=8, confirmations=4, confirmed=1, finals=15, likely_finals=8, baselines=0
    )
    settings = SearchSettings(env_steps=10_000)
    notes = ("a reply is assumed to take 20 s",)
    return SearchPlan(
        estimate, settings, description, counts, ROLES, "trainings run here", None, notes
    )


def test_an_estimate_for_people(description: TaskDescription) -> None:
    console = CleanConsole(file=StringIO(), width=120)
    console.print(render_plan(plan_of(description, None)))
    assert isinstance(console.file, StringIO)
    assert [line.rstrip() for line in console.file.getvalue().splitlines()] == [
        "task       jumper/jump: jump",
        "search     2 generations of 8 proposals",
        "trainings  about 28: 16 of proposals, 4 to confirm the best, 8 final",
        "env steps  about 280k, 10.2k a training",  # whole updates of 512 env steps
        "wall time  about 4 min 10 s",
        "devices    trainings run here",
        "models     17 requests, 98.5k tokens of prompts and 10.0k of replies",
        "           designer, openai/one: 16 requests of 6.00k + 600 tokens",
        "           analyst, openai/mine: 1 request of 2.50k + 425 tokens",
        "cost       not known: not all prices are",
        "",
        "A reply is assumed to take 20 s.",
        "Nothing was started.",
    ]


@pytest.mark.parametrize(
    ("money", "text", "in_json"),
    [
        (Decimal("0.1920"), "about $0.19", "0.192"),
        (Decimal("1234.5"), "about $1,234.50", "1234.5"),
        (Decimal("0.0001"), "less than $0.01", "0.0001"),
        (None, "not known: not all prices are", None),
    ],
)
def test_money(
    description: TaskDescription, money: Decimal | None, text: str, in_json: str | None
) -> None:
    plan = plan_of(description, money)
    assert facts_of(plan.estimate)["cost"] == text
    document = plan_to_json(plan)
    assert document["money"] == in_json
    assert [each["money"] for each in document["roles"]] == ["0.192", None]
