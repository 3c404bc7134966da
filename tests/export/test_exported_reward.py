"""The exported reward is the one that was trained, and nothing else gets into its file."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from export_runs import ExportTexts, MakeRun, export_of

from eureka_agent.export.reward_source import standalone_source
from eureka_agent.records import ConstantSpec, TaskDescription, VariableSpec
from eureka_agent.task import Constant, QuaternionOrder, Variable
from eureka_agent.training.reward import RewardFunction

WITHOUT_IMPORTS = """
@torch.jit.script
def helper(x: Tensor) -> Tensor:
    return x * math.pi


@torch.jit.script
def compute_reward(cart_position: Tensor, actions: Tensor) -> Tuple[Tensor, Dict[str, Tensor]]:
    total = torch.cos(helper(cart_position)) - actions.square().sum(dim=-1)
    return total, {"total": total}

# terms, as the designer reads them back:
#   {"kind": "level"}
"""
WITH_DOCSTRING = '''"""Docstring."""
from __future__ import annotations
import torch
# a weight
WEIGHT = 2.0
def compute_reward(cart_position: NoSuchType) -> "Nor this":
    return WEIGHT * cart_position, {"position": WEIGHT * cart_position}
'''
ODD_COMMENT = (
    "def compute_reward(cart_position):\n    return -cart_position, {}  # a\u2028b\x0cimport"
    " nothing\n"
)
SOURCES = [WITHOUT_IMPORTS, WITH_DOCSTRING, ODD_COMMENT, WITHOUT_IMPORTS.replace("\n", "\r\n")]

VARIABLES = (
    Variable("cart_position", (), "m", "world", "x"),
    Variable("actions", (2,), "1", "-", "x"),
)


SCRIPT = """
import importlib, sys, torch

given = {
    "cart_position": torch.tensor([0.0, 0.3, -2.0]),
    "actions": torch.tensor([[0.5, 0.0], [1.0, -1.0], [0.0, 0.1]]),
}
for place, names in enumerate(sys.argv[1:]):
    module = importlib.import_module(f"reward_{place}")
    reward, _ = module.compute_reward(**{name: given[name] for name in names.split(",")})
    print(reward.tolist())
assert "eureka_agent" not in sys.modules
"""


@pytest.mark.slow
def test_the_file_alone_gives_what_training_gave(tmp_path: Path) -> None:
    trained = [RewardFunction.from_source(source, VARIABLES) for source in SOURCES]
    for place, source in enumerate(SOURCES):
        file = tmp_path / f"reward_{place}.py"
        file.write_text(standalone_source(source), encoding="utf-8")
    position = torch.tensor([0.0, 0.3, -2.0])
    actions = torch.tensor([[0.5, 0.0], [1.0, -1.0], [0.0, 0.1]])
    command = [sys.executable, "-c", SCRIPT, *(",".join(each.arguments) for each in trained)]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
    for each, printed in zip(trained, result.stdout.splitlines(), strict=True):
        expected, _ = each({"cart_position": position, "actions": actions})
        assert ast.literal_eval(printed) == pytest.approx(expected.tolist())


WITH_HELPERS = """from isaacgym.torch_utils import *
from utils.torch_jit_utils import quat_mul as multiply; from torch_utils import quat_unit
import torch

@torch.jit.script
def compute_reward(rotation: Tensor, dt: float, velocity: Tensor, weight: float = 2.0):
    from isaacgymenvs.utils.torch_jit_utils import (
        quat_rotate,
        quat_axis,
    )
    half = 0.5 * weight
    forward = quat_rotate(multiply(rotation, quat_unit(rotation)), velocity)[:, 0] * dt * half
    return forward + scale(forward, -1.0, 1.0), {"forward": forward}

def scale(x, lower, upper):
    return 0.0 * x
"""
APART = """
import torch
from reward import compute_reward
import gymnasium, gymnasium_wrapper, vec_task

q = torch.nn.functional.normalize(torch.arange(1.0, 13.0).view(3, 4), dim=1)
v = torch.arange(9.0).view(3, 3)
print(compute_reward(rotation=q, velocity=v)[0].tolist())


