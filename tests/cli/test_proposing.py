"""`eureka brief` and `eureka propose`: another program's rewards in a run's archive."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import CommandLine

SEARCH = ("search", "balance the pole", "--env", "cartpole", "--iterations", "0", "--no-video")
SIZES = ("--env-steps", "4096", "--baseline-seeds", "2", "--final-seeds", "2", "--train-baselines")
REWARD = """import torch
from torch import Tensor

UPRIGHT = {upright}


def compute_reward(pole_angle: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    upright = UPRIGHT * torch.cos(pole_angle)
    return upright, {{"upright": upright}}
"""


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    """A run of baselines alone, to which rewards are proposed."""
    eureka = CommandLine(tmp_path_factory.mktemp("proposed"))
    eureka(*SEARCH, *SIZES)
    return eureka


def file(eureka: CommandLine, upright: float, head: str = "") -> str:
    path = Path(eureka.folder) / "reward.py"
    path.write_text(head + REWARD.format(upright=upright))
    return str(path)


def test_a_program_is_told_its_rewards_are_trained_and_compared(begun: CommandLine) -> None:
    first = begun.json("brief", "latest")
    assert (first["attempt"], first["operator"], first["parents"]) == ("1-01", "fresh", [])
    assert "pole_angle: Tensor" in first["system"]
    found = begun.json("propose", "latest", file(begun, 1.0), "--why", "stand up")
    (attempt,) = found["attempts"]
    assert (attempt["id"], attempt["stage"], found["best"]) == ("1-01", "trained", "1-01")
    assert attempt["reasoning"] == "stand up"
    # the next brief starts from it, and knows the baselines
    told = begun.json("brief", "latest")
    assert (told["attempt"], told["operator"], told["parents"]) == ("2-01", "improve", ["1-01"])
    assert "UPRIGHT = 1.0" in told["prompt"]
    assert "the fitness itself as the reward" in told["prompt"]
    # no designer adds proposals of its own
    begun("propose", "latest", file(begun, 2.0), "--parent", "1-01")
    attempts = begun.json("show", "latest")["attempts"]
    assert [each["id"] for each in attempts] == ["1-01", "2-01"]
    assert attempts[1]["parents"] == ["1-01"]
    begun("propose", "latest", "--finish")
    shown = begun.json("show", "latest")
    assert shown["status"] == "finished"
    assert {each["name"] for each in shown["finalists"]} <= {"1-01", "2-01"}
    assert shown["finalists"]
    assert len(shown["human"]["seeds"]) == len(shown["sparse"]["seeds"]) == 2


def test_a_rejected_reward_leaves_the_run_as_it_was(begun: CommandLine) -> None:
    before = begun.json("show", "latest")
    process = begun.popen("propose", "latest", file(begun, 1.0, "import os\n"))
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "`import os` is not allowed" in output
    after = begun.json("show", "latest")
    assert after["status"] == before["status"] == "finished"
    assert after["attempts"] == before["attempts"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("propose", "latest"), "no reward is given"),
        (("brief", "latest", "--parent", "9-99"), "there is no trained attempt '9-99'"),
    ],
)
def test_what_does_not_fit_is_one_line(
    begun: CommandLine, words: tuple[str, ...], message: str
) -> None:
    errors = begun(*words, status=2)
    assert message in errors
    assert "Traceback" not in errors
