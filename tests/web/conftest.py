"""One server for the tests of a module, and a browser that fails a test by what it is told."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from page_runs import make_hostile_run, make_plain_run
from page_server import PageServer, serving


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a plain, a hostile and an unreadable run."""
    parent = tmp_path_factory.mktemp("page") / "runs"
    make_plain_run(parent).rename(parent / "20260101-000000_jumper_jump")
    make_hostile_run(parent).rename(parent / "20260102-000000_jumper_jump")
    broken = parent / "20260103-000000_jumper_jump"
    broken.mkdir()
    (broken / "archive.sqlite").write_text("this is no database")
    return parent


@pytest.fixture(scope="module")
def server(runs: Path) -> Iterator[PageServer]:
    with serving(runs) as running:
        yield running


@pytest.fixture(scope="module")
def client(server: PageServer) -> Iterator[httpx.Client]:
    with server.client() as let_in:
        yield let_in
