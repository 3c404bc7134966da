"""Commands in hints can be pasted, however the program was installed and called."""

from __future__ import annotations

import ast
import itertools
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import eureka_agent
from eureka_agent import invocation
from eureka_agent.cli.main import COMMANDS

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = Path(eureka_agent.__file__).parent


@pytest.fixture
def called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program `my clone/eureka` that was called by its path, and an empty PATH."""
    program = tmp_path / "my clone" / "eureka"
    program.parent.mkdir()
    program.touch(mode=0o755)
    monkeypatch.setenv("EUREKA_PROGRAM", str(program))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    (tmp_path / "bin").mkdir()
    return program


def test_a_path_is_what_was_typed_fit_for_a_shell(
    called: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert shlex.split(invocation.command("show latest")) == [str(called), "show", "latest"]
    monkeypatch.setenv("EUREKA_PROGRAM", "./eureka")
    assert invocation.command("show latest") == "./eureka show latest"


def test_the_name_alone_where_path_leads_to_the_same_program(called: Path, tmp_path: Path) -> None:
    link = tmp_path / "bin" / "eureka"
    link.symlink_to(called)
    assert invocation.command("runs") == "eureka runs"
    link.unlink()
    link.touch(mode=0o755)  # somebody else's
    assert shlex.split(invocation.program()) == [str(called)]


def test_commands_in_a_text_are_named_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EUREKA_PROGRAM", "./eureka")
    text = (
        'eval "$(eureka completion bash)"; ./eureka runs; eureka_agent works; Usage: eureka'
        " [OPTIONS]"
    )
    assert (
        invocation.pasteable(text)
        == 'eval "$(./eureka completion bash)"; ./eureka runs; eureka_agent works; Usage: ./eureka'
        " [OPTIONS]"
    )


@pytest.mark.parametrize(
    ("typed", "handed_on"),
    [
        (["./eureka"], "./eureka"),
        (["bash", "eureka"], "./eureka"),
        (["{folder}/eureka"], "{folder}/eureka"),
        (["eureka"], "{bin}/eureka"),
    ],
)
def test_the_launcher_hands_on_how_it_was_called(
    tmp_path: Path, typed: list[str], handed_on: str
) -> None:
    folder, programs = tmp_path / "clone", tmp_path / "bin"
    (folder / ".venv" / "bin").mkdir(parents=True)
    programs.mkdir()
    shutil.copy(ROOT / "eureka", folder / "eureka")
    for path, line in (
        (folder / "setup.sh", ""),
        (folder / ".venv/bin/eureka", 'echo "$EUREKA_PROGRAM" "$@"'),
    ):
        path.write_text(f"#!/bin/bash\n{line}\n")
        path.chmod(0o755)
    (programs / "eureka").symlink_to(folder / "eureka")
    places = {"folder": str(folder), "bin": str(programs)}
    result = subprocess.run(
        [*(word.format(**places) for word in typed), "runs"],
        cwd=folder,
        env={"PATH": f"{programs}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout == f"{handed_on.format(**places)} runs\n"


def extra_of(name: str) -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return list(project["optional-dependencies"][name])


def test_an_extra_of_a_checkout_is_installed_by_its_setup(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "prefix", str(PACKAGE.parent / ".venv"))
    monkeypatch.chdir(PACKAGE.parent)
    assert invocation.install_extra("gpu") == "./setup.sh gpu"
    monkeypatch.chdir(tmp_path)
    assert (
        invocation.install_extra("export")
        == f"{shlex.quote(str(PACKAGE.parent / 'setup.sh'))} export"
    )


def test_an_extra_elsewhere_is_installed_by_what_installed_the_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin" / "python"))
    python = [str(tmp_path / "bin" / "python"), "-m", "pip", "install"]
    monkeypatch.chdir(PACKAGE)
    words = shlex.split(invocation.install_extra("gpu"))
    assert words[:4] == python
    assert sorted(words[4:]) == sorted(extra_of("gpu"))
    (tmp_path / "uv-receipt.toml").touch()
    words = shlex.split(invocation.install_extra("export"))
    assert words[:3] == ["uv", "tool", "install"]
    added = [word for flag, word in itertools.pairwise(words) if flag == "--with"]
    # metadata orders a requirement's bounds by itself
    assert sorted(map(sorted_bounds, added)) == sorted(map(sorted_bounds, extra_of("export")))


def sorted_bounds(requirement: str) -> str:
    return ",".join(sorted(requirement.split(",")))


def test_a_worker_s_hint_names_what_installs_on_the_driver_s_side(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("EUREKA_PROGRAM", "./eureka")
    monkeypatch.setattr(sys, "prefix", str(PACKAGE.parent / ".venv"))
    monkeypatch.chdir(PACKAGE.parent)
    hint = f"install it: {invocation.INSTALL_GPU}; `eureka doctor` says more"
    assert invocation.pasteable(hint) == "install it: ./setup.sh gpu; `./eureka doctor` says more"


def test_a_hint_from_behind_the_wall_can_be_pasted(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "env.py").write_text("raise ValueError('broken')\n")
    (tmp_path / "reward.py").write_text("def compute_reward(actions):\n    return actions, {}\n")
    command = [
        sys.executable,
        "-m",
        "eureka_agent.cli.main",
        "critique",
        "reward.py",
        "--env",
        "./mine",
    ]
    variables = {**os.environ, "EUREKA_PROGRAM": "./eureka"}
    result = subprocess.run(
        command, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=120
    )
    assert result.returncode == 2
    assert f"`./eureka envs --check {folder}` tests all of it\n" in result.stderr


def test_programs_of_packages_are_named_so_that_they_are_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    beside = tmp_path / "bin" / "tensorboard"
    beside.parent.mkdir()
    beside.touch(mode=0o755)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.chdir(PACKAGE)
    assert invocation.executable("tensorboard") == shlex.quote(str(beside))
    monkeypatch.chdir(tmp_path)
    assert invocation.executable("tensorboard") == "bin/tensorboard"
    monkeypatch.setenv("PATH", str(beside.parent))
    assert invocation.executable("tensorboard") == "tensorboard"


def test_no_text_names_a_command_that_could_not_be_pasted() -> None:
    """All strings of the package are checked, except docstrings: help is made of them, and its
    commands are made pasteable there."""
    names = re.compile(rf"(?<![\w./-])eureka ({'|'.join(COMMANDS)})\b")
    found = []
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        docs = {
            id(node.value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        }
        found += [
            f"{path}:{node.lineno}: {node.value}"
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in docs
            if names.search(node.value)
        ]
    assert [each for each in found if "written by eureka export" not in each] == []
