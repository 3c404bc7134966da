"""`eureka train` of a reward that cannot be trained."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from eureka_agent.cli.critique import critique
from eureka_agent.cli.train import train

MISSPELT = "def compute_reward(pole_angel):\n    return -pole_angel.abs(), {}\n"
WITHOUT_COMPONENTS = "def compute_reward(pole_angle):\n    return pole_angle\n"


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (MISSPELT, "reward.py:1:20 C303 unknown variable 'pole_angel': did you mean 'pole_angle'?"),
        (WITHOUT_COMPONENTS, "reward.py:2 D303 returned Tensor, expected (total, components)"),
    ],
)
def test_a_reward_that_the_critic_rejects_makes_no_run_and_is_told_as_critique_tells_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EUREKA_RUNS", str(tmp_path / "runs"))
    Path("reward.py").write_text(source)
    options = ["reward.py", "--env", "cartpole", "--sandbox", "process"]
    trained, judged = CliRunner().invoke(train, options), CliRunner().invoke(critique, options)
    assert (trained.exit_code, judged.exit_code) == (1, 1)
    assert trained.stdout.startswith(said)
    assert _without_seconds(trained) == _without_seconds(judged)
    assert not (tmp_path / "runs").exists()
    if source == MISSPELT:
        document = json.loads(CliRunner().invoke(train, [*options, "--format", "json"]).stdout)
        assert (document["file"], document["findings"][0]["code"]) == ("reward.py", "C303")


def _without_seconds(result: Result) -> str:
    return re.sub(r"\d+\.\d+ s", "… s", result.stdout)
