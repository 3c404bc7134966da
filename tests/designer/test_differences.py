"""Sources in short, and how one differs from another."""

from __future__ import annotations

import pytest

from eureka_agent.designer.source_tools import compact, difference, terms

PARENT = """import torch
from torch import Tensor

FORWARD = 1.0  # a second
EFFORT = 0.05


@torch.jit.script
def compute_reward(speed: Tensor, actions: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    \"\"\"Forward.\"\"\"
    forward = FORWARD * speed  # the task
    effort = -EFFORT * actions.square().sum(dim=-1)
    alive = torch.ones_like(speed)
    return forward + effort + alive, {"forward": forward, "effort": effort, "alive": alive}
"""


def test_compact_code_is_what_computes() -> None:
    assert (
        compact(PARENT)
        == "FORWARD = 1.0\nEFFORT = 0.05\n\ndef compute_reward(speed, actions):\n    forward ="
        " FORWARD * speed\n    effort = -EFFORT * actions.square().sum(dim=-1)\n    alive ="
        " torch.ones_like(speed)\n    return (forward + effort + alive, {'forward': forward,"
        " 'effort': effort, 'alive': alive})"
    )


def test_terms_are_those_of_the_returned_dictionary() -> None:
    assert list(terms(PARENT)) == ["forward", "effort", "alive"]
    named = PARENT.replace("return forward + effort + alive, {", "parts = {").replace(
        "alive}", "alive}\n    return forward, parts"
    )
    assert terms(named) == terms(PARENT)
    assert terms("def compute_reward(a):\n    return a") == terms("def (") == terms("x = 1") == {}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("FORWARD = 1.0", "FORWARD = 2.0"), "FORWARD 1 → 2"),
        (("    alive = torch.ones_like(speed)\n", ""), "no such change"),
        (("actions.square()", "actions.abs()"), "other form of effort"),
        (("# the task", "# what counts"), "no difference"),
        (('"alive": alive', '"upright": alive'), "+ term upright; - term alive"),
        (
            ("return forward + effort + alive", "return forward * alive + effort"),
            "other code around the same terms of compute_reward",
        ),
    ],
)
def test_a_difference_is_told_in_a_line(change: tuple[str, str], words: str) -> None:
    child = PARENT.replace(*change)
    if words == "no such change":
        child, words = child.replace(" + alive", "").replace(', "alive": alive', ""), "- term alive"
    assert difference(PARENT, child) == words


def test_a_difference_is_bounded() -> None:
    names = [f"{'long' * 30}{number}" for number in range(100)]
    constants = "".join(f"C{number} = {number}.0\n" for number in range(100))
    many = (
        constants
        + "def compute_reward(a):\n    return a, {"
        + ", ".join(f"{name!r}: a" for name in names)
        + "}\n"
    )
    assert len(difference(PARENT, many)) < 600
    assert len(difference(many, many.replace(".0", ".5"))) < 600
