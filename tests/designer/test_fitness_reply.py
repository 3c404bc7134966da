"""Requirements for a reply to become a fitness, and the message on one that fails them."""

from __future__ import annotations

import json

import pytest

from eureka_agent.designer.fitness_writer import FitnessWords, parse_fitness_reply

SOURCE = (
    "def compute_reward(cart_position):\n    near = (1.0 - cart_position.abs()).clamp(0.0, 1.0)\n  "
    "  return near, {'near': near}\n"
)
WORDS = (
    '{"doc": "share of the episode at the centre", "unit": "1", "reduction": "mean", "success":'
    " 0.9}"
)


def reply(words: str = WORDS, source: str = SOURCE) -> str:
    return f"It measures closeness.\n\n```python\n{source}```\n\n```json\n{words}\n```\n"


def with_words(**changed: object) -> str:
    return reply(json.dumps({**json.loads(WORDS), **changed}))


def test_a_whole_reply() -> None:
    found = parse_fitness_reply(reply())
    assert found.findings == ()
    assert (found.source, found.reasoning) == (SOURCE, "It measures closeness.")
    assert found.words == FitnessWords("share of the episode at the centre", "1", "mean", 0.9)


@pytest.mark.parametrize(
    "text",
    [
        # the other way round
        f"```json\n{WORDS}\n```\n\nand now the code\n\n```python\n{SOURCE}```\n",
        f"{SOURCE}\n\n{WORDS}\n",  # no fence at all
        # a draft before it
        f"<think>\n```json\n{WORDS.replace('0.9', '0.1')}\n```\n</think>\n{reply()}",
        reply(WORDS.replace(", ", ",\n    ")),
        reply() + "\nThat is all.",
    ],
)
def test_the_form_of_a_reply_matters_little(text: str) -> None:
    found = parse_fitness_reply(text)
    assert found.findings == ()
    assert found.source == SOURCE
    assert found.words is not None
    assert found.words.success == 0.9


def test_braces_in_the_words_are_no_end_of_them() -> None:
    found = parse_fitness_reply(with_words(doc="share of {all} steps } here"))
    assert found.words is not None
    assert found.words.doc == "share of {all} steps } here"


@pytest.mark.parametrize(
    ("changed", "part"),
    [
        (
            {"reduction": "median"},
            "'reduction' in the JSON block is \"median\", expected one of sum, mean, last, max",
        ),
        ({"doc": "  "}, "'doc'"),
        ({"unit": 3}, "'unit' in the JSON block is 3"),
        ({"success": "much"}, "'success' in the JSON block is \"much\", expected a number"),
        ({"success": float("nan")}, "'success' in the JSON block is NaN"),
    ],
)
def test_words_that_cannot_be_used_are_named(changed: dict[str, object], part: str) -> None:
    found = parse_fitness_reply(with_words(**changed))
    assert found.words is None
    (finding,) = found.findings
    assert (finding.code, finding.severity) == ("F705", "error")
    assert part in finding.message


def test_missing_words_are_named_each_by_itself() -> None:
    found = parse_fitness_reply(reply('{"doc": "share"}'))
    assert [finding.message for finding in found.findings] == [
        "the JSON block has no 'unit'",
        "the JSON block has no 'reduction'",
    ]  # without `success` no episode counts as solved


@pytest.mark.parametrize(
    ("text", "code", "part"),
    [
        (f"```python\n{SOURCE}```", "F703", "holds no JSON block"),
        (reply('{"doc": "share", "unit": None, "reduction": "sum"}'), "F705", "'unit'"),
        (reply("{" * 100_000 + '"doc"'), "F703", "JSON block"),
        (f"I would measure height.\n{WORDS}", "F701", "it begins: 'I would measure height."),
    ],
)
@pytest.mark.usefixtures("no_collection")
def test_what_is_not_there_is_said(text: str, code: str, part: str) -> None:
    found = parse_fitness_reply(text)
    assert found.words is None or not found.source
    assert any(finding.code == code and part in finding.message for finding in found.findings), (
        found.findings
    )
