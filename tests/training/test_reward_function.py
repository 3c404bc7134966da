"""Rewards from source: what is accepted, what is refused and how it is said, and what the contract
guarantees."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from eureka_agent.errors import RewardLoadError
from eureka_agent.task import Variable
from eureka_agent.training.reward import RewardContractError, RewardFunction

VARIABLES = (
    Variable("height", (), "m", "world", "height of the torso"),
    Variable("velocity", (3,), "m/s", "world", "x, y, z"),
    Variable("goal_gap", (), "m", "world", "what the fitness reads", private=True),
)


def load(source: str, allow_private: bool = False) -> RewardFunction:
    return RewardFunction.from_source(source, VARIABLES, allow_private)


def values(batch: int = 4) -> dict[str, Tensor]:
    return {
        "height": torch.arange(batch, dtype=torch.float32),
        "previous_height": torch.arange(batch, dtype=torch.float32) - 1.0,
        "velocity": torch.ones(batch, 3),
        "goal_gap": torch.zeros(batch),
    }


def returning(expression: str) -> RewardFunction:
    return load(f"def compute_reward(height, velocity):\n    return {expression}\n")


def test_a_reward_in_the_published_form_runs() -> None:
    reward = load("""
import torch
from typing import Dict, Tuple
from torch import Tensor

SCALE = 2.0

@torch.jit.script
def squash(x: Tensor) -> Tensor:
    return torch.tanh(x)

@torch.jit.script
def compute_reward(height: torch.Tensor, previous_height: Tensor, velocity: np.ndarray) -> Tuple[torch.Tensor, Dict[str, Tensor]]:
    rise = SCALE * (height - previous_height)
    speed = squash(0.0 * velocity[:, 0]) + math.cos(0.0)
    return rise + speed, {"rise": rise, "speed": speed, "alive": 1}
