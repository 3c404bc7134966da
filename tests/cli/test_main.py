from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

EUREKA = [sys.executable, "-m", "eureka_agent.cli.main"]


def eureka(*arguments: str | bytes, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*EUREKA, *arguments], cwd=cwd, capture_output=True, text=True, timeout=60
    )


def test_version(tmp_path: Path) -> None:
    result = eureka("--version", cwd=tmp_path)
    assert (result.returncode, result.stdout.split()[0]) == (0, "eureka")


def test_help_imports_nothing_heavy(tmp_path: Path) -> None:
    script = (
        "import sys\nsys.argv = ['eureka', '--help']\nfrom eureka_agent.cli.main import"
        " main\ntry:\n    main()\nexcept SystemExit:\n    pass\nprint([name for name in ('torch',"
        " 'mujoco', 'litellm', 'openai', 'pydantic', 'rich', 'numpy') if name in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert result.stdout.splitlines()[-1] == "[]"


def test_bash_completion_completes_commands_flags_and_values(tmp_path: Path) -> None:
    def complete(*words: str) -> list[str]:
        environment = os.environ | {
            "COMP_WORDS": " ".join(words),
            "COMP_CWORD": str(len(words) - 1),
            "_EUREKA_COMPLETE": "bash_complete",
            "PATH": "",
        }
        script = "from eureka_agent.cli.main import main; main()"
        result = subprocess.run(
            [sys.executable, "-c", script],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
        )
        return [line.partition(",")[2] for line in result.stdout.splitlines() if line]

    assert complete("eureka", "res") == ["resume"]
    assert complete("eureka", "search", "--iter") == ["--iterations"]
    # values
    assert complete("eureka", "search", "--env", "q") == ["quadcopter", "quadruped"]
    assert complete("eureka", "search", "--env", "cartpole", "--task", "") == ["balance", "swingup"]
    assert complete("eureka", "search", "--sandbox", "d") == ["docker"]
    assert complete("eureka", "search", "--model", "off") == ["offline"]
    assert "openai/gpt-5" in complete("eureka", "search", "--model", "openai/gpt-5")
    assert complete("eureka", "search", "--model", "replay:r") == ["replay:roll_to"]
    assert complete("eureka", "envs", "an") == ["ant"]
    # what there is in the folder of runs
    assert complete("eureka", "show", "") == []
    for name in ("20261121-100000_ant_run", "20261122-100000_ant_run"):
        for attempt in ("1-01", "2-03"):
            (tmp_path / "runs" / name / "attempts" / attempt).mkdir(parents=True)
        (tmp_path / "runs" / name / "archive.sqlite").touch()
    assert complete("eureka", "show", "") == [
        "latest",
        "20261122-100000_ant_run",
        "20261121-100000_ant_run",
    ]
    assert complete("eureka", "resume", "20261121") == ["20261121-100000_ant_run"]
    for command in ("show", "evaluate", "export"):
        assert complete("eureka", command, "20261121-100000_ant_run", "2") == ["2-03"]


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (["search", "  "], "expected the task in plain words", 'search "hover'),
        (["search", "hop", "--env", "hoper"], "hoper", "hopper"),
        (["search", "x", "--env", ""], "no environment is named", "eureka envs"),
        (["search", "x", "--num-envs", "1", "--horizon", "1"], "minibatches is 4", ""),
        (["search", b"balance \xff"], "not encoded as UTF-8", ""),
        (["search", "x", "--device", "gpu"], "--device is 'gpu': expected auto", "cuda:0,cuda:1"),
        (["search", "x", "--device", "cuda:99"], "cuda:99", "--device"),
        (["resume", "."], "is not a run", "eureka runs"),
    ],
)
def test_a_mistake_gets_one_clear_message_and_no_traceback(
    tmp_path: Path, arguments: list[str | bytes], message: str, hint: str
) -> None:
    result = eureka(*arguments, cwd=tmp_path)
    assert result.returncode == 2
    assert message in result.stderr
    assert hint in result.stderr
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "runs").exists()


def test_output_to_a_reader_that_has_gone_gives_no_traceback(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    result = subprocess.run(
        [*EUREKA, "envs", "--format", "json"],
        cwd=tmp_path,
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
    )
    os.close(writer)
    assert result.returncode == 1
    assert result.stderr == ""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_output_to_a_full_disk_is_one_clear_error(tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        result = subprocess.run(
            [*EUREKA, "envs"],
            cwd=tmp_path,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
        )
    assert (result.returncode, result.stderr) == (
        2,
        "error: cannot write: the disk is full\n hint: free some space\n",
    )


def test_output_that_is_not_utf8_gets_stand_ins_and_json_escapes(tmp_path: Path) -> None:
    def shown(encoding: str, *arguments: str) -> str:
        environment = {**os.environ, "PYTHONIOENCODING": encoding}
        result = subprocess.run(
            [*EUREKA, *arguments], cwd=tmp_path, env=environment, capture_output=True, timeout=60
        )
        assert (result.returncode, result.stderr) == (0, b"")
        return result.stdout.decode(encoding)

    assert "cart_position" in shown("ascii", "envs", "cartpole")
    document = json.loads(shown("utf-8", "envs", "cartpole", "--format", "json"))
    assert not json.dumps(document, ensure_ascii=False).isascii()
    assert json.loads(shown("ascii", "envs", "cartpole", "--format", "json")) == document
