"""A person is told about the sentence before anything is trained."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from eureka_agent.archive.run_folder import Run
from eureka_agent.critic.memory import normalized
from eureka_agent.designer.interface import DesignRequest
from eureka_agent.designer.offline.designer import OfflineDesigner
from eureka_agent.records import Operator, TaskDescription
from eureka_agent.search.sentence import (
    agrees,
    comparison,
    how_to_name_a_model,
    notices,
    words_used,
)
from eureka_agent.search.summary import run_report
from eureka_agent.simulation.loading import describe, load_environment

FITTING: dict[str, tuple[str, ...]] = {
    "cartpole/balance": (
        *("don't let the pole fall over", "stabilise the inverted pendulum", "maintain balance"),
        *("balance the pole upright near the centre of the track", "keep the pole upright"),
    ),
    "cartpole/swingup": (
        "bring the hanging pole to the top and keep it there",
        "swing up the pole",
    ),
    "hopper/run": ("make the one-legged robot jump ahead at top speed", "sprint", "go forward"),
    "ant/run": ("make the quadruped trot ahead fast", "move in the +x direction quickly"),
    "quadcopter/hover": ("fly to the waypoint and hold position", "navigate to the goal"),
}
"""Paraphrases of a task."""
DIFFERENT: dict[str, tuple[tuple[str, str], ...]] = {
    "cartpole/balance": (
        ("spin the pole round and round", ""),
        ("swing the hanging pole up and balance it upright", "--task swingup"),
        ("let the pole hang down still", ""),
        ("make the hopper run forward", ""),
        ("倒立摆保持平衡", ""),
    ),
    "cartpole/swingup": (("balance the pole upright", "--task balance"),),
    "hopper/run": (
        ("hop backwards", ""),
        ("stand still", ""),
        ("do a backflip", "--task back_flip"),
    ),
    "ant/run": (("walk backwards slowly", ""), ("wave one leg", "--task wave_leg"), ("dance", "")),
    "quadcopter/hover": (("fly away from the goal", ""), ("land on the ground", "")),
}
"""Something else than the task, with the flags that are to be offered; empty: another metric is."""


@cache
def built_in(reference: str) -> TaskDescription:
    environment, _, task = reference.partition("/")
    return describe(load_environment(environment), task)


def test_paraphrases_are_left_alone() -> None:
    for reference, sentences in FITTING.items():
        for sentence in sentences:
            assert comparison(sentence, built_in(reference)) is None, sentence
    # words that the vocabulary lacks: what they ask for cannot be compared, and that is said
    assert comparison("hold the stick up without dropping it", built_in("cartpole/balance"))


@pytest.mark.parametrize(("reference", "pairs"), DIFFERENT.items())
def test_of_other_wishes_a_nearer_task_is_offered_else_a_measure_of_its_own(
    reference: str, pairs: tuple[tuple[str, str], ...]
) -> None:
    for sentence, flags in pairs:
        note = comparison(sentence, built_in(reference))
        assert note is not None, sentence
        assert note.level == "warning"
        assert note.text.startswith(f"scored by: {built_in(reference).fitness_doc}. ")
        assert (flags or "--fitness written") in note.text
        assert ("nearer" in note.text) == bool(flags), note.text


def test_words_that_agree_are_told_from_those_that_may_not() -> None:
    assert agrees("hover at the goal", built_in("quadcopter/hover"))
    assert agrees("make the ant run", built_in("ant/run"))
    assert not agrees("run backward", built_in("ant/run"))
    assert not agrees("do something nice", built_in("ant/run"))


@pytest.mark.parametrize("reference", [*FITTING])
def test_of_the_tasks_own_sentence_is_only_told_what_its_words_became(reference: str) -> None:
    description = built_in(reference)
    told = notices(description.sentence, description, offline=True)
    assert [(note.level, note.stays) for note in told] == [("info", True)]
    assert told[0].text.startswith("the offline designer uses of the sentence: ")


@pytest.mark.parametrize("reference", ["allegro_hand/turn", "shadow_hand/turn"])
def test_what_names_no_goal_is_not_used_and_no_reason_to_warn(reference: str) -> None:
    description = built_in(reference)
    note = words_used(description.sentence, description)
    assert description.sentence.endswith("without a drop")
    assert note.level == "info"
    assert note.text.endswith("'drop'")
    # lava is a thing of the environment, which has to be kept off
    cave = built_in("craft/keep_off_lava")
    assert "not understood, so that no term is made of it: 'keep off lava'" in (
        words_used(cave.sentence, cave).text
    )


@pytest.mark.parametrize(
    ("settings", "clauses"),
    [
        ({"sentence": "balance the pole, and do not jump"}, ("do not jump",)),
        ({"sentence": "balance the pole without a fuss"}, ()),
        ({"sentence": "do not jump", "model": ("openai/some",)}, ()),
    ],
)
def test_a_report_has_what_the_offline_designer_did_not_understand(
    make_run: Callable[..., Run], settings: dict[str, Any], clauses: tuple[str, ...]
) -> None:
    assert run_report(make_run(**settings)).not_understood == clauses


def test_another_task_of_a_persons_own_folder_is_offered(tmp_path: Path) -> None:
    (tmp_path / "tasks").mkdir()
    (tmp_path / "env.py").write_text('"""A crane."""\nDEFAULT_TASK = "lift"\n')
    (tmp_path / "tasks" / "lift.py").write_text(
        'TASK = Task(sentence="lift the load as high as possible")\n'
    )
    (tmp_path / "tasks" / "still.py").write_text('TASK = Task(sentence="keep the load still")\n')
    words = {"task": "lift", "sentence": "lift the load as high as possible"}
    words |= {"environment": str(tmp_path), "fitness_doc": "height of the load at the end"}
    crane = built_in("hopper/run").model_copy(update=words)
    note = comparison("hold the load still", crane)
    assert note is not None
    assert "--task still ('keep the load still')" in note.text
    assert comparison("raise the load", crane) is None


def test_words_are_told_with_the_terms_that_they_became(monkeypatch: pytest.MonkeyPatch) -> None:
    for key in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(key, raising=False)
    note = words_used("walk backwards quietly", built_in("ant/run"))
    assert (
        note.text
        == "the offline designer uses of the sentence: 'walk' 'backwards' → backward; not used:"
        " 'quietly'"
    )
    assert note.level == "info"
    manners = words_used(
        "keep the pole upright and the cart in the middle with little energy",
        built_in("cartpole/balance"),
    )
    assert "'cart' 'middle' → centred; 'energy' → effort; not used: 'little'" in manners.text


@pytest.mark.parametrize("sentence", ["倒立摆保持平衡", "tenir la perche"])
def test_a_sentence_that_it_cannot_read_leaves_the_task_alone(sentence: str) -> None:
    note = words_used(sentence, built_in("cartpole/balance"))
    assert note.level == "warning"
    assert "can use no word of the sentence: the search is made from the task alone" in note.text
    assert "A language model would read them" in note.text
    asked = [
        DesignRequest(built_in("cartpole/balance"), words, Operator.FRESH, (), (), seed=3)
        for words in (sentence, "🙂")
    ]
    first, second = (asyncio.run(OfflineDesigner().propose(each)).reward.source for each in asked)
    assert normalized(first) == normalized(second)


def test_a_key_is_named_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    assert how_to_name_a_model() == "OPENAI_API_KEY is set: --model openai/<name>"
    assert "very-secret" not in words_used("xyzzy", built_in("ant/run")).text
    monkeypatch.setenv("OPENAI_API_KEY", " ")
    assert "--base-url" in how_to_name_a_model()
    assert "is set" not in how_to_name_a_model()


def test_what_the_source_alone_shows_is_told_before_anything_is_trained() -> None:
    described = built_in("cartpole/balance").model_copy(
        update={"remarks": ("env.py, line 7: Cart has 'reset_ids'",)}
    )
    found = notices(described.sentence, described, offline=False)
    assert [(each.level, each.text.partition(". ")[0]) for each in found] == [
        ("warning", "env.py, line 7: Cart has 'reset_ids'")
    ]
