"""A wheel built from the repository works away from it: environments, prompts and sandbox files
travel inside."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel's content, as pip unpacks it."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [
        sys.executable,
        "-m",
        "build",
        "--wheel",
        "--no-isolation",
        "--outdir",
        str(folder),
        str(REPOSITORY),
    ]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    install = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--no-deps",
        "--no-index",
        "--target",
        str(folder / "site"),
        str(wheel),
    ]
    subprocess.run(install, check=True, capture_output=True)
    return folder / "site"


def run(installed: Path, *arguments: str) -> str:
    """Standard output of `eureka` from the wheel, in an empty folder, with no path to the
    repository."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(installed),
        "EUREKA_RUNS": str(installed.parent / "runs"),
    }
    script = (
        "import eureka_agent, sys; print(eureka_agent.__file__, file=sys.stderr); from"
        " eureka_agent.cli.main import main; main()"
    )
    result = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        cwd=installed.parent,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.stderr.startswith(str(installed)), result.stderr
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.slow
def test_every_resource_travels_inside(installed: Path) -> None:
    for name in ("envs", "prompts", "sandboxes"):
        kept = {
            str(path.relative_to(REPOSITORY / name))
            for path in (REPOSITORY / name).rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        }
        packed = {
            str(path.relative_to(installed / "eureka_agent/_data" / name))
            for path in (installed / "eureka_agent/_data" / name).rglob("*")
            if path.is_file()
        }
        assert kept <= packed
        assert kept, f"{name}/ is empty"


@pytest.mark.slow
def test_names_of_gymnasiums_environments_travel_inside(installed: Path) -> None:
    shown = run(installed, "envs", "gymnasium:CartPole-v1", "--format", "json")
    assert "pole_angle" in shown


@pytest.mark.slow
def test_the_built_in_environments_are_listed(installed: Path) -> None:
    listed = json.loads(run(installed, "envs", "--format", "json"))["environments"]
    assert {entry["name"] for entry in listed} >= {"ant", "cartpole", "hopper", "quadcopter"}


@pytest.mark.slow
def test_a_small_search_runs(installed: Path) -> None:
    flags = [
        "--env",
        "cartpole",
        "--iterations",
        "1",
        "--samples",
        "2",
        "--env-steps",
        "4096",
        "--finalists",
        "1",
        "--final-seeds",
        "1",
        "--format",
        "json",
    ]
    found = json.loads(run(installed, "search", "balance the pole", *flags))
    assert found["status"] == "finished"
    assert found["best"]["mean"] is not None


@pytest.mark.slow
def test_the_skill_travels_inside(installed: Path) -> None:
    page = REPOSITORY / "eureka_agent" / "cli" / "SKILL.md"
    assert run(installed, "skill") == page.read_text(encoding="utf-8")
    assert (installed / "eureka_agent" / "py.typed").is_file()
