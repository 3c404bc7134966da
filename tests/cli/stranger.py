"""Run folders that somebody else made, and the real `eureka` command on them."""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml
from stored_attempts import store_attempt

from eureka_agent.archive.run_folder import Run, create_run, open_run
from eureka_agent.records import Attempt, Message, Operator, Proposal, Stage, TaskDescription
from eureka_agent.rewards import CodeReward
from eureka_agent.settings import SearchSettings

REWARD = (
    "def compute_reward(actions):\n    effort = actions.square().sum(dim=-1)\n    return effort,"
    " {'effort': effort}\n"
)
KEY = "sk-the-key-of-the-user"


def eureka(
    *arguments: str,
    cwd: Path,
    timeout: float = 60.0,
    most_memory: int | None = None,
    **variables: str,
) -> subprocess.CompletedProcess[str]:
    """The command, without a terminal, with the user's key in its environment."""

    def bound_memory() -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (most_memory, most_memory))

    return subprocess.run(
        [sys.executable, "-m", "eureka_agent.cli.main", *arguments],
        cwd=cwd,
        env={
            **os.environ,
            "EUREKA_RUNS": str(cwd / "runs"),
            "OPENAI_API_KEY": KEY,
            "COLUMNS": "160",
            **variables,
        },
        stdin=subprocess.DEVNULL,
        preexec_fn=None if most_memory is None else bound_memory,
        capture_output=True,
        text=True,
        timeout=timeout,
    )


def assert_one_clear_error(result: subprocess.CompletedProcess[str]) -> str:
    """The error's text: one line and perhaps a hint."""
    assert result.returncode == 2, result.stdout + result.stderr
    assert re.fullmatch(r"error: [^\n]+\n( hint: [^\n]+\n)?", result.stderr), result.stderr
    return result.stderr


def attempt(attempt_id: str = "1-01", **fields: Any) -> Attempt:
    """A trained attempt, unless `fields` say otherwise."""
    proposal = Proposal(
        reward=CodeReward(source=REWARD, author="offline"),
        reasoning="because",
        operator=Operator.FRESH,
    )
    return Attempt(
        **{
            "id": attempt_id,
            "iteration": 0,
            "sample": 0,
            "revision": 0,
            "proposal": proposal,
            "stage": Stage.ACCEPTED,
            "seed": 7,
            **fields,
        }
    )


def message(**fields: str) -> Message:
    return Message(
        **{
            "role": "designer",
            "model": "openai/tiny",
            "request": "Design.",
            "reply": "No.",
            **fields,
        }
    )


def make_run(parent: Path, description: TaskDescription, **settings: Any) -> Run:
    """A run with one attempt and one reply of a model, signed by whoever's secret is in force."""
    run = create_run(
        SearchSettings(**{"env": "cartpole", **settings}), description, [], parent=parent
    )
    store_attempt(run.archive, attempt())
    run.archive.put("key", message())
    return run


def edit_settings(folder: Path, **values: Any) -> None:
    """Change the folder's settings as anybody with an editor can."""
    path = folder / "settings.yaml"
    path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), **values}))


def is_own(folder: Path, *, attempts: bool = False) -> bool:
    opened = open_run(folder, reading=True)
    try:
        return opened.is_own(attempts=attempts)
    finally:
        opened.archive.close()


def shown_json(folder: Path, cwd: Path) -> Any:
    return json.loads(eureka("show", str(folder), "--format", "json", cwd=cwd).stdout)
