"""A search ends with an environment's fault: at its start before a model is paid, later with
nothing more trained."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import CommandLine
from faulty_environments import REWARD, after_steps, write_lift
from model_server import ModelServer

pytestmark = pytest.mark.slow


def test_no_model_is_asked_where_the_environment_fails_at_once(
    eureka: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    eureka.environment["OPENAI_API_KEY"] = "sk-of-the-test"
    folder = write_lift(tmp_path / "lift", *after_steps(60, "self.height[:] = torch.nan"))
    with ModelServer([REWARD]) as server:
        model = ("--model", "openai/test", "--base-url", server.base_url)
        errors = eureka("search", "go up", "--env", str(folder), *model, status=2)
        assert server.requests == []
    assert "the environment fails before any reward is called" in errors
    assert "the variable 'height' is nan in step " in errors
    assert "of an episode of random actions" in errors
    assert not list((eureka.folder / "runs").glob("*/archive.sqlite"))


def test_a_fault_that_comes_late_ends_the_search_and_is_nobody_else_s(
    eureka: CommandLine, tmp_path: Path
) -> None:
    folder = write_lift(
        tmp_path / "lift",
        *after_steps(400, "raise OSError('no cable')"),
        rewards={"human": REWARD, "sparse": REWARD},
    )
    sizes = ("--iterations", "3", "--samples", "2", "--env-steps", "20000", "--num-envs", "16")
    errors = eureka("search", "go up", "--env", str(folder), *sizes, status=2)
    assert "the environment is at fault, no reward is" in errors
    assert "OSError: no cable" in errors
    found = eureka.json("show", "latest")
    assert found["status"] == "failed"
    assert "no cable" in found["message"]
    # nothing was made of it: no reward has failed, no second generation was designed, no final was
    # trained
    assert {attempt["iteration"] for attempt in found["attempts"]} == {0}
    assert all(attempt["stage"] not in ("failed", "rejected") for attempt in found["attempts"])
    assert (found["human"], found["sparse"], found["finalists"]) == (None, None, [])
