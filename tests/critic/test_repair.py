"""A fault that has one sure repair is mended in place, with a note. Nothing else is touched."""

from __future__ import annotations

import ast

import pytest
from test_static_steps import DESCRIPTION

from eureka_agent.critic.repair import repair, standalone
from eureka_agent.records import ConstantSpec, TaskDescription

WITH_STEP = DESCRIPTION.model_copy(
    update={"constants": (ConstantSpec(name="dt", value=0.02, unit="s"),)}
)


def mended(source: str, description: TaskDescription = WITH_STEP) -> tuple[str, list[int | None]]:
    """The repaired source, and the lines of the notes."""
    result, notes = repair(ast.parse(source), source, description)
    assert all((note.code, note.severity) == ("M401", "note") for note in notes)
    return result, [note.line for note in notes]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = np.pi * 2", "x = math.pi * 2"),
        ("import numpy as np\nx = np.pi + np.clip(1)", "import numpy as np\nx = math.pi + np.clip(1)"),
        ("from isaacgym.torch_utils import *\nx = 1", "\nx = 1"),
        ("x = torch.exp(-0.5)", "x = math.exp(-0.5)"),
        ("T = 0.5\ndef f(x):\n    return torch.exp(x / T) * torch.exp(-2 * T)", "T = 0.5\ndef f(x):\n    return torch.exp(x / T) * math.exp(-2 * T)"),
        ("def f(x, t: float):\n    return torch.exp(x) + torch.sqrt(t)", "def f(x, t: float):\n    return torch.exp(x) + math.sqrt(t)"),
        ("def f(x, dt):\n    return x * torch.exp(dt)", "def f(x, dt):\n    return x * math.exp(dt)"),
        # a name that is a number in one function is none in another
        ("t = 1.0\ndef f(t):\n    return torch.exp(t)", "t = 1.0\ndef f(t):\n    return torch.exp(t)"),
        ("def f(x):\n    t = 1.0\n    t = x\n    return torch.exp(t)", "def f(x):\n    t = 1.0\n    t = x\n    return torch.exp(t)"),
        ("x = torch.zeros(1, device='cuda:0')", "x = torch.zeros(1, device='cpu')"),
        ("d = 'cuda' if torch.cuda.is_available() else 'cpu'", "d = 'cpu'"),
        ("print(np.pi); x = 1", "pass; x = 1"),
        ("def f(x):\n    print(x)\n    return x", "def f(x):\n    pass\n    return x"),
    ],
)  # fmt: skip
def test_it_mends_and_leaves_lines_where_they_are(before: str, after: str) -> None:
    result, lines = mended(before)
    assert result == after
    assert bool(lines) == (before != after)
    assert mended(after) == (after, [])


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("def helper(x):\n    return x, {}\ndef compute_reward_v2(x):\n    a, b = helper(x)\n    return a, b", "compute_reward_v2"),
        ("def norm(x):\n    return x\n\ndef my_reward(x):\n    terms = {'a': norm(x)}\n    return x, terms", "my_reward"),
        ("def one(x):\n    return x, {}\ndef two(x):\n    return x, {}", None),
        ("def one(x):\n    return x", None),
        ("def one(x):\n    return x, {}\ndef compute_reward(x):\n    return x", None),
    ],
)  # fmt: skip
def test_the_only_function_that_returns_a_reward_is_the_reward(
    source: str, name: str | None
) -> None:
    result, lines = mended(source)
    assert result == (
        source if name is None else source.replace(f"def {name}(", "def compute_reward(")
    )
    assert len(lines) == (name is not None)


@pytest.mark.parametrize(
    ("source", "file"),
    [
        ("\n\nx = 1\n", "x = 1\n"),
        ("import math\nx = math.pi\n", "import math\nx = math.pi\n"),
        ("import torch\nx = math.pi\n", "import math\nimport torch\nx = math.pi\n"),
        ('"""Words."""\nx = math.pi\n', '"""Words."""\nimport math\n\n\nx = math.pi\n'),
        ("# words\n\nx = math.pi\n", "# words\n\nimport math\n\n\nx = math.pi\n"),
    ],
)
def test_as_a_file_it_imports_what_it_uses(source: str, file: str) -> None:
    assert standalone(source) == file


def test_two_repairs_in_one_line_do_not_move_each_other() -> None:
    assert mended("x = np.pi * np.inf") == ("x = math.pi * math.inf", [1, 1])
