"""The commands on a command environment: a search, killed and resumed, its video, its check."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import tarfile
from collections import Counter
from pathlib import Path

import docker
import numpy as np
import pytest
from command_folders import write_point
from command_line import CommandLine, wait_for

from eureka_agent.archive.run_folder import Run, open_run
from eureka_agent.boundary import landlock
from eureka_agent.journal.entries import AttemptEnded
from eureka_agent.records import Stage
from eureka_agent.sandbox import bubblewrap_wall

SIZE = ["--iterations", "1", "--samples", "3", "--finalists", "1", "--final-seeds", "2"]
SIZE += ["--confirm", "0", "--scoring-episodes", "4", "--evaluation-episodes", "4"]


def only_run(command: CommandLine) -> Run:
    (folder,) = (each.parent for each in command.folder.glob("runs/*/archive.sqlite"))
    return open_run(folder)


def test_a_search_trains_scores_and_films_by_the_command(tmp_path: Path) -> None:
    write_point(tmp_path / "point")
    run_command = CommandLine(tmp_path)
    run_command.environment["EUREKA_VIDEO"] = "on"
    told = run_command("search", "--env", "./point", *SIZE, "--no-baselines")
    assert "a reward shares a process with simulator and trainer" in told
    # behind the wall `process`
    assert f"nothing keeps that process from {landlock.uncovered()}" in told
    run = only_run(run_command)
    trained = [each for each in run.archive.attempts() if each.stage is Stage.TRAINED]
    assert len(trained) == 3
    assert (run.folder / "best" / "video.mp4").stat().st_size > 1000
    assert len(list(run.archive.trainings())) == 2


@pytest.mark.skipif(not landlock.version(), reason="the kernel has no Landlock")
def test_a_command_writes_elsewhere_only_where_its_file_says_so(tmp_path: Path) -> None:
    (place := tmp_path / "installation").mkdir()
    changes = {"variables": {"FAULT": "writes", "PLACE": str(place)}}
    write_point(tmp_path / "kept", **changes)
    write_point(tmp_path / "let", writable=[str(place)], **changes)
    asked = ["--sandbox", "process", "--iterations", "1", "--samples", "1", "--finalists", "0"]
    told = CommandLine(tmp_path)("search", "--env", "./kept", *asked, status=2)
    assert "PermissionError" in told
    assert "`writable` of command.yaml" in told
    assert not list(place.iterdir())
    CommandLine(tmp_path)("search", "--env", "./let", *asked)
    assert [each.name for each in place.iterdir()] == ["cache"]


@pytest.mark.skipif(
    bubblewrap_wall.unavailable_reason() is not None, reason="bubblewrap does not work here"
)
def test_a_search_runs_behind_bubblewrap(tmp_path: Path) -> None:
    # below the person's home, which is not a worker's
    home = Path(sys.prefix).parent
    write_point(tmp_path / "point", interpreter=f"~/{Path(sys.executable).relative_to(home)}")
    asked = ["--sandbox", "bubblewrap", "--iterations", "1", "--samples", "1", "--finalists", "0"]
    run_command = CommandLine(tmp_path)
    run_command.environment["HOME"] = str(home)
    run_command("search", "--env", "./point", *asked)
    (attempt,) = only_run(run_command).archive.attempts()
    assert attempt.stage is Stage.TRAINED


IN_THE_IMAGE = """
import os
assert open("/opt/simulator/licence").read() == "here"
assert not os.path.exists("/usr/bin/env"), "this machine's /usr is not the image's"
"""
LIBRARIES = """
import bz2, ctypes, lzma, sqlite3, ssl, torch, numpy, eureka_agent.worker.serve
print(*{line.split()[-1] for line in open("/proc/self/maps") if ".so" in line})
"""


def image_of_libraries(name: str, folder: Path) -> None:
    """An image with the system's libraries that Python needs, a file, and a program that leads to
    this Python."""
    loaded = subprocess.check_output([sys.executable, "-c", LIBRARIES], text=True).split()
    listed = subprocess.run(["ldd", *loaded], capture_output=True, text=True, check=False).stdout
    # "\tlibc.so.6 => /lib/… (0x…)", and "\t/lib64/ld-… (0x…)"
    found = set(re.findall(r"^\t(?:\S+ => )?(/(?:usr|lib|lib64)/\S+) ", listed, re.MULTILINE))
    (libc,) = (Path(each) for each in found if Path(each).name == "libc.so.6")
    found |= set(map(str, libc.parent.glob("libmvec.so.*")))  # loaded on demand
    (folder / "licence").write_text("here")
    with tarfile.open(folder / "image.tar", "w", dereference=True) as archive:
        for path in sorted(found):
            archive.add(path, path[1:])
        archive.add(folder / "licence", "opt/simulator/licence")
        link = tarfile.TarInfo("opt/simulator/python")
        link.type, link.linkname = tarfile.SYMTYPE, sys.executable
        archive.addfile(link)
        home = tarfile.TarInfo("root")  # as in most images only root may enter it
        home.type, home.mode = tarfile.DIRTYPE, 0o700
        archive.addfile(home)
    docker.from_env().api.import_image_from_file(str(folder / "image.tar"), name, "1")


@pytest.mark.docker
@pytest.mark.slow
@pytest.mark.skipif(sys.base_prefix.startswith("/usr"), reason="this Python is a part of /usr")
def test_a_search_runs_in_an_image_of_the_user(tmp_path: Path) -> None:
    image, packages = "eureka-test-simulator:1", str(Path(np.__file__).parents[1])
    start = {"interpreter": "/opt/simulator/python", "variables": {"PYTHONPATH": packages}}
    folder = write_point(tmp_path / "point", image=image, **start)
    script = folder / "train.py"
    script.write_text(script.read_text().replace("import inspect", IN_THE_IMAGE + "import inspect"))
    asked = ["--iterations", "1", "--samples", "1", "--finalists", "0", "--env", "./point"]
    run_command = CommandLine(tmp_path)
    told = run_command("search", *asked, "--sandbox", "process", status=2)
    assert f"{image!r}, which the sandbox 'process' cannot start" in told
    told = run_command("search", *asked, "--sandbox", "docker", status=2)
    assert "this Docker engine does not have" in told
    image_of_libraries("eureka-test-simulator", tmp_path)
    try:
        run_command("search", *asked, "--sandbox", "docker")
    finally:
        docker.from_env().images.remove(image, force=True)
    (attempt,) = only_run(run_command).archive.attempts()
    assert attempt.stage is Stage.TRAINED


def test_a_killed_search_goes_on_without_training_again(tmp_path: Path) -> None:
    write_point(tmp_path / "point", "slow", "train")
    run_command = CommandLine(tmp_path)
    asked = ["--env", "./point", *SIZE, "--no-baselines", "--snapshot-interval", "0.5"]
    process = run_command.popen("search", *asked)

    def ended() -> list[str]:
        return [
            each.id
            for folder in tmp_path.glob("runs/*/archive.sqlite")
            for each in open_run(folder.parent, reading=True).archive.attempts()
            if each.stage is Stage.TRAINED
        ]

    wait_for(ended, process)
    before = ended()
    process.send_signal(signal.SIGKILL)
    process.communicate()
    run_command("resume", "latest")
    run = only_run(run_command)
    told = (each.entry for each in run.archive.entries())
    ends = Counter(each.attempt for each in told if isinstance(each, AttemptEnded))
    assert set(before) < set(ends)
    assert set(ends.values()) == {1}
    assert b"".join(_command_lines()).count(str(tmp_path).encode()) == 0


def _command_lines() -> list[bytes]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(path.read_bytes())
        except OSError:  # it has just ended
            continue
    return found


def test_settings_of_this_programs_trainer_are_refused(tmp_path: Path) -> None:
    write_point(tmp_path / "point")
    process = CommandLine(tmp_path).popen("search", "--env", "./point", "--learning-rate", "0.1")
    assert "has a trainer of its own" in process.communicate()[1]
    assert process.returncode == 2


def test_the_check_tries_a_command(tmp_path: Path) -> None:
    write_point(tmp_path / "point")
    told = CommandLine(tmp_path)("envs", "--check", "./point")
    assert "another seed, another training" in told
    assert "16 of them" in told  # the cost of a search


def test_a_winner_of_a_command_is_exported_with_the_commands_own_policy(tmp_path: Path) -> None:
    write_point(tmp_path / "point")
    eureka = CommandLine(tmp_path)
    eureka("search", "--env", "./point", "--iterations", "1", "--samples", "1", "--finalists", "0")
    written = eureka.json("export", "latest", "--out", "out")
    files = {Path(each).name for each in written["files"]}
    assert files == {"README.md", "reward.py", "command_policy"}
    weights = np.load(tmp_path / "out" / "command_policy", allow_pickle=False)
    assert weights.shape == (2,)
