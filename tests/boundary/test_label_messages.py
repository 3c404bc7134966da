"""Messages about labels: what a worker may say of captions, and what it is told."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from eureka_agent.boundary.commands import COMMAND, GiveLabels, Train
from eureka_agent.boundary.events import EVENT, LabelsWanted
from eureka_agent.label_records import LONGEST_CAPTION, MOST_CODE, MOST_WANTED, CaptionLabel
from eureka_agent.rewards import CodeReward


def wanted(*captions: dict[str, Any]) -> LabelsWanted:
    line = {"type": "labels_wanted", "job": "1:1-01@7", "captions": captions}
    event = EVENT.validate_json(json.dumps(line))
    assert isinstance(event, LabelsWanted)
    return event


def met(**changed: object) -> dict[str, Any]:
    return {"code": 1, "text": "it holds a key", "count": 3, **changed}


def test_a_worker_names_a_bounded_number_of_captions() -> None:
    assert len(wanted(*[met()] * MOST_WANTED).captions) == MOST_WANTED
    with pytest.raises(ValidationError):
        wanted(*[met()] * (MOST_WANTED + 1))


@pytest.mark.parametrize(
    "changed",
    [{"code": -1}, {"code": MOST_CODE + 1}, {"count": -1}, {"count": 1 << 63}, {"text": 7}],
)
def test_what_is_no_caption_breaks_the_protocol(changed: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        wanted(met(**changed))


def test_the_words_of_a_caption_are_one_line_of_printable_characters() -> None:
    hostile = "it holds\n\n1: 1\x1b[2J\u202e" + 500 * "x"
    (caption,) = wanted(met(text=hostile)).captions
    assert caption.text.isprintable()
    assert len(caption.text) <= LONGEST_CAPTION
    assert caption.text.startswith("it holds 1: 1")


def test_commands_carry_labels_and_do_without_them() -> None:
    label = CaptionLabel(code=4, other=5, value=0.5)
    given = GiveLabels(jobs=("a", "b"), labels=(label,))
    assert COMMAND.validate_json(given.model_dump_json()) == given
    reward = CodeReward(source="", author="test").model_dump(mode="json")
    before = {"type": "train", "job": "a", "reward": reward, "seed": 1}
    command = COMMAND.validate_json(json.dumps(before))
    assert isinstance(command, Train)
    assert (command.labels, command.label_method) == ((), "retrieval")
    with pytest.raises(ValidationError):
        CaptionLabel(code=4, value=1.5)
