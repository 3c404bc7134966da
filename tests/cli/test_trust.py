"""The user is asked before a run folder that is not their own decides about code, walls or keys."""

from __future__ import annotations

import hmac
import os
import pty
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from stored_attempts import entries_of, store_attempt
from stranger import KEY, assert_one_clear_error, attempt, edit_settings, eureka, is_own, make_run

from eureka_agent.archive.run_folder import Run, open_run
from eureka_agent.archive.signature import Signer, secret_path, user_signer
from eureka_agent.cli.questions import trust_to_resume
from eureka_agent.errors import EurekaError
from eureka_agent.records import TaskDescription
from eureka_agent.rewards import baseline
from eureka_agent.settings import REACHING

MakeRun = Callable[..., Run]
EVIL = (
    "from pathlib import Path\nPath({marker!r}).write_text('the environment ran')\nraise"
    " ImportError('enough')\n"
)


@pytest.fixture
def make(tmp_path: Path, description: TaskDescription) -> MakeRun:
    """Makes runs of the user's own."""
    return lambda **settings: make_run(tmp_path / "runs", description, **settings)


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    """File that exists once the stranger's code ran."""
    return tmp_path / "marker"


@pytest.fixture
def stranger(make: MakeRun, marker: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that somebody else's program signed, with an environment and a policy in it, behind
    no wall."""
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("XDG_STATE_HOME", str(tmp_path / "somebody-else"))
        run = make(sandbox="process")
        environment = run.folder / "env"
        (environment / "tasks").mkdir(parents=True)
        (environment / "env.py").write_text(EVIL.format(marker=str(marker)))
        (environment / "tasks" / "go.py").write_text("")
        (run.folder / "best").mkdir()
        (run.folder / "best" / "policy.safetensors").write_bytes(b"no policy")
        edit_settings(run.folder, env=str(environment))
        assert run.sign() == ""
        run.archive.close()
    return run.folder


class _Server(ThreadingHTTPServer):
    def __init__(self) -> None:
        self.asked: list[str] = []
        asked = self.asked

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                asked.append(self.headers.get("Authorization", ""))
                self.send_error(404)

            def log_message(self, *arguments: Any) -> None:
                pass

        super().__init__(("127.0.0.1", 0), Handler)


@pytest.fixture
def server() -> Iterator[_Server]:
    server = _Server()
    Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def test_a_stranger_s_environment_does_not_run_unasked(
    stranger: Path, marker: Path, tmp_path: Path
) -> None:
    error = assert_one_clear_error(
        eureka("evaluate", str(stranger), cwd=tmp_path, EUREKA_SANDBOX="docker")
    )
    assert f"run the environment '{stranger / 'env'}' behind the wall 'process'" in error
    assert "use the wall 'process' that it names, in place of your own, 'docker'" in error
    assert "eureka show" in error
    assert "--trust" in error
    assert not marker.exists()
    assert eureka("show", str(stranger), cwd=tmp_path).returncode == 0
    assert eureka("runs", cwd=tmp_path).returncode == 0
    assert not marker.exists()


def test_trust_on_the_command_line_lets_it_run(
    stranger: Path, marker: Path, tmp_path: Path
) -> None:
    result = eureka("evaluate", str(stranger), "--trust", cwd=tmp_path)
    assert "enough" in result.stderr
    assert marker.read_text() == "the environment ran"
    marker.unlink()
    assert "--trust" in assert_one_clear_error(
        eureka("evaluate", str(stranger), cwd=tmp_path)
    )  # it is asked again
    assert not marker.exists()


def test_a_stranger_s_server_gets_no_key_unasked(
    make: MakeRun, server: _Server, tmp_path: Path
) -> None:
    folder = make(model=("openai/tiny",)).folder
    address = f"http://127.0.0.1:{server.server_port}/v1"
    edit_settings(folder, base_url=address, reviewer="anthropic/other")
    error = assert_one_clear_error(eureka("resume", str(folder), cwd=tmp_path))
    assert f"ask the model 'openai/tiny' at {address}, with the key in OPENAI_API_KEY" in error
    assert (
        "ask the model 'anthropic/other' at anthropic's, with the key in ANTHROPIC_API_KEY" in error
    )
    assert KEY not in error
    assert server.asked == []


OUTSIDE = {
    "env": ("/tmp/other", "run the environment '/tmp/other'"),
    "model": (["openai/tiny"], "ask the model 'openai/tiny'"),
    "base_url": ("http://192.0.2.1/v1", "at http://192.0.2.1/v1"),
    "reviewer": ("mistral/a", "ask the model 'mistral/a'"),
    "analyst": ("mistral/b", "ask the model 'mistral/b'"),
    "judge": ("mistral/c", "ask the model 'mistral/c'"),
    "cluster": ("ray:192.0.2.1:6379", "join the Ray cluster 192.0.2.1:6379"),
    "sandbox": ("process", "use the wall 'process'"),
}


@pytest.mark.parametrize("name", sorted(REACHING))
def test_what_chooses_an_address_a_wall_or_a_program_is_signed_and_named(
    name: str, make: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EUREKA_SANDBOX", "docker")
    value, named = OUTSIDE[name]
    others = {"base_url": {"model": ("openai/tiny",)}, "judge": {"fitness": "judged"}}
    run = make(**others.get(name, {}))
    assert is_own(run.folder, attempts=True)
    edit_settings(run.folder, **{name: value})
    assert not is_own(run.folder, attempts=True)
    with pytest.raises(EurekaError) as raised:
        trust_to_resume(open_run(run.folder, reading=True), trust=False)
    assert named in raised.value.message


@pytest.mark.parametrize(("answer", "ran"), [("n\n", False), ("\n", False), ("y\n", True)])
def test_a_person_at_a_terminal_is_asked(
    stranger: Path, marker: Path, tmp_path: Path, answer: str, ran: bool
) -> None:
    own, theirs = pty.openpty()
    command = [sys.executable, "-m", "eureka_agent.cli.main", "evaluate", str(stranger)]
    process = subprocess.Popen(
        command,
        cwd=tmp_path,
        stdin=theirs,
        stderr=theirs,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    os.close(theirs)
    os.write(own, answer.encode())  # it waits in the terminal until it is asked for
    assert process.wait(60) == (2 if ran else 1)
    shown = os.read(own, 65536).decode()
    os.close(own)
    assert "Go on? [y/N]" in shown
    assert f"- run the environment '{stranger / 'env'}'" in shown
    assert marker.exists() == ran


def test_a_signature_covers_settings_that_may_be_edited_and_another_place(
    make: MakeRun, tmp_path: Path
) -> None:
    folder = make().folder
    edit_settings(folder, iterations=9, max_cost="3.50", workers=1)
    moved = tmp_path / "elsewhere" / "renamed"
    shutil.copytree(folder, moved)
    assert is_own(moved, attempts=True)
    edit_settings(moved, api="chat")  # and no other settings
    assert not is_own(moved)


def test_a_signature_does_not_cover_another_task_or_reward(
    make: MakeRun, description: TaskDescription
) -> None:
    folder = make().folder
    other = description.model_copy(update={"human_reward": baseline("def compute_reward(): ...")})
    (folder / "environment.json").write_text(other.model_dump_json())
    assert not is_own(folder)
    run = make()
    began = run.archive.state.began
    source = "def compute_reward(): ..."
    run.archive.append(began.model_copy(update={"given_source": source}))
    assert not run.is_own()


def test_a_signature_of_one_run_says_nothing_of_another(make: MakeRun) -> None:
    published, other = make(), make(sandbox="process")
    assert published.archive.signature is not None
    other.archive.set_signature(*published.archive.signature)
    assert not other.is_own()


def test_a_reward_that_somebody_put_into_the_archive_is_noticed(
    make: MakeRun, tmp_path: Path
) -> None:
    folder = make().folder
    # with the seal of another attempt of the run
    proposed = next(entries_of(attempt("1-02", sample=1)))
    with sqlite3.connect(folder / "archive.sqlite") as connection:
        connection.execute(
            "INSERT INTO journal SELECT (SELECT max(number) + 1 FROM journal), time, seconds, kind, version, '1-02', ?,"
            " seal FROM journal WHERE attempt = '1-01' AND kind = 'proposed'",
            (proposed.model_dump_json(),),
        )
    assert is_own(folder)  # an evaluation runs no reward
    assert not is_own(folder, attempts=True)
    error = assert_one_clear_error(eureka("resume", str(folder), cwd=tmp_path))
    assert "train the reward functions in it, behind the wall 'auto'" in error


def test_a_run_without_a_signature_is_asked_about_once(make: MakeRun, tmp_path: Path) -> None:
    folder = make().folder
    with sqlite3.connect(folder / "archive.sqlite") as connection:
        connection.executescript("UPDATE journal SET seal = ''; DELETE FROM run")
    assert eureka("show", str(folder), cwd=tmp_path).returncode == 0
    assert "--trust" in assert_one_clear_error(eureka("resume", str(folder), cwd=tmp_path))
    run = open_run(folder)
    assert run.sign() == ""  # what `resume` does
    store_attempt(run.archive, attempt("1-02", sample=1))
    assert is_own(folder, attempts=True)


def test_an_environment_that_came_with_the_folder_is_asked_about_whoever_signed(
    make: MakeRun, marker: Path, tmp_path: Path
) -> None:
    run = make()
    (run.folder / "env").mkdir()
    (run.folder / "best").mkdir()
    (run.folder / "best" / "policy.safetensors").write_bytes(b"no policy")
    edit_settings(run.folder, env=str(run.folder / "env"))
    assert run.sign() == ""
    assert run.is_own()
    assert "run the environment" in assert_one_clear_error(
        eureka("evaluate", str(run.folder), cwd=tmp_path)
    )


def test_a_replay_of_a_stranger_s_run_reads_text_alone(
    stranger: Path, marker: Path, tmp_path: Path, server: _Server
) -> None:
    edit_settings(
        stranger, model=["openai/tiny"], base_url=f"http://127.0.0.1:{server.server_port}/v1"
    )
    before = {path: path.read_bytes() for path in stranger.rglob("*") if path.is_file()}
    result = eureka(
        "search",
        "balance",
        "--env",
        "cartpole",
        "--model",
        f"replay:{stranger}",
        cwd=tmp_path,
        timeout=120,
    )
    assert "has no reply to what" in result.stderr  # it came as far as asking the recording
    assert not marker.exists()
    assert server.asked == []
    assert {path: path.read_bytes() for path in stranger.rglob("*") if path.is_file()} == before


def test_two_first_uses_of_the_secret_agree(tmp_path: Path) -> None:
    script = (
        "from eureka_agent.archive.signature import user_signer;"
        " print(user_signer(make=True).sign('x'))"
    )
    variables = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")}

    def signed(_: int) -> str:
        return subprocess.run(
            [sys.executable, "-c", script],
            env=variables,
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout

    with ThreadPoolExecutor(6) as pool:
        assert len(set(pool.map(signed, range(6)))) == 1
    secret = tmp_path / "state" / "eureka_agent" / "secret"
    assert (len(secret.read_bytes()), secret.stat().st_mode & 0o777) == (32, 0o600)
    assert [path.name for path in secret.parent.iterdir()] == ["secret"]
    expected = hmac.new(secret.read_bytes(), b'["x"]', "sha256").hexdigest()
    assert signed(0).strip() == expected


@pytest.mark.parametrize("fault", ["open to others", "cut short", "no folder"])
def test_without_a_secret_a_run_is_made_and_is_a_stranger_s(
    make: MakeRun, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fault: str
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    if fault == "no folder":
        (tmp_path / "state").write_text("a file where the folder would be")
    else:
        assert isinstance(user_signer(make=True), Signer)
        secret_path().chmod(0o644 if fault == "open to others" else 0o600)
        if fault == "cut short":
            secret_path().write_bytes(b"short")
    run = make()
    assert "secret" in run.why_unsigned
    assert not run.is_own()
