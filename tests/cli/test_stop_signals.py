"""A stop takes effect while the event loop is held up, as by the designs of a large generation. It
does not wait for their end."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

HELD_UP = """
import asyncio, time
from eureka_agent.cli.watch import watch

async def work(screen):
    worker = await asyncio.create_subprocess_exec("sleep", "1000")
    try:
        print("held up", flush=True)
        while True:
            pass
    finally:
        worker.kill()
        await worker.wait()
        print("cleaned up", flush=True)

import click
try:
    watch(work, "json")
except click.exceptions.Abort:
    raise SystemExit(130)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_search_that_is_held_up_is_stopped_and_cleans_up(
    tmp_path: Path, number: signal.Signals
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", HELD_UP], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "held up\n"
        process.send_signal(number)
        began = time.monotonic()
        output, _ = process.communicate(timeout=20)
        assert time.monotonic() - began < 5
    finally:
        process.kill()
        process.wait()
    assert output == "cleaned up\n"
    assert process.returncode == 130
