"""The critic with its real dry run, and `eureka critique`: every bad reward gets a clear finding,
never a traceback."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from click.testing import CliRunner

from eureka_agent.cli.critique import critique
from eureka_agent.critic.critic import Critic
from eureka_agent.designer.interface import given_reward
from eureka_agent.errors import EurekaError
from eureka_agent.fleet.dry_runner import DryRunner
from eureka_agent.fleet.jobs import Problem
from eureka_agent.invocation import command
from eureka_agent.records import Verdict
from eureka_agent.sandbox.process_wall import ProcessWall

GOOD = "def compute_reward(pole_upright):\n    return pole_upright, {'upright': pole_upright}\n"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def critic(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Critic]:
    dry_runner = DryRunner(
        ProcessWall(), Problem("cartpole", "balance"), tmp_path_factory.mktemp("dry"), 1.5
    )
    yield Critic(await dry_runner.start(), dry_runner)
    await dry_runner.close()


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("source", "code", "steps"),
    [
        ("def compute_reward(pole_upright)\n    return pole_upright, {}", "P103", 1),
        ("import os\n" + GOOD, "A201", 2),
        (GOOD.replace("pole_upright)", "pole_uprigth)", 1), "C303", 3),
        (GOOD.replace("return pole_upright,", "return pole_upright[:, None],"), "D304", 4),
        (GOOD.replace("return pole_upright,", "return pole_upright.sqrt() + pole_upright.sum(),"), "D308", 4),
        (GOOD.replace("return pole_upright,", "return 1 / pole_upright,"), "D306", 4),
        ("def compute_reward(pole_upright):\n    for i in range(10**12):\n        x = i\n    return pole_upright, {}", "D310", 4),
        ("import torch\ndef compute_reward(pole_upright):\n    return torch.zeros(25 * 10**9), {}", "D311", 4),
    ],
)  # fmt: skip
async def test_a_bad_reward_stops_at_the_cheapest_step_that_sees_it(
    critic: Critic, source: str, code: str, steps: int
) -> None:
    verdict = await critic.judge(given_reward(source))
    assert not verdict.accepted
    assert code in {finding.code for finding in verdict.findings if finding.severity == "error"}
    assert len(verdict.steps_run) == steps
    assert all(finding.hint for finding in verdict.findings)


@pytest.mark.asyncio(loop_scope="module")
async def test_a_good_reward_passes_all_steps(critic: Critic) -> None:
    verdict = await critic.judge(given_reward(GOOD))
    assert verdict.accepted
    assert verdict.findings == ()
    assert verdict.steps_run == ("parse", "allow-list", "contract", "dry run")
    assert 0 < verdict.seconds < 30


def test_the_command_shows_place_line_and_hint_and_exits_with_1(tmp_path: Path) -> None:
    reward = tmp_path / "reward.py"
    reward.write_text("def compute_reward(pole_uprigth):\n    return pole_uprigth, {}\n")
    result = CliRunner().invoke(critique, [str(reward), "--env", "cartpole"])
    assert result.exit_code == 1
    lines = result.output.splitlines()
    assert (
        lines[0]
        == f"{reward}:1:20 C303 unknown variable 'pole_uprigth': did you mean 'pole_upright'?"
    )
    assert lines[1] == "    def compute_reward(pole_uprigth):"
    assert lines[2] == "                       ^"
    assert lines[-2].startswith("rejected (1 error; parse, allow-list, contract;")
    assert lines[-1] == f"the variables of the environment: {command('envs cartpole')}"


def test_the_command_as_json_exits_with_0(tmp_path: Path) -> None:
    reward = tmp_path / "reward.py"
    reward.write_text(GOOD)
    result = CliRunner().invoke(
        critique, [str(reward), "--env", "cartpole", "--task", "swingup", "--format", "json"]
    )
    assert result.exit_code == 0
    document = json.loads(result.output)
    assert [document.pop(key) for key in ("schema_version", "file", "written")] == [
        1,
        str(reward),
        False,
    ]
    assert Verdict.model_validate(document).accepted
    assert document["findings"] == []


WITH_NUMPY = """import numpy as np

def compute_reward(pole_upright):
    print(pole_upright)
    return np.pi * pole_upright, {'upright': pole_upright}
"""


def test_mended_on_request_it_says_so_and_the_file_runs_by_itself(tmp_path: Path) -> None:
    reward = tmp_path / "reward.py"
    reward.write_text(WITH_NUMPY)
    words = [str(reward), "--env", "cartpole"]
    result = CliRunner().invoke(critique, words)
    assert "        return np.pi * pole_upright" in result.output  # as the person wrote it
    assert (
        result.output.splitlines()[-1]
        == f"{reward}: judged with 3 repairs, which --fix writes into the file"
    )
    assert reward.read_text() == WITH_NUMPY
    result = CliRunner().invoke(critique, [*words, "--fix"])
    assert result.exit_code == 0
    assert result.output.splitlines()[-1] == f"{reward}: written, with 3 repairs"
    assert reward.read_text() == WITH_NUMPY.replace("numpy as np", "math").replace(
        "np.pi", "math.pi"
    ).replace("print(pole_upright)", "pass")
    names: dict[str, Any] = {}
    exec(reward.read_text(), names)
    assert names["compute_reward"](2.0)[0] == 2.0 * math.pi
    reward.write_text("import os\n" + WITH_NUMPY)
    result = CliRunner().invoke(critique, [*words, "--fix"])
    assert (result.exit_code, reward.read_text()) == (1, "import os\n" + WITH_NUMPY)


@pytest.mark.parametrize("content", [None, b"\xff\xfe\x00"])
def test_a_file_that_cannot_be_read_is_one_error(tmp_path: Path, content: bytes | None) -> None:
    reward = tmp_path / "reward.py"
    if content is not None:
        reward.write_bytes(content)
    result = CliRunner().invoke(critique, [str(reward), "--env", "cartpole"])
    assert isinstance(result.exception, EurekaError)
    assert str(reward) in result.exception.message
    assert result.exception.exit_status == 2


def test_driver_side_modules_import_neither_torch_nor_the_simulator() -> None:
    code = (
        "import sys\nimport eureka_agent.cli.critique\nimport eureka_agent.critic.critic,"
        " eureka_agent.cli.critique, eureka_agent.fleet.fleet\nimport"
        " eureka_agent.fleet.dry_runner, eureka_agent.fleet.evaluator,"
        " eureka_agent.sandbox.choose\nprint(sorted({'torch', 'mujoco', 'gymnasium', 'numpy'} &"
        " set(sys.modules)))\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout == "[]\n"
