"""A search ends with an environment's fault: at its start before a model is paid, later with
nothing more trained."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from command_line import CommandLine
from faulty_environments import REWARD, after_steps, write_lift
from model_server import ModelServer
from small_disk import small_disk as mounted_disk

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


def test_a_goal_out_of_reach_is_told_and_no_reward_is_blamed(
    eureka: CommandLine, puck: Path, tmp_path: Path
) -> None:
    # from 1 m and farther away, at most 0.1 s · (0.3 + 0.57 + 0.81 + 1.03 + 1.23) m/s = 0.39 m
    far = tmp_path / "far"
    shutil.copytree(puck, far)
    source = (far / "env.py").read_text()
    source = source.replace("max_episode_length = 50", "max_episode_length = 5")
    source = source.replace("1, -1.5, 1.5", "1, 1.0, 1.5")
    (far / "env.py").write_text(source)
    flags = ("--iterations", "2", "--samples", "2", "--finalists", "1", "--final-seeds", "2")
    arguments = ("search", "--env", str(far), *flags, "--env-steps", "4096", "--sandbox", "process")
    run = eureka.json(*arguments, "--no-video", "--yes")
    lacking = run["coverage"]
    assert lacking["fitness"] == 0.0
    assert lacking["trainings"] >= 4
    assert set(lacking["baselines"]) == {"human", "sparse"}
    assert run["finalists"] == []
    low, high = lacking["visited"]["puck_position"]
    assert 0.6 <= low < high <= 1.9
    codes = [finding["code"] for attempt in run["attempts"] for finding in attempt["diagnosis"]]
    assert codes.count("never-paid") == sum(each["stage"] == "trained" for each in run["attempts"])
    folder = Path(run["folder"])
    report = (folder / "report.md").read_text()
    assert "never came to what the fitness pays for" in report
    assert "start states nearer to what is paid for" in report
    assert "rewards all ended at a fitness of 0" in report
    assert "What could help: " in (folder / "log.txt").read_text()
    assert "never came to what the fitness pays for" in (folder / "report.html").read_text()


@pytest.fixture
def small_disk(eureka: CommandLine) -> Iterator[Path]:
    """The runs folder on a file system of its own, too small for a search."""
    folder = eureka.folder / "runs"
    with mounted_disk(folder, "300k") as mounted:
        if not mounted:
            pytest.skip("no file system can be mounted here")
        yield folder


def test_a_full_disk_is_one_clear_error_and_the_run_resumes(
    eureka: CommandLine, small: Callable[..., tuple[str, ...]], small_disk: Path
) -> None:
    errors = eureka(*small(), status=2)
    assert "error:" in errors
    assert "eureka resume" in errors
    assert "space" in errors
    subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
    eureka("resume", str(eureka.run_folder()))
    assert eureka.json("show", "latest")["status"] == "finished"
