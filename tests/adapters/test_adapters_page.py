"""The code of docs/adapters.md is that of the example, and runs."""

from __future__ import annotations

import re
import sys
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from job_folders import ROOT, JobFolder, MakeFolder

PAGE = (ROOT / "docs" / "adapters.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def described(folder: JobFolder, block: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Event of the block's program."""
    folder.job("describe", episodes=1, most_steps=3)
    monkeypatch.setattr(sys, "argv", ["program.py", str(folder.path)])
    exec(compile(block, "program.py", "exec"), {"__name__": "__main__"})
    event, zero, random = folder.events()
    assert (zero["by"], random["by"]) == ("zero", "random")
    return event


def test_the_program_for_gymnasium_runs(
    folder: MakeFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = folder("def compute_fitness(cosine):\n    return cosine\n")
    event = described(made, BLOCKS[0], monkeypatch)
    assert [each["name"] for each in event["variables"]] == ["cosine", "sine", "velocity"]


def test_the_program_for_rsl_rl_runs(folder: MakeFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    from programs.point import CONFIGURATION, Points

    class WalkerEnv(Points):
        def __init__(self, num_envs: int, device: str) -> None:
            super().__init__(num_envs)
            assert device == "cpu"

        def __getattribute__(self, name: str) -> Any:
            read = super().__getattribute__
            own = {"height": lambda: read("position"), "fell": lambda: torch.zeros(4)}
            own["reached"] = lambda: {"height": read("position")}
            return own[name]() if name in own else read(name)

    simulator = SimpleNamespace(CONFIGURATION=CONFIGURATION, WalkerEnv=WalkerEnv)
    monkeypatch.setitem(sys.modules, "my_simulator", simulator)
    made = folder("def compute_fitness(height):\n    return height\n")
    assert described(made, BLOCKS[1], monkeypatch)["ends"] == {"fell": "the torso is low"}


def test_programs_are_those_of_the_examples() -> None:
    commands = ROOT / "examples" / "commands"
    sled = (commands / "cleanrl_sled" / "train.py").read_text()
    assert len(BLOCKS) == 6
    assert BLOCKS[2] in (commands / "mjlab_cartpole" / "train.py").read_text()
    assert all(block in sled for block in BLOCKS[4:])
    assert f"| {len(sled.splitlines())} with PPO and simulator |" in PAGE
