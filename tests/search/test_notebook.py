"""The functions for notebooks against the commands of the same names."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from command_line import CommandLine, wait_for

from eureka_agent import Finished, critique, evaluate, search, train
from eureka_agent.errors import EurekaError
from eureka_agent.search.preparation import RewardRejectedError
from eureka_agent.search.trust import ForeignRunError

SMALL: dict[str, Any] = {
    "env": "cartpole",
    "env_steps": 4096,
    "baselines": False,
    "confirm": 0,
    "finalists": 1,
    "final_seeds": 2,
}
REWARD = """import torch
from torch import Tensor


def compute_reward(pole_angle: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    upright = torch.cos(pole_angle)
    return upright, {"upright": upright}
"""
HOSTILE = "import os\n" + REWARD


@pytest.fixture(scope="module")
def eureka(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    return CommandLine(tmp_path_factory.mktemp("notebook"))


@pytest.fixture(autouse=True)
def _runs(eureka: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EUREKA_RUNS", eureka.environment["EUREKA_RUNS"])


@pytest.fixture(scope="module")
def found(eureka: CommandLine) -> Finished:
    printed = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(printed):
        patch.setenv("EUREKA_RUNS", eureka.environment["EUREKA_RUNS"])
        finished = search("balance the pole", iterations=1, samples=2, rungs=(0.5, 0.8), **SMALL)
    assert printed.getvalue() == ""
    return finished


@pytest.mark.slow
async def test_a_search_gives_what_the_command_shows(found: Finished, eureka: CommandLine) -> None:
    shown = eureka.json("show", found.run)
    del shown["schema_version"]
    assert json.loads(json.dumps(found.report)) == shown
    assert found.best is not None
    assert found.best.fitness == shown["best"]["mean"]
    assert found.best.policy is not None
    assert found.best.policy.is_file()
    (best,) = (each for each in found.attempts if each.id == found.best.attempt)
    assert best.proposal.reward.source == found.best.source
    assert "run finished" in (found.folder / "log.txt").read_text()


@pytest.mark.slow
def test_the_command_in_its_record_plans_the_same_search(
    found: Finished, eureka: CommandLine
) -> None:
    _, *words = shlex.split(found.report["command"])
    planned = eureka.json(*words, "--plan")["settings"]
    assert planned == found.report["settings"]


@pytest.mark.slow
async def test_an_evaluation_is_the_command_s(found: Finished, eureka: CommandLine) -> None:
    told = eureka.json("evaluate", found.run, found.attempts[0].id, "--episodes", "4")
    del told["schema_version"]
    assert evaluate(found.folder, found.attempts[0].id, episodes=4) == told


@pytest.mark.slow
def test_a_run_that_is_not_the_user_s_own_is_not_evaluated_unasked(
    found: Finished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "theirs"
    subprocess.run(["cp", "-r", str(found.folder), str(run)], check=True)
    settings = yaml.safe_load((run / "settings.yaml").read_text())
    (run / "settings.yaml").write_text(yaml.safe_dump({**settings, "sandbox": "process"}))
    monkeypatch.setenv("EUREKA_SANDBOX", "docker")
    with pytest.raises(ForeignRunError, match="use the wall 'process'"):
        evaluate(run, episodes=2)
    assert evaluate(run, episodes=2, trust=True)["episodes"] == 2


async def test_verdicts_are_the_critic_s() -> None:
    assert critique(REWARD, "cartpole", "swingup").accepted
    (finding,) = critique(HOSTILE, Path("cartpole")).findings
    assert (finding.code, finding.line) == ("A201", 1)


def test_a_rejected_reward_is_not_trained(eureka: CommandLine) -> None:
    before = sorted(eureka.folder.glob("runs/*"))
    with pytest.raises(RewardRejectedError) as raised:
        train(HOSTILE, env="cartpole")
    assert [each.code for each in raised.value.verdict.findings] == ["A201"]
    assert sorted(eureka.folder.glob("runs/*")) == before


@pytest.mark.slow
async def test_a_reward_is_trained_and_shown(capsys: pytest.CaptureFixture[str]) -> None:
    settings = {name: SMALL[name] for name in SMALL if name not in ("confirm", "finalists")}
    trained = train(REWARD, show=True, **settings)
    assert trained.best is not None
    assert trained.best.source == REWARD
    assert trained.best.fitness == trained.report["best"]["mean"]
    printed = capsys.readouterr().out
    assert "1-01 trained: fitness" in printed
    assert "your reward (attempt 1-01)" in printed


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: search("balance", itrations=1), "did you mean 'iterations'?"),
        (lambda: search("balance", samples="many"), "is 'many', expected a whole number"),
        (lambda: search("balance", env="cartpol"), "did you mean 'cartpole'?"),
        (lambda: train(REWARD, iterations=2), "train does not take the setting 'iterations'"),
        (lambda: critique(REWARD, "cartpole", "swing"), "swing"),
        (lambda: evaluate("none-such"), "no run 'none-such'"),
    ],
)
def test_a_mistake_is_an_error_with_a_hint(call: Callable[[], object], message: str) -> None:
    with pytest.raises(EurekaError) as raised:
        call()
    assert message in str(raised.value)
    assert raised.value.hint


@pytest.mark.slow
@pytest.mark.parametrize("values", [{"episodes": 0}, {"episodes": "many"}, {"seed": -1}])
def test_a_number_out_of_range_is_named(found: Finished, values: dict[str, Any]) -> None:
    (given,) = values.values()
    with pytest.raises(EurekaError, match=f"is {given!r}, expected"):
        evaluate(found.folder, **values)


@pytest.mark.slow
def test_an_interrupted_search_is_saved_before_it_raises(eureka: CommandLine) -> None:
    script = """
from eureka_agent import search
try:
    search("balance the pole", env="cartpole", env_steps=100_000_000, iterations=1, samples=1)
except KeyboardInterrupt:
    print("interrupted")
"""
    folder = eureka.folder / "interrupted"
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        env={**os.environ, "EUREKA_RUNS": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for(
        lambda: any("steps/s" in each.read_text() for each in folder.glob("*/log.txt")), process
    )
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=120)
    assert output == "interrupted\n", errors
    (run,) = folder.glob("2*")
    assert eureka.json("show", str(run))["status"] == "stopped"
    assert list((run / ".snapshots").iterdir())


def test_the_package_is_imported_for_nothing_and_its_search_can_be_called() -> None:
    code = """
import sys
import eureka_agent
print(len([name for name in sys.modules if name.startswith(("eureka_agent.", "pydantic", "rich"))]))
from eureka_agent.search.session import start
from eureka_agent import search
try:
    search("balance", itrations=1)
except eureka_agent.errors.SettingsError as error:
    print(error.hint)
"""
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout == "0\ndid you mean 'iterations'?\n"
