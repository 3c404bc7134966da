"""Rewards that count as the same: by source, and by values."""

from __future__ import annotations

import textwrap

import pytest

from eureka_agent.critic.memory import KnownReward, canonical_form, find_same_source
from eureka_agent.designer.interface import given_reward

FIRST = '''
import torch
import torch.nn.functional as F
from torch import Tensor

TEMPERATURE = 0.3


def squash(x: Tensor, scale: float) -> Tensor:
    """Between 0 and 1."""
    return torch.exp(-x.abs() / scale)


def compute_reward(pole_angle: Tensor, actions: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    # the pole first
    upright = squash(pole_angle, scale=TEMPERATURE)
    effort: Tensor = -0.01 * F.relu(actions).sum(dim=-1)
    return upright + effort, {"upright": upright, "effort": effort}
'''
RENAMED = """
import torch as t
from torch.nn.functional import relu

WIDTH = 0.3
def bell(value, width):
    return t.exp(-value.abs() / width)
@t.jit.script
def compute_reward(actions, pole_angle, cart_velocity):
    standing = bell(pole_angle, width=WIDTH)
    price = -0.01 * relu(actions).sum(dim=-1)
    return standing + price, {"standing": standing, "price": price}
"""


def body(text: str, arguments: str = "pole_angle, actions") -> str:
    return f"import torch\ndef compute_reward({arguments}):\n" + textwrap.indent(
        textwrap.dedent(text).strip(), "    "
    )


def test_names_layout_imports_annotations_and_the_order_of_arguments_do_not_matter() -> None:
    (found,) = find_same_source(
        RENAMED,
        [
            KnownReward("1-02", given_reward(body("return actions, {}"))),
            KnownReward("1-03", given_reward(FIRST)),
        ],
    )
    assert (found.code, found.severity) == ("N501", "error")
    assert found.message.startswith("the same reward as 1-03 up to renaming")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("0.3", "0.4"),
        ("pole_angle", "pole_upright"),  # variables of the environment are not names of one's own
        ("upright + effort", "upright - effort"),
        ("upright + effort", "upright + upright"),
        ("F.relu", "F.elu"),
        ("torch.exp", "torch.sin"),
        ("-x.abs() / scale", "-scale / x.abs()"),
    ],
)
def test_what_is_computed_matters(old: str, new: str) -> None:
    changed = FIRST.replace(old, new)
    assert changed != FIRST
    assert find_same_source(changed, [KnownReward("1-03", given_reward(FIRST))]) == []


HELPER = "def f(a, b):\n    return a - b\n"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        # the same shape, other meaning: a renaming must keep them apart
        (body("x = pole_angle\nreturn x.abs(), {}"), body("x = pole_angle\nreturn x.cos(), {}")),
        (
            HELPER + body("y = f(a=pole_angle, b=actions[:, 0])\nreturn y, {}"),
            HELPER.replace("(a, b)", "(b, a)").replace("a - b", "b - a")
            + body("y = f(a=pole_angle, b=actions[:, 0])\nreturn y, {}"),
        ),
        # `abs` and `max` are Python's in compute_reward, and names of a helper's own elsewhere
        (
            "def f(abs):\n    return abs\n" + body("y = f(abs(pole_angle))\nreturn y, {}"),
            "def f(round):\n    return round\n" + body("y = f(round(pole_angle))\nreturn y, {}"),
        ),
        (
            body('c = {"a": pole_angle, "b": actions[:, 0]}\nreturn c["a"] - c["b"], c'),
            body('c = {"a": pole_angle, "b": actions[:, 0]}\nreturn c["b"] - c["a"], c'),
        ),
        (
            body('c = {"a": pole_angle, "b": actions[:, 0]}\nreturn sum(c[k] for k in ("a",)), c'),
            body('c = {"b": pole_angle, "a": actions[:, 0]}\nreturn sum(c[k] for k in ("a",)), c'),
        ),
        (
            body("from math import sin as f\nreturn f(1.0) * pole_angle, {}"),
            body("from math import cos as f\nreturn f(1.0) * pole_angle, {}"),
        ),
        (
            body(
                "return (pole_angle - previous_pole_angle).abs(), {}",
                "pole_angle, previous_pole_angle",
            ),
            body(
                "return (pole_angle - previous_actions).abs(), {}", "pole_angle, previous_actions"
            ),
        ),
    ],
)
def test_different_rewards_have_different_forms(first: str, second: str) -> None:
    assert canonical_form(first) is not None
    assert canonical_form(first) != canonical_form(second)


def test_labels_of_components_that_are_looked_up_again_do_not_matter() -> None:
    first = body(
        'c = {}\nc["up"] = pole_angle.cos()\nc["cost"] = -actions[:, 0]\nreturn c["up"] +'
        ' c["cost"], c'
    )
    second = (
        first.replace('"up"', '"standing"').replace('"cost"', '"effort"').replace("c[", "parts[")
    )
    second = second.replace("c = {}", "parts = {}").replace(", c", ", parts")
    assert canonical_form(first) == canonical_form(second)


def test_a_source_that_is_not_python_is_like_no_other() -> None:
    assert canonical_form("def compute_reward(:") is None
    assert (
        find_same_source(
            "def compute_reward(:", [KnownReward("1-01", given_reward("def compute_reward(:"))]
        )
        == []
    )
