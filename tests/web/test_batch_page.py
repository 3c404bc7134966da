"""The page of a batch, and the pages of its runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from page_runs import make_plain_run
from page_server import serving

from eureka_agent.batch.folder import plan_searches
from eureka_agent.batch.intents import IntentsFile
from eureka_agent.batch.matrix import PlannedSearch


def plan(folder: Path, *names: str) -> None:
    """Make a batch of searches with these names."""
    searches = [PlannedSearch(name, {"env": "jumper"}, {}) for name in names]
    plan_searches(IntentsFile(folder, make=True), searches)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    parent = tmp_path_factory.mktemp("page") / "runs"
    (parent / "night").mkdir(parents=True)
    plan(parent / "night", "jumper-seed0", "x")
    failed = "<b>x: no <i>engine</i>"
    IntentsFile(parent / "night").record("failed", failed, "x", failed=True, message=failed)
    make_plain_run(parent / "night").rename(parent / "night" / "jumper-seed0")
    with serving(parent) as server, server.client() as let_in:
        yield let_in


def test_the_list_links_to_the_batch_and_the_batch_to_its_runs(client: httpx.Client) -> None:
    assert '<a href="/batches/night">night</a>' in client.get("/").text
    page = client.get("/batches/night").text
    assert "Finished" in page
    assert '<a href="/runs/night%3Ajumper-seed0">jumper-seed0</a>' in page
    assert "&lt;b&gt;x" in page
    assert "no &lt;i&gt;engine&lt;/i&gt;" in page
    assert "<b>x" not in page
    # fresh seeds gave 3.0 and 3.2 m against 2.5 and 2.7 m
    assert '<td data-title="best fitness" class="number">3.10 ± 0.14 m</td>' in page
    assert '<td data-title="human" class="number">2.60 m</td>' in page
    assert "1 is the human reward, 0 the sparse one" in page
    run = client.get("/runs/night%3Ajumper-seed0")
    assert run.status_code == 200
    assert 'href="/runs/night%3Ajumper-seed0/attempts/' in run.text


@pytest.mark.parametrize(
    "path", ["/batches/day", "/runs/night%3Aother", "/runs/%3Ajumper", "/runs/..%3Aruns"]
)
def test_what_is_not_there_is_not_found(client: httpx.Client, path: str) -> None:
    assert client.get(path).status_code == 404


def test_a_batch_of_a_stranger_harms_no_other_in_the_list(tmp_path: Path) -> None:
    for name in ("night", "strange"):
        (tmp_path / name).mkdir()
        plan(tmp_path / name, "one")
    (tmp_path / "strange" / "batch.json").write_text('{"searches": {"../one": {"settings": {}}}}')
    with serving(tmp_path) as server, server.client() as client:
        listed = client.get("/")
        assert listed.status_code == 200
        assert "cannot be read as a batch" in listed.text
        assert client.get("/batches/night").status_code == 200
        assert client.get("/batches/strange").status_code == 404
