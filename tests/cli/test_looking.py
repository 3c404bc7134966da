"""`eureka look` on trained attempts."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from command_line import CommandLine

from eureka_agent.analysis.trajectories import read_trajectories

SEARCH = ["--env", "cartpole", "--task", "balance", "--iterations", "1", "--samples", "2"]
SEARCH += ["--env-steps", "4096", "--finalists", "0", "--no-baselines", "--confirm", "0"]
SEARCH += ["--evaluation-episodes", "6"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    eureka = CommandLine(tmp_path_factory.mktemp("looked"))
    eureka("search", *SEARCH, "--no-video")
    return eureka


def test_the_answer_is_that_of_the_evaluated_episodes(trained: CommandLine) -> None:
    asked = ("look", "latest", "ask", "1-01", "pole_angle.abs()", "where=cart_position > 0")
    found = trained.json(*asked)["answer"]
    (path,) = (trained.folder / "runs").glob("*/attempts/1-01/episodes.npz")
    episodes = read_trajectories(path)
    assert list(episodes) == [str(number) for number in range(6)]
    whole = {
        name: np.concatenate([each[name] for each in episodes.values()])
        for name in ("pole_angle", "cart_position")
    }
    chosen = np.abs(whole["pole_angle"])[whole["cart_position"] > 0]
    assert found["steps"] == len(whole["pole_angle"])
    assert found["chosen"] == len(chosen)
    assert found["mean"] == pytest.approx(float(chosen.mean()), rel=1e-5)
    # they are the episodes whose worst and best one the analyzer saw
    extremes = read_trajectories(path.with_name("trajectories.npz"))
    lengths = sorted(len(each["fitness"]) for each in episodes.values())
    assert lengths[0] <= len(extremes["worst"]["fitness"])
    assert any(
        np.array_equal(each["pole_angle"], extremes["best"]["pole_angle"])
        for each in episodes.values()
    )
    told = trained(*asked)
    assert told.startswith("pole_angle.abs() where cart_position > 0, attempt 1-01\n")


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("pole_angel", "did you mean 'pole_angle'?"),
        ("torch.load(pole_angle)", "`torch.load` is not allowed"),
        ("actions", "it has shape"),
        ("pole_angle + [0] * 10**9", "has no values"),
    ],
)
def test_what_cannot_be_asked_is_one_line(
    trained: CommandLine, expression: str, message: str
) -> None:
    process = trained.popen("look", "latest", "ask", "1-01", expression)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 2, errors
    assert message in errors
    assert "Traceback" not in errors


def test_all_episodes_are_written_as_one_array_a_variable(trained: CommandLine) -> None:
    trained("look", "latest", "ask", "1-01", "pole_angle")
    (path,) = Path(trained.folder / "runs").glob("*/attempts/1-01/episodes.npz")
    with np.load(path) as arrays:
        assert {name.partition("/")[0] for name in arrays.files} == {"all"}
        assert arrays["all/episode"].tolist() == sorted(arrays["all/episode"].tolist())


REWARD = """import torch
from torch import Tensor

UPRIGHT = 1.0


def compute_reward(pole_angle: Tensor, cart_velocity: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    upright = UPRIGHT * torch.cos(pole_angle)
    still = -0.01 * cart_velocity.square()
    return upright + still, {"upright": upright, "still": still}
"""


def test_episodes_are_listed_worst_first(trained: CommandLine) -> None:
    found = trained.json("look", "latest", "episodes", "best")["episodes"]
    fitness = [each["fitness"] for each in found]
    assert len(found) == 6
    assert fitness == sorted(fitness)
    # an attempt's own score is their mean
    (outcome,) = (trained.folder / "runs").glob("*/attempts/1-01/outcome.json")
    of_first = trained.json("look", "latest", "episodes", "1-01")["episodes"]
    mean = np.mean([each["fitness"] for each in of_first])
    assert mean == pytest.approx(json.loads(outcome.read_text())["fitness"], rel=1e-4)


def test_a_draft_is_judged_and_paid_without_a_training(
    trained: CommandLine, tmp_path: Path
) -> None:
    path = tmp_path / "reward.py"
    path.write_text(REWARD)
    found = trained.json("look", "latest", "try_reward", str(path))
    assert found["accepted"]
    random, bad, good = found["payments"]
    assert random["episodes"] == "random actions"
    assert bad["episodes"].startswith("bad episodes")
    for each in (random, bad, good):
        means = each["means"]
        assert means["total"] == pytest.approx(means["upright"] + means["still"], abs=1e-5)
    assert good["means"]["upright"] > 0.9  # a pole that stands
    assert found["nearest"]["attempt"] in ("1-01", "1-02")
    assert not list((trained.folder / "runs").glob("*/attempts/1-03"))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("import os\n" + REWARD, "`import os` is not allowed"),
        (REWARD.replace("pole_angle)\n", "pole_angel)\n"), "pole_angel"),
        (REWARD.replace("torch.cos(pole_angle)", "torch.ones(2)"), "RuntimeError"),
    ],
)
def test_a_draft_that_a_proposal_could_not_be_is_refused_alike(
    trained: CommandLine, tmp_path: Path, source: str, message: str
) -> None:
    path = tmp_path / "reward.py"
    path.write_text(source)
    found = trained.json("look", "latest", "try_reward", str(path))
    assert not found["accepted"]
    assert message in " ".join(each["message"] for each in found["findings"])


def test_attempts_are_compared(trained: CommandLine) -> None:
    found = trained.json("look", "latest", "compare", "1-01", "1-02")
    assert (found["first"]["attempt"], found["second"]["attempt"]) == ("1-01", "1-02")
    assert sum(found["first"]["terms"].values()) == pytest.approx(1.0, abs=1e-3)
    assert found["code"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("episodes", "1-99"), "there is no trained attempt '1-99'"),
        (("events", "1-01", "99"), "1-01 has no episode 99"),
        (("events", "1-01", "first"), "events: episode: Input should be a valid integer"),
        (("describe", "pole_angel"), "did you mean 'pole_angle'?"),
        (("episodes",), "episodes: attempt: Field required"),
        (("episodes", "1-01", "1-02"), "episodes takes no further argument '1-02'"),
        (("dance",), "there is no tool 'dance'"),
    ],
)
def test_a_wrong_call_is_one_line(
    trained: CommandLine, words: tuple[str, ...], message: str
) -> None:
    process = trained.popen("look", "latest", *words)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 2, errors
    assert message in errors
    assert "Traceback" not in errors


def test_the_tools_are_listed_with_their_arguments(trained: CommandLine) -> None:
    told = trained("look", "latest")
    assert "ask ATTEMPT EXPRESSION WHERE\n" in told
    schema = {it["name"]: it["schema"] for it in trained.json("look", "latest")["tools"]}
    assert schema["ask"]["required"] == ["attempt", "expression"]
    assert schema["frames"]["properties"]["moments"]["type"] == "array"