class Task(vec_task.RewardMixin):
    rew_buf, progress_buf, extras = torch.zeros(3), torch.ones(3), {}

    def reward_variables(self):
        return {"rotation": q, "velocity": v}


task = Task()
task.compute_reward()
print(task.rew_buf.tolist())


class Environment(gymnasium.Env):
    observation_space = action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,))

    def reset(self, *, seed=None, options=None):
        return self.observation_space.sample(), {}

    def step(self, action):
        return self.observation_space.sample(), 0.0, False, False, {}


wrapped = gymnasium_wrapper.RewardWrapper(Environment(), lambda *_: {"rotation": q[1], "velocity": v[1]})
wrapped.reset()
print([wrapped.step(wrapped.action_space.sample())[1]])
"""


@pytest.mark.slow
@pytest.mark.parametrize("order", ["wxyz", "xyzw"])
def test_helpers_and_constants_go_with_it(
    export_texts: ExportTexts, description: TaskDescription, order: QuaternionOrder
) -> None:
    """In a process that cannot import this package."""
    variables = (
        Variable("rotation", (4,), "1", "world", "x"),
        Variable("velocity", (3,), "m/s", "world", "x"),
    )
    specs = tuple(
        VariableSpec.model_validate(variable, from_attributes=True) for variable in variables
    )
    changes = {
        "variables": specs,
        "constants": (ConstantSpec(name="dt", value=0.25, unit="s"),),
        "quaternion_order": order,
    }
    folder = export_texts(WITH_HELPERS, description.model_copy(update=changes))
    q = torch.nn.functional.normalize(torch.arange(1.0, 13.0).view(3, 4), dim=1)
    v = torch.arange(9.0).view(3, 3)
    trained = RewardFunction.from_source(
        WITH_HELPERS, variables, constants=(Constant("dt", 0.25),), quaternion_order=order
    )
    expected = trained({"rotation": q, "velocity": v})[0].tolist()
    # None in its place makes every import of it fail
    script = f"import sys; sys.modules['eureka_agent'] = None\n{APART}"
    result = subprocess.run(
        [sys.executable, "-c", script], cwd=folder, capture_output=True, text=True, timeout=60
    )
    assert result.returncode == 0, result.stderr
    alone, mixed_in, wrapped = map(ast.literal_eval, result.stdout.splitlines())
    assert alone == pytest.approx(expected)
    assert mixed_in == pytest.approx(expected)
    assert wrapped == pytest.approx(expected[1:2])
    readme = (folder / "README.md").read_text()
    assert "`dt` = 0.25 s" in readme
    assert f"in the order {order}" in readme
    assert "isaac" not in (folder / "reward.py").read_text()


def test_the_designers_trailing_comment_is_gone_and_the_others_stay() -> None:
    assert "terms, as the designer" not in standalone_source(WITHOUT_IMPORTS)
    assert "# a weight" in standalone_source(WITH_DOCSTRING)


@pytest.mark.parametrize("end", ["\n", "\r", "\u2028", "\x0c", "\x85"])
def test_a_task_sentence_never_becomes_code(
    export_texts: ExportTexts, description: TaskDescription, end: str
) -> None:
    source = "def compute_reward(cart_position):\n    return cart_position, {}\n"
    folder = export_texts(source, description, f'stand"""{end}import os{end}os.abort()')
    for path in folder.glob("*.py"):
        names = {
            alias.name
            for node in ast.walk(ast.parse(path.read_bytes()))
            if isinstance(node, ast.Import)
            for alias in node.names
        }
        assert "os" not in names
    assert "# import os" in (folder / "reward.py").read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_reward_is_copied_and_never_run(
    make_run: MakeRun, description: TaskDescription, tmp_path: Path
) -> None:
    trap = tmp_path / "sprung"
    source = (
        f"open({str(trap)!r}, 'w')\ndef compute_reward(cart_position):\n    return cart_position,"
        " {}\n"
    )
    folder = export_of(make_run(source, description), tmp_path / "taken away").folder
    assert str(trap) in (folder / "reward.py").read_text()
    assert not trap.exists()