""")
    total, components = reward(values())
    # rise = 2 · 1 = 2 and speed = tanh(0) + cos(0) = 1, everywhere
    assert reward.arguments == ("height", "previous_height", "velocity")
    assert reward.component_names == ("rise", "speed", "alive")
    assert total.tolist() == [3.0] * 4
    assert {name: value.tolist() for name, value in components.items()} == {
        "rise": [2.0] * 4,
        "speed": [1.0] * 4,
        "alive": [1.0] * 4,
    }


@pytest.mark.parametrize(
    ("source", "message", "hint"),
    [
        ("def compute_reward(height:\n", "line 1: not valid Python", "syntax"),
        ("x = 1\0", "not valid Python", "syntax"),
        ("def reward(height): return height, {}", "no function 'compute_reward'", "top level"),
        ("def compute_reward(): return 1", "takes no argument", "variables"),
        ("def compute_reward(*height): return 1", "'*height'", "name every argument"),
        ("def compute_reward(heigth): return 1", "'heigth'", "did you mean 'height'?"),
        ("def compute_reward(previous_heigth): return 1", "'previous_heigth'", "did you mean 'previous_height'?"),
        ("def compute_reward(goal_gap): return 1", "private", "public variables"),
        ("def compute_reward(previous_goal_gap): return 1", "private", "public variables"),
        ("def compute_reward(height): return 1\n1 / 0\n", "line 2: ZeroDivisionError", "top level"),
        ("def compute_reward(height): return 1\ncompute_reward = 3\n", "is int", "do not assign"),
    ],
)  # fmt: skip
def test_what_cannot_be_loaded_is_refused_with_a_hint(source: str, message: str, hint: str) -> None:
    with pytest.raises(RewardLoadError) as caught:
        load(source)
    assert message in caught.value.message
    assert hint in caught.value.hint


def test_a_private_variable_is_offered_to_no_proposal_but_read_by_a_baseline() -> None:
    with pytest.raises(RewardLoadError) as caught:
        load("def compute_reward(goal_gab): return 1")
    assert "goal_gap" not in caught.value.hint
    reward = load("def compute_reward(goal_gap): return goal_gap + 1.0, {}", allow_private=True)
    assert reward(values())[0].tolist() == [1.0] * 4


@pytest.mark.parametrize(
    ("expression", "message", "hint"),
    [
        ("height", "returned Tensor", "return total"),
        ("(height, {}, 1)", "returned 3 values", "return total"),
        ("(height, [height])", "list", "as `{'name'"),
        ("(1.0, {})", "the total is float", "tensor"),
        ("(height.unsqueeze(1), {})", "shape (4, 1), expected (4,)", "squeeze(-1)"),
        ("(height.sum(), {})", "shape (), expected (4,)", "dim=-1"),
        ("(velocity, {})", "shape (4, 3), expected (4,)", "dim=-1"),
        ("(height.long(), {})", "torch.int64", ".float()"),
        ("(height, {'v': velocity})", "component 'v' has shape (4, 3)", "dim=-1"),
        ("(height, {'v': 'fast'})", "component 'v' is str", "tensor"),
        ("(height, {3: height})", "name is 3, expected a string", "'forward'"),
        ("(height, {'v': 10**400})", "component 'v' is a number beyond", "smaller"),
        ("(height.to('meta'), {})", "the total cannot be read: it is a Tensor on meta", "plain"),
        ("(height, {'v': height.to('meta')})", "component 'v' cannot be read", "plain"),
    ],
)
def test_a_breach_of_the_contract_names_line_shape_and_remedy(
    expression: str, message: str, hint: str
) -> None:
    with pytest.raises(RewardContractError) as caught:
        returning(expression)(values())
    assert caught.value.code == "contract"
    assert caught.value.message.startswith("line 2: ")
    assert message in caught.value.message
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    "statement", ["velocity[:, 7]", "1 / 0", "raise SystemExit(3)", "raise BaseException('x')"]
)
def test_whatever_a_reward_raises_is_reported_with_its_own_line(statement: str) -> None:
    reward = load(
        f"def helper(velocity):\n    {statement}\n\ndef compute_reward(velocity):\n    return"
        " helper(velocity), {}\n"
    )
    with pytest.raises(RewardContractError) as caught:
        reward(values())
    assert caught.value.code == "raised"
    assert caught.value.message.startswith("line 2: ")


def test_components_are_broadcast_and_made_float() -> None:
    _, components = returning(
        "(height, {'a': 2, 'b': height.mean(), 'c': height > 1.0, 'd': height.double()})"
    )(values())
    # heights are 0, 1, 2, 3: their mean is 1.5
    assert {name: value.tolist() for name, value in components.items()} == {
        "a": [2.0] * 4,
        "b": [1.5] * 4,
        "c": [0.0, 0.0, 1.0, 1.0],
        "d": [0.0, 1.0, 2.0, 3.0],
    }
    assert {value.dtype for value in components.values()} == {torch.float32}


@pytest.mark.parametrize(
    "tampering", ["height.zero_()", "height.data.zero_()", "height.numpy()[:] = 0", "height *= 0"]
)
def test_a_reward_cannot_change_what_it_is_given(tampering: str) -> None:
    given = values()
    load(f"def compute_reward(height):\n    {tampering}\n    return height, {{}}\n")(given)
    assert given["height"].tolist() == [0.0, 1.0, 2.0, 3.0]


def test_what_a_reward_returns_is_detached_and_aliases_nothing() -> None:
    given = values()
    total, components = returning("(height, {'itself': height})")(given)
    total += 1.0
    assert given["height"].tolist() == [0.0, 1.0, 2.0, 3.0]
    assert components["itself"].data_ptr() != given["height"].data_ptr()
    total, _ = load(
        "weight = torch.ones(1, requires_grad=True)\ndef compute_reward(height):\n    with"
        " torch.enable_grad():\n        return height * weight, {}\n"
    )(given)
    assert not total.requires_grad


@pytest.mark.parametrize("name", ["\x1b[31mred", "a\nb", "\u202eevil", "\ud800", "x" * 81, "  "])
def test_a_components_name_is_one_line_that_can_be_seen(name: str) -> None:
    """Names stand in tables of the terminal, in reports and in the next designer's prompt."""
    with pytest.raises(RewardContractError, match="80 visible characters") as caught:
        returning(f"height, {{{name!a}: height}}")(values())
    assert str(caught.value).isprintable() or "\n  hint:" in str(caught.value)
    assert "\x1b" not in str(caught.value)
    returning("height, {'speed (m/s) → 目标': height}")(values())


def test_what_a_reward_raises_can_be_shown_in_a_terminal() -> None:
    """torch puts what it was given into its errors, as it is."""
    with pytest.raises(RewardContractError, match="Invalid device string") as caught:
        returning(r"height.to('\x1b]8;;http://there\x07here\x1b[2J'), {}")(values())
    assert caught.value.message.isprintable()
    assert r"\x1b]8;;http://there\x07here\x1b[2J" in caught.value.message
