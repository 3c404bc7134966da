"""`eureka ui` as a person runs it, and a real search that it shows while it grows."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from page_runs import new_run

from eureka_agent.archive.files import locked

Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts `eureka ui` in a folder of its own; what still runs at the end is ended."""
    started: list[subprocess.Popen[str]] = []

    def begin(*arguments: str, **environment: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "eureka_agent.cli.main", *arguments],
            env={**os.environ, "EUREKA_RUNS": str(tmp_path / "runs"), **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def address_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    found = re.fullmatch(r"the page is at (http://\S+)\n", line)
    assert found, line
    return found[1]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_prints_its_address_and_ends_at_once_with_streams_open(
    start: Start, tmp_path: Path, number: signal.Signals
) -> None:
    folder, archive = new_run(tmp_path / "runs")
    process = start("ui")
    address = address_of(process)
    with locked(folder), httpx.Client() as client:
        client.get(address)  # the cookie
        live = str(httpx.URL(address).join(f"/runs/{folder.name}/live"))
        with client.stream("GET", live) as stream:
            parts = stream.iter_text()
            assert "part-status" in next(parts)
            process.send_signal(number)
            # the stream is not broken off; the page tells that it has lost the server
            assert "ended" not in "".join(parts)
            _, errors = process.communicate(timeout=5)
    archive.close()
    assert process.returncode == (130 if number is signal.SIGINT else -signal.SIGTERM)
    assert errors.strip() == ""


def test_a_port_in_use_is_one_line_and_the_default_gives_way(start: Start) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        process = start("ui", "--port", str(port))
        output, errors = process.communicate(timeout=30)
        assert (process.returncode, output) == (2, "")
        assert (
            errors.splitlines()[0]
            == f"error: cannot listen at the port {port}: it is in use by another program"
        )
        assert len(errors.splitlines()) == 2
    one, other = start("ui"), start("ui")
    ports = {httpx.URL(address_of(process)).port for process in (one, other)}
    assert len(ports) == 2
