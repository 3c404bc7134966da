"""`eureka video` and the video at a search's end, through the real command line."""

from __future__ import annotations

import base64
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import av
import pytest

ENVIRONMENT = Path(__file__).parents[2] / "envs/_templates/torch"
SMALL = (
    *("--iterations", "1", "--samples", "2", "--finalists", "1", "--final-seeds", "1"),
    *("--confirm", "0"),
)
STEPS = ("--env-steps", "2048", "--num-envs", "16", "--evaluation-episodes", "4")
pytestmark = pytest.mark.slow


def eureka(
    folder: Path, *arguments: str, status: int = 0, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run the command with videos turned on."""
    environment = {**os.environ, "EUREKA_RUNS": str(folder / "runs"), **variables}
    if "EUREKA_VIDEO" not in variables:
        del environment["EUREKA_VIDEO"]
    result = subprocess.run(
        [sys.executable, "-m", "eureka_agent.cli.main", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == status, result.stdout + result.stderr
    assert "Traceback" not in result.stderr
    return result


def frames(path: Path) -> list[av.VideoFrame]:
    with av.open(str(path)) as container:
        return list(container.decode(video=0))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished search on an environment of its own."""
    folder = tmp_path_factory.mktemp("videos")
    shutil.copytree(ENVIRONMENT, folder / "puck", ignore=shutil.ignore_patterns("__pycache__"))
    eureka(folder, "search", "--env", "./puck", *SMALL, *STEPS)
    return folder


@pytest.fixture(scope="module")
def run(folder: Path) -> Path:
    (archive,) = (folder / "runs").glob("*/archive.sqlite")
    return archive.parent


def document(folder: Path, *arguments: str) -> Any:
    import json

    return json.loads(eureka(folder, "video", *arguments, "--format", "json").stdout)


def test_a_search_ends_with_a_video_of_its_best_policy(run: Path) -> None:
    shown = frames(run / "best" / "video.mp4")
    # three panels of 320, with gaps of 4; an episode has at most 5 s, and half a second is held
    assert shown[0].width == 3 * 320 + 2 * 4
    assert 15 < len(shown) <= 165
    assert (run / "best" / "video.gif").read_bytes().startswith(b"GIF89a")


def clip_in_the_report(run: Path) -> bytes:
    """The clip that `report.html` holds; empty for none."""
    found = re.search(
        r'src="data:video/mp4;base64,([^"]*)"', (run / "report.html").read_text(encoding="utf-8")
    )
    return base64.b64decode(found[1]) if found else b""


def test_the_report_holds_the_video_and_a_new_one(folder: Path, run: Path) -> None:
    video = run / "best" / "video.mp4"
    before = video.read_bytes()
    assert clip_in_the_report(run) == before
    eureka(folder, "video", "latest", "--episode", "worst", "--seconds", "0.2")
    assert clip_in_the_report(run) == video.read_bytes() != before


def test_trainings_of_any_kind_stand_side_by_side(folder: Path, run: Path) -> None:
    names = sorted(
        path.name
        for path in (run / "attempts").iterdir()
        if (path / "policy.safetensors").is_file()
    )
    found = document(folder, "latest", names[0], "human", "sparse", "--episode", "worst")
    assert [each["policy"] for each in found["episodes"]] == [
        f"attempt {names[0]}",
        "human reward",
        "sparse reward",
    ]
    assert len({each["number"] for each in found["episodes"]}) == 1
    assert found["video"] == str(run / "videos" / f"{names[0]}_human_sparse.mp4")
    assert frames(Path(found["video"]))[0].width == 3 * 320 + 2 * 4
    assert found["seconds"] == pytest.approx(len(frames(Path(found["video"]))) / 30.0)


def test_the_video_has_the_episode_the_length_and_the_size_that_are_asked_for(
    folder: Path, run: Path
) -> None:
    told = eureka(
        folder, *("video", "latest", "--episode", "1", "--seconds", "0.3", "--size", "128x96")
    ).stdout
    output = run / "best" / "video.mp4"
    assert "chosen episode (number 1)" in told
    assert str(output) in told
    shown = frames(output)
    assert shown[0].width == 128
    assert len(shown) == 9 + 15  # 0.3 s, and half a second is held
    assert output.with_suffix(".gif").exists()


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("latest", "9-99"), "no attempt '9-99'"),
        (("latest", "../../etc"), "no attempt '../../etc'"),
        (("latest", *(f"0-0{number}" for number in range(8))), "expected at most 6 side by side"),
        (("latest", "--episode", "good"), "--episode is 'good'"),
        (("latest", "--seconds", "0"), "--seconds is 0, expected a number from 0.1 to 600"),
    ],
)
def test_a_mistake_is_one_clear_error(folder: Path, arguments: tuple[str, ...], named: str) -> None:
    told = eureka(folder, "video", *arguments, status=2).stderr
    assert named in " ".join(told.split())
    assert told.count("error:") == 1
    assert "hint:" in told


def test_an_environment_that_changed_is_refused(folder: Path, run: Path) -> None:
    path = folder / "puck" / "env.py"
    source, before = path.read_text(), (run / "best" / "video.mp4").read_bytes()
    try:
        path.write_text(source.replace("DRAG = 0.4", "DRAG = 0.5"))
        told = eureka(folder, "video", "latest", status=2)
    finally:
        path.write_text(source)
    assert "has changed since this run" in " ".join(told.stderr.split())
    assert (run / "best" / "video.mp4").read_bytes() == before
