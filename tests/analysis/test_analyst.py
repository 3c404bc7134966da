"""The trajectory analyst: its requests, and the use of its replies."""

from __future__ import annotations

import pytest
from scripted_gateway import Cut, NamedModel, ScriptedGateway

from eureka_agent.analysis.diagnose import CUT_OFF_NOTE, LONGEST_ANALYSIS, Analyst, clean_analysis
from eureka_agent.designer.interface import given_reward
from eureka_agent.llm.budget import BudgetSpentError
from eureka_agent.llm.gateway import ConfiguredModel
from eureka_agent.llm.interface import FinishReason, LanguageModelError, Role
from eureka_agent.records import Diagnosis, TaskDescription

SOURCE = "def compute_reward(cart_position):\n    return -cart_position, {'left': -cart_position}\n"
DIAGNOSIS = Diagnosis(
    fitness=2.0,
    fitness_values=(2.0,),
    episode_length_values=(100.0,),
    components=(),
    findings=(),
    text=(
        "reward 1 2 3\n\nWorst episode (fitness 2, ended by left_the_rail after 100 steps):\ntime"
        " [s]  0.02  2"
    ),
)
WORDS = (
    "At 0.3 s the cart moved left, at 2 s it left the rail. The term left pays for it: -3 at the"
    " end. Square it."
)


async def analysed(description: TaskDescription, reply: str | Cut | Exception) -> str:
    return await Analyst(
        ConfiguredModel(NamedModel(), ScriptedGateway(reply)), description, "centre it"
    ).analyse("1-01", given_reward(SOURCE), DIAGNOSIS)


async def test_it_is_told_what_was_measured(description: TaskDescription) -> None:
    gateway = ScriptedGateway(WORDS, WORDS)
    analyst = Analyst(
        ConfiguredModel(NamedModel("anthropic/small"), gateway, 0.1, 500),
        description,
        "centre the cart",
    )
    assert await analyst.analyse("1-02", given_reward(SOURCE), DIAGNOSIS) == WORDS
    await analyst.analyse("2-01", given_reward(SOURCE + "# another\n"), DIAGNOSIS)
    first, second = gateway.requests
    assert (first.role, first.attempt, first.sample) == (Role.ANALYST, "1-02", 0)
    assert (first.temperature, first.max_tokens) == (0.1, 500)
    assert gateway.models == ["anthropic/small"] * 2
    assert first.messages[0] == second.messages[0], "what a provider can keep in its cache"
    system, order = (message.content for message in first.messages)
    assert "centre the cart" in system
    assert "cart_position: Tensor  # (batch,), m, world frame" in system
    assert "secret" not in system
    assert SOURCE.strip() in order
    assert DIAGNOSIS.text in order


async def test_without_budget_there_is_no_analysis(description: TaskDescription) -> None:
    assert await analysed(description, BudgetSpentError("spent")) == ""


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (Cut("I cannot", FinishReason.REFUSED), "the model refused to answer: 'I cannot'"),
        (Cut("", FinishReason.CUT_OFF), "--reply-tokens"),
        (" \n\t", "is empty"),
    ],
)
async def test_a_reply_without_words_is_an_error_that_says_why(
    description: TaskDescription, reply: str | Cut, why: str
) -> None:
    with pytest.raises(LanguageModelError, match=f"gave no answer: .*{why}"):
        await analysed(description, reply)


async def test_what_was_cut_off_is_kept_and_says_so(description: TaskDescription) -> None:
    assert (
        await analysed(description, Cut("First it fell, then", FinishReason.CUT_OFF))
        == f"First it fell, then {CUT_OFF_NOTE}"
    )


@pytest.mark.parametrize(
    ("reply", "clean"),
    [
        ("<think>hm</think>It fell.", "It fell."),
        ("# Analysis\n\n## 1. Cause\nIt fell.\n\n\n\nSo.", "Analysis\n\n1. Cause\nIt fell.\n\nSo."),
        ("It fell.\n```python\nWEIGHT = 2.0\n```\nSo.", "It fell.\n\nWEIGHT = 2.0\n\nSo."),
        ("It \x1b[31mfell\x1b[0m.\x00\r\n\x1b]0;owned\x07So\u202e.", "It fell.\nSo."),
        ("Use `#3`, weight #2:\n#2 is larger.", "Use `#3`, weight #2:\n#2 is larger."),
    ],
)
def test_only_plain_text_is_kept(reply: str, clean: str) -> None:
    assert clean_analysis(reply) == clean


def test_an_endless_analysis_is_bounded() -> None:
    text = clean_analysis("it fell again " * 20_000)
    assert len(text) <= LONGEST_ANALYSIS + len(CUT_OFF_NOTE) + 1
    assert set(text.removesuffix(CUT_OFF_NOTE).split()) == {"it", "fell", "again"}, (
        "no word is cut in two"
    )
    assert len(clean_analysis("x" * 200_000)) <= LONGEST_ANALYSIS + len(CUT_OFF_NOTE) + 1
