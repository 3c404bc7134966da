"""Searches in which a model designs what policies observe: killed, resumed, exported, refused."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from command_line import CommandLine, wait_for
from model_server import Asked, ModelServer, Reply

pytestmark = pytest.mark.slow

OBSERVATION = """import torch
from torch import Tensor

SCALE = {scale}


def design_observation(puck_position: Tensor, puck_velocity: Tensor) -> Tensor:
    return torch.stack([SCALE * puck_position, puck_velocity], dim=-1)
"""
REWARD = """

def compute_reward(puck_position: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    near = -SCALE * puck_position.abs()
    return near, {"near": near}
"""


class Observing:
    """A model that writes another observation each time, with a reward where it is asked for one;
    its first answer lacks the observation."""

    def __init__(self) -> None:
        self._numbers = count()
        self.asked: list[Asked] = []

    def __call__(self, asked: Asked) -> Reply:
        self.asked.append(asked)
        number = next(self._numbers)
        code = OBSERVATION.format(scale=1.0 + number)
        if "# The reward, which is kept" not in asked.system:
            code += REWARD
            if not number:
                code = code.replace("def design_observation", "def observe")
        return Reply(
            text=f"Relative.\n\n```python\n{code}```", prompt_tokens=9, completion_tokens=9
        )


@pytest.fixture
def model() -> Iterator[tuple[Observing, tuple[str, ...]]]:
    observing = Observing()
    with ModelServer(observing) as server:
        flags = f"--model openai/test --base-url {server.base_url} --reviewer off --analyst off"
        more = "--designer-tools off --concurrency 1 --confirm 0 --finalists 1 --final-seeds 1"
        yield observing, (*flags.split(), *more.split(), "--no-baselines", "--no-video")


def arguments(puck: Path, design: str) -> tuple[str, ...]:
    flags = f"--env {puck} --iterations 2 --samples 2 --seed 1 --schedule generations"
    return ("search", "bring the puck to the middle", *flags.split(), "--design", design)


def test_both_are_designed_revised_and_exported(
    eureka: CommandLine, puck: Path, model: tuple[Observing, tuple[str, ...]]
) -> None:
    observing, flags = model
    eureka.environment["OPENAI_API_KEY"] = "sk-test"
    run = eureka.json(*arguments(puck, "both"), *flags, "--strategy", "map-elites")
    assert "# The observation" in observing.asked[0].system
    shown = {each["id"]: each["stage"] for each in run["attempts"]}
    assert shown["1-01"] == "rejected"
    assert shown["1-01-r1"] == "trained"
    page = " ".join(eureka("show", run["folder"], "1-01").split())
    assert "C309" in page
    assert "no function 'design_observation'" in page
    draft = eureka.folder / "draft.py"
    draft.write_text(f"SCALE = 1.0\n{REWARD}")
    alone = eureka.json("look", "latest", "try_reward", str(draft))
    assert [each["code"] for each in alone["findings"]] == ["C309"]
    folder = Path(run["folder"])
    assert "observes what the function `design_observation`" in (folder / "report.md").read_text()
    exported = Path(eureka.json("export", "latest")["folder"])
    assert "design_observation" in (exported / "reward.py").read_text()
    readme = (exported / "README.md").read_text()
    assert "| `puck_velocity` | (batch,) | m/s | world |" in readme
    done = subprocess.run(
        [sys.executable, "example.py"], cwd=exported, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "(batch, 2), float32" in readme
    error = eureka("prove", "latest", "--with", str(puck), status=2)
    assert "has an observation of its own" in " ".join(error.split())


def test_an_observation_alone_is_designed_beside_the_human_reward_and_a_killed_one_goes_on(
    eureka: CommandLine, puck: Path, model: tuple[Observing, tuple[str, ...]]
) -> None:
    observing, flags = model
    eureka.environment["OPENAI_API_KEY"] = "sk-test"
    process = eureka.popen(*arguments(puck, "observation"), *flags, "--snapshot-interval", "0.1")
    snapshots = eureka.folder / "runs"
    wait_for(lambda: any(snapshots.glob("*/.snapshots/*.safetensors")), process)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    folder = eureka.run_folder()
    eureka("resume", str(folder))
    human = (puck / "rewards" / "human.py").read_text()
    best = (folder / "best" / "reward.py").read_text()
    assert best.startswith(human.rstrip())
    assert "def design_observation" in best
    assert human.strip() in observing.asked[0].system
    # two generations of two, each asked for once
    assert len(observing.asked) == 4
    orders = [asked.turns[0][1] for asked in observing.asked]
    assert all("# What to do\n\nWrite a" in order for order in orders)
    ask = ("look", "latest", "ask", "best")
    where = "where=design_observation[:, 1] > 0"
    seen = eureka.json(*ask, "design_observation[:, 1]", where)["answer"]
    speed = eureka.json(*ask, "puck_velocity", "where=puck_velocity > 0")["answer"]
    assert seen["chosen"]
    assert [seen[each] for each in ("chosen", "mean")] == [speed["chosen"], speed["mean"]]
    assert "an entry, as in x[:, 0]" in eureka(*ask, "design_observation", status=2)
    draft = eureka.folder / "draft.py"
    draft.write_text(OBSERVATION.format(scale=7.0))
    tried = eureka.json("look", "latest", "try_reward", str(draft))
    assert tried["accepted"]
    draft.write_text(draft.read_text().replace("puck_velocity]", "puck_speed]"))
    tried = eureka.json("look", "latest", "try_reward", str(draft))
    lines = [each["line"] for each in tried["findings"] if "puck_speed" in each["message"]]
    assert lines == [8]  # of the draft, without the reward before it
    draft.write_text(OBSERVATION.format(scale=7.0) + REWARD)
    assert "anew" in eureka("look", "latest", "try_reward", str(draft), status=2)


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (("--design", "observation"), "the offline designer does not write"),
        (("--design", "policy"), "policy"),
    ],
)
def test_what_cannot_be_designed_is_refused(
    eureka: CommandLine, puck: Path, flags: tuple[str, ...], says: str
) -> None:
    given = ("search", "bring it to the middle", "--env", str(puck))
    assert says in " ".join(eureka(*given, *flags, status=2).split())
