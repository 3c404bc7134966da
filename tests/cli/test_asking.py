"""`eureka ask` on a trained attempt."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from command_line import CommandLine

from eureka_agent.analysis.trajectories import read_trajectories

SEARCH = ["--env", "cartpole", "--task", "balance", "--iterations", "1", "--samples", "1"]
SEARCH += ["--env-steps", "4096", "--finalists", "0", "--no-baselines", "--confirm", "0"]
SEARCH += ["--evaluation-episodes", "6"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    eureka = CommandLine(tmp_path_factory.mktemp("asked"))
    eureka("search", *SEARCH, "--no-video")
    return eureka


def test_the_answer_is_that_of_the_evaluated_episodes(trained: CommandLine) -> None:
    asked = ("ask", "latest", "best", "pole_angle.abs()", "--where", "cart_position > 0")
    found = trained.json(*asked)
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
    process = trained.popen("ask", "latest", "1-01", expression)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 2, errors
    assert message in errors
    assert "Traceback" not in errors


def test_all_episodes_are_written_as_one_array_a_variable(trained: CommandLine) -> None:
    trained("ask", "latest", "1-01", "pole_angle")
    (path,) = Path(trained.folder / "runs").glob("*/attempts/1-01/episodes.npz")
    with np.load(path) as arrays:
        assert {name.partition("/")[0] for name in arrays.files} == {"all"}
        assert arrays["all/episode"].tolist() == sorted(arrays["all/episode"].tolist())
    assert json.loads(json.dumps(trained.json("ask", "latest", "1-01", "pole_angle")))["episodes"]
