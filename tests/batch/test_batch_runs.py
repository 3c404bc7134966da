"""Batches through the real command line: they go on after every kill, and do what is asked."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from command_line import CommandLine, wait_for
from model_server import ModelServer

from eureka_agent.batch.folder import searches_of
from eureka_agent.batch.intents import BatchEvent, IntentsFile

pytestmark = pytest.mark.slow

SMALL = """\
sandbox: process
defaults: {iterations: 2, samples: 2, env_steps: 4096, finalists: 1, final_seeds: 1, \
evaluation_episodes: 2, scoring_episodes: 2, strategy: greedy, confirm: 1}
matrix:
  env: [cartpole]
  seed: [SEEDS]
"""


@pytest.fixture
def eureka(tmp_path: Path) -> CommandLine:
    return CommandLine(tmp_path)


def write(eureka: CommandLine, seeds: str = "0, 1, 2", **top: object) -> None:
    lines = "".join(f"{name}: {json.dumps(value)}\n" for name, value in top.items())
    text = lines + SMALL.replace("SEEDS", seeds)
    (eureka.folder / "night.yaml").write_text(text, encoding="utf-8")


def query(database: Path, statement: str, *values: object) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(database, timeout=10.0)) as connection, connection:
        return connection.execute(statement, values).fetchall()


def night(eureka: CommandLine) -> Path:
    """Folder of the batch."""
    return eureka.folder / "runs" / "night"


def states(eureka: CommandLine) -> dict[str, str]:
    return {each.name: each.state.value for each in searches_of(IntentsFile(night(eureka)))}


def events(eureka: CommandLine) -> list[BatchEvent]:
    """The last events; empty where the batch has just begun."""
    if not (night(eureka) / "batch.json").exists():
        return []
    return IntentsFile(night(eureka)).now.events


def trained(eureka: CommandLine) -> int:
    """Attempts of all searches whose training has ended."""
    count = 0
    for archive in night(eureka).glob("*/archive.sqlite"):
        if query(archive, "SELECT 1 FROM sqlite_master WHERE name = 'attempts'"):
            ended = query(archive, "SELECT count(*) FROM attempts WHERE stage = 'trained'")
            count += ended[0][0]
    return count


def test_a_batch_killed_three_times_finds_what_an_unbroken_one_finds(
    eureka: CommandLine, tmp_path_factory: pytest.TempPathFactory
) -> None:
    write(eureka)
    for number in (1, 4, 8):
        process = eureka.popen("batch", "night.yaml")
        wait_for(lambda number=number: trained(eureka) >= number, process)
        assert "running" in states(eureka).values()
        process.kill()
        process.communicate()
        assert "stopped" in states(eureka).values()
    output = eureka("batch", "night.yaml")
    assert output.strip().endswith("done")
    assert set(states(eureka).values()) == {"finished"}
    unbroken = CommandLine(tmp_path_factory.mktemp("unbroken"))
    write(unbroken)
    unbroken("batch", "night.yaml")
    for search in states(eureka):
        broken, whole = (each.found(night(each) / search) for each in (eureka, unbroken))
        assert broken == whole
        assert whole[-1] is not None  # the human reward's
    # all searches have one environment, whose baselines are trained once
    costs = [
        unbroken.json("show", str(night(unbroken) / search))["cost"] for search in states(unbroken)
    ]
    assert sum(cost["baseline_trainings"] for cost in costs) == 2
    table = (night(eureka) / "summary.md").read_text(encoding="utf-8")
    assert table.count("| finished |") == 3

    # finished: nothing to do; an added search runs alone; a changed one is refused
    before = events(eureka)
    assert "nothing is left to do" in eureka("batch", "night.yaml")
    assert events(eureka) == before
    write(eureka, "0, 1, 2, 9")
    eureka("batch", "night.yaml")
    further = [each for each in events(eureka) if each.number > before[-1].number]
    assert {each.search for each in further} == {None, "cartpole-seed9"}
    text = (eureka.folder / "night.yaml").read_text(encoding="utf-8")
    (eureka.folder / "night.yaml").write_text(text.replace("samples: 2", "samples: 3"))
    refused = eureka("batch", "night.yaml", status=2)
    assert "cartpole-seed0: samples was 2 and is 3" in refused
    assert set(states(eureka).values()) == {"finished"}


def starts(eureka: CommandLine, search: str) -> int:
    """Times that a search has begun or was gone on with."""
    begun = [each for each in events(eureka) if each.kind in ("began", "resumed")]
    return sum(each.search == search for each in begun)


def test_a_detached_batch_is_steered_by_commands(
    eureka: CommandLine, wait_until: Callable[..., bool]
) -> None:
    write(eureka, "0, 1", at_once=1)
    text = (eureka.folder / "night.yaml").read_text(encoding="utf-8")
    (eureka.folder / "night.yaml").write_text(text.replace("4096", "100000000"))
    facts = json.loads(eureka("batch", "night.yaml", "--detach"))
    try:
        assert set(facts) == {"id", "folder"}
        listed = eureka.json("batches")["batches"]
        assert [(each["batch"], each["running"]) for each in listed] == [("night", True)]
        first, second = "cartpole-seed0", "cartpole-seed1"
        for _ in range(2):  # each request may be repeated
            assert eureka.json("batch", "pause", "night")["paused"] is True
        assert eureka.json("batch", "resume", "night")["paused"] is False
        assert wait_until(lambda: starts(eureka, first) == 1, 60.0)
        assert eureka.json("batch", "pause", "night", first)["searches"][first] == "paused"
        eureka("batch", "retune", "night", first, "iterations=3")
        assert wait_until(lambda: starts(eureka, first) == 2, 60.0)
        assert states(eureka)[first] == "paused"  # also when it goes on with another setting
        assert eureka.json("batch", "resume", "night", first)["searches"][first] == "running"
        for _ in range(2):
            answer = eureka.json("batch", "cancel", "night", second)
            assert answer["searches"][second] == "cancelled"
        assert "no search 'cartpole-seed2'" in eureka(
            "batch", "pause", "night", "cartpole-seed2", status=2
        )
        assert "cannot change" in eureka("batch", "retune", "night", first, "seed=3", status=2)
        eureka("batch", "retune", "night", first, "iterations=1")
        assert wait_until(lambda: starts(eureka, first) == 3, 60.0)
        busy = eureka("batch", "night.yaml", status=2)
        assert "is being worked on by process" in busy
        eureka("batch", "stop", "night")
        (night(eureka) / "STOP").touch()
        eureka("batch", "cancel", "night", first)
        deadline = time.monotonic() + 60
        while eureka.json("batches")["batches"][0]["running"]:
            assert time.monotonic() < deadline
    finally:
        stop_process(eureka)
    assert states(eureka) == {first: "cancelled", second: "cancelled"}
    output = (night(eureka) / "output.txt").read_text(encoding="utf-8")
    assert output.splitlines()[-1] == "done"
    assert "nobody works on the batch" in eureka("batch", "pause", "night", status=2)


def test_a_cancelled_search_is_brought_back_by_the_commands_that_are_named(
    eureka: CommandLine,
) -> None:
    eureka.environment["COLUMNS"] = "2000"  # the folder's name is long
    write(eureka, "0, 1", at_once=1)
    process = eureka.popen("batch", "night.yaml")
    wait_for(lambda: process_events(eureka, "cartpole-seed0", "running"), process)
    eureka("batch", "cancel", "night", "cartpole-seed1")
    process.communicate(timeout=120)
    assert states(eureka) == {"cartpole-seed0": "finished", "cartpole-seed1": "cancelled"}
    assert "nothing is left to do" in eureka("batch", "night.yaml")
    (back,) = re.findall(r"`eureka (batch resume .*?)`", eureka("batch", "status", "night"))
    said = eureka(*shlex.split(back))
    assert "cartpole-seed1: waiting" in said
    (again,) = re.findall(r"`eureka (batch .*?)`", said)
    eureka(*shlex.split(again))
    assert set(states(eureka).values()) == {"finished"}


def stop_process(eureka: CommandLine) -> None:
    """End a detached batch, wherever a test has failed."""
    lock = night(eureka) / ".lock"
    text = lock.read_text(encoding="utf-8") if lock.is_file() else ""
    if text and eureka.json("batches")["batches"][0]["running"]:
        os.kill(int(text), signal.SIGKILL)


def test_a_batch_that_cannot_start_is_no_batch_in_the_background(eureka: CommandLine) -> None:
    write(eureka)
    eureka.environment["EUREKA_NOTIFY"] = "nowhere"
    failed = eureka("batch", "night.yaml", "--detach", status=2)
    assert "the batch did not start" in failed
    assert "address 1 in EUREKA_NOTIFY is none that Apprise knows" in failed
    assert not (night(eureka) / "batch.json").exists()


def test_failed_searches_are_tried_again_the_others_go_on_and_the_first_failure_is_told(
    eureka: CommandLine, inbox: tuple[str, list[dict[str, Any]]]
) -> None:
    address, received = inbox
    eureka.environment["EUREKA_NOTIFY"] = address
    write(eureka, "0", retries=1)
    with (eureka.folder / "night.yaml").open("a", encoding="utf-8") as file:
        settings = "{env: cartpole, model: openai/a, base_url: 'http://127.0.0.1:9/v1'}"
        file.write(f"groups:\n  broken: {{settings: {settings}, matrix: {{seed: [0, 1]}}}}\n")
    broken = eureka.popen("batch", "night.yaml")
    output, _ = broken.communicate(timeout=300)
    assert broken.returncode == 1
    failed = {"broken-seed0": "failed", "broken-seed1": "failed"}
    assert states(eureka) == {"cartpole-seed0": "finished", **failed}
    assert output.count("http://127.0.0.1:9/v1") > 1  # in each try
    assert "Traceback" not in output
    started, first, ended = [each["title"] for each in received]
    assert (started, ended) == ("night: started", "night: ended")
    assert first in ("night: broken-seed0 failed", "night: broken-seed1 failed")
    retried = [each.search for each in events(eureka) if each.kind == "retried"]
    assert sorted(filter(None, retried)) == ["broken-seed0", "broken-seed1"]


def test_a_search_that_the_batchs_time_cut_short_goes_on_in_the_next_night(
    eureka: CommandLine,
) -> None:
    write(eureka, "0", max_time="12s")
    text = (eureka.folder / "night.yaml").read_text(encoding="utf-8")
    longer = text.replace("iterations: 2", "iterations: 60")
    (eureka.folder / "night.yaml").write_text(longer, encoding="utf-8")
    said = eureka("batch", "night.yaml")
    assert "12s from" in said
    assert set(states(eureka).values()) <= {"waiting", "stopped"}
    shorter = longer.replace("iterations: 60", "iterations: 2").replace('"12s"', '"10m"')
    with (eureka.folder / "night.yaml").open("w", encoding="utf-8") as file:
        file.write(shorter.replace("iterations: 2", f"iterations: {1 + generations(eureka)}"))
    before = generations(eureka)
    eureka("batch", "night.yaml")
    assert states(eureka) == {"cartpole-seed0": "finished"}
    assert generations(eureka) == before + 1


def generations(eureka: CommandLine) -> int:
    """Generations that the first search has ended."""
    rows = eureka.json("batch", "status", "night")["rows"]
    return int(rows[0]["generations"].partition("/")[0])


REWARD = """\
```python
def compute_reward(cart_position):
    closeness = -cart_position.abs()
    return closeness + 1.0, {"closeness": closeness}
```
"""


def write_asking(eureka: CommandLine, server: ModelServer, seeds: str, **top: object) -> None:
    """Write a batch whose searches ask a model."""
    write(eureka, seeds, **top)
    asking = f"defaults: {{model: openai/m, base_url: {server.base_url}, price: ['openai/m=9,9'], "
    path = eureka.folder / "night.yaml"
    path.write_text(path.read_text().replace("defaults: {", asking))
    eureka.environment["OPENAI_API_KEY"] = "none"


def test_a_search_that_no_money_is_left_for_waits_and_goes_on_with_more(
    eureka: CommandLine,
) -> None:
    with ModelServer([REWARD]) as server:
        write_asking(eureka, server, "0", max_cost=0.000001)
        output = eureka("batch", "night.yaml", "--yes")
        assert server.requests == []
        assert states(eureka) == {"cartpole-seed0": "waiting"}
        assert output.count("cartpole-seed0: running") == 1
        assert "the limit on what models may cost left no room for a single request" in output
        path = eureka.folder / "night.yaml"
        path.write_text(path.read_text().replace("max_cost: 1e-06", "max_cost: 5"))
        eureka("batch", "night.yaml", "--yes")
        assert server.requests
    assert states(eureka) == {"cartpole-seed0": "finished"}
    document = eureka.json("show", "runs/night/cartpole-seed0")
    assert "no model is asked any more" not in json.dumps(document)


def process_events(eureka: CommandLine, search: str, kind: str) -> bool:
    """True once a search that had begun has had an event of this kind."""
    kinds = [each.kind for each in events(eureka) if each.search == search]
    return "running" in kinds and kind in kinds[kinds.index("running") :]


def test_ctrl_c_saves_what_is_under_way(eureka: CommandLine) -> None:
    write(eureka)
    folder = str(night(eureka))
    process = eureka.popen("batch", "night.yaml", "--folder", folder, "--max-time", "1h")
    wait_for(lambda: trained(eureka) >= 1, process)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f"Go on with:  eureka batch night.yaml --folder {folder} --max-time 1h\n" in output
    assert "Traceback" not in errors
    assert set(states(eureka).values()) <= {"stopped", "finished", "waiting"}
    assert "stopped" in states(eureka).values()
    assert "resume" not in eureka("batch", "status", "night")
