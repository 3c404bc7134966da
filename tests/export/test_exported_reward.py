"""The exported reward is the one that was trained, and nothing else gets into its file."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from export_runs import ExportTexts, MakeRun, export_of

from eureka_agent.errors import RewardLoadError
from eureka_agent.export.reward_source import standalone_source
from eureka_agent.records import TaskDescription
from eureka_agent.task import Variable
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
ODD_COMMENT = "def compute_reward(cart_position):\n    return -cart_position, {}  # a\u2028b\x0cimport nothing\n"
SOURCES = [WITHOUT_IMPORTS, WITH_DOCSTRING, ODD_COMMENT, WITHOUT_IMPORTS.replace("\n", "\r\n")]

VARIABLES = (Variable("cart_position", (), "m", "world", "x"), Variable("actions", (2,), "1", "-", "x"))


SCRIPT = """
import sys, torch
from reward import compute_reward

given = {
    "cart_position": torch.tensor([0.0, 0.3, -2.0]),
    "actions": torch.tensor([[0.5, 0.0], [1.0, -1.0], [0.0, 0.1]]),
}
print(compute_reward(**{name: given[name] for name in sys.argv[1:]})[0].tolist())
assert "eureka_agent" not in sys.modules
"""


@pytest.mark.slow
@pytest.mark.parametrize("source", SOURCES)
def test_the_file_alone_gives_what_training_gave(tmp_path: Path, source: str) -> None:
    (tmp_path / "reward.py").write_text(standalone_source(source), encoding="utf-8")
    trained = RewardFunction.from_source(source, VARIABLES)
    position = torch.tensor([0.0, 0.3, -2.0])
    actions = torch.tensor([[0.5, 0.0], [1.0, -1.0], [0.0, 0.1]])
    expected, _ = trained({"cart_position": position, "actions": actions})
    command = [sys.executable, "-c", SCRIPT, *trained.arguments]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
    assert ast.literal_eval(result.stdout) == pytest.approx(expected.tolist())


def test_the_designers_trailing_comment_is_gone_and_the_others_stay() -> None:
    assert "terms, as the designer" not in standalone_source(WITHOUT_IMPORTS)
    assert "# a weight" in standalone_source(WITH_DOCSTRING)


@pytest.mark.parametrize("end", ["\n", "\r", "\u2028", "\x0c", "\x85"])
def test_a_task_sentence_never_becomes_code(export_texts: ExportTexts, description: TaskDescription, end: str) -> None:
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
def test_a_reward_is_copied_and_never_run(make_run: MakeRun, description: TaskDescription, tmp_path: Path) -> None:
    trap = tmp_path / "sprung"
    source = f"open({str(trap)!r}, 'w')\ndef compute_reward(cart_position):\n    return cart_position, {{}}\n"
    folder = export_of(make_run(source, description), tmp_path / "taken away").folder
    assert str(trap) in (folder / "reward.py").read_text()
    assert not trap.exists()


def test_source_that_is_no_python_is_refused() -> None:
    with pytest.raises(RewardLoadError, match="not valid Python"):
        standalone_source("def compute_reward(:")
