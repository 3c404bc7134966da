"""All that a worker tells the driver has a bounded type, and decides about its own environment
alone."""

from __future__ import annotations

import json
import shutil
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import pytest
from pydantic import BaseModel, ValidationError
from script_wall import ScriptWall
from test_hostile_workers import BEGINS

from eureka_agent.archive.cache import BaselineCache
from eureka_agent.boundary.events import EVENT, Event, Opened
from eureka_agent.errors import WorkerDiedError
from eureka_agent.fleet.dry_runner import DryRunner
from eureka_agent.fleet.jobs import Problem
from eureka_agent.records import Finding, TaskDescription, WrittenFitness
from eureka_agent.resources import resource_folder
from eureka_agent.rewards import CodeReward, baseline
from eureka_agent.search.preparation import effective_settings
from eureka_agent.settings import SearchSettings
from eureka_agent.simulation.catalogue import read_entry

CHECKED_AS_A_WHOLE = (
    Finding,  # by `Findings`
    CodeReward,  # a baseline's source; nothing else of it is taken
    (TaskDescription, "training_overrides"),  # by `TrainingSettings`
    (TaskDescription, "gpu_overrides"),  # likewise
)


def free_types(kind: Any, place: object, bounded: bool = False) -> Iterator[str]:
    """Places of text, names and values that nothing bounds."""
    origin = get_origin(kind)
    if origin is Annotated:
        yield from free_types(get_args(kind)[0], place, bounded=True)
    elif origin in (Union, types.UnionType, tuple, list, dict):
        for each in get_args(kind):
            if each is not Ellipsis:
                yield from free_types(each, place)
    elif isinstance(kind, type) and issubclass(kind, BaseModel):
        if kind not in CHECKED_AS_A_WHOLE:
            assert kind.model_config["extra"] == "forbid"
            for name, field in kind.model_fields.items():
                if (kind, name) not in CHECKED_AS_A_WHOLE:
                    where = f"{kind.__name__}.{name}"
                    yield from free_types(field.annotation, where, bool(field.metadata))
    elif origin is not Literal and not (
        kind in (int, float, bool, types.NoneType) or (kind is str and bounded)
    ):
        yield f"{place}: {kind}"


def test_no_message_of_a_worker_has_a_free_text_or_mapping() -> None:
    assert list(free_types(Event, "")) == []


@pytest.fixture
def said(description: TaskDescription) -> dict[str, Any]:
    return json.loads(Opened(description=description).model_dump_json())


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(
            ("training_overrides", {name: value})
            for name, value in {
                "base_url": "http://192.0.2.1/v1",
                "sandbox": "process",
                "novelty": False,
                "cluster": "ray:192.0.2.1:6379",
                "env": "/tmp/other",
                "model": ["openai/gpt-5.5"],
                "learning_rate": 1e9,
                "hidden_sizes": [10**9],
                "epochs": "many",
            }.items()
        ),
        ("env_steps", 10**16),
        ("num_envs", 0),
        ("task", "../../../outside"),
        ("task", ".hidden"),
        ("task", "\x1b[2Jbalance"),
        ("termination_causes", ["\x1b[31mfell"]),
        ("variables", [{"name": "x): import os  #", "shape": [], "unit": "1", "frame": "-", "doc": ""}]),
        ("constants", [{"name": "__import__", "value": 1.0}]),
        ("fitness_reduction", "{0.__class__}"),
        ("max_episode_length", -1),
        ("unknown", 1),
    ],
)  # fmt: skip
def test_a_worker_may_not_say(said: dict[str, Any], field: str, value: object) -> None:
    said["description"][field] = value
    with pytest.raises(ValidationError):
        EVENT.validate_json(json.dumps(said))


def test_texts_of_a_worker_are_plain_and_bounded(said: dict[str, Any]) -> None:
    for field in ("sentence", "doc", "fitness_doc", "fitness_unit"):
        said["description"][field] = "\x1b]0;title\x07\u202e" + "x" * 100_000
    said["gpus"] = {"count": 0, "missing": "\x1b[2J"}
    heard = EVENT.validate_json(json.dumps(said))
    assert isinstance(heard, Opened)
    for text in (heard.description.sentence, heard.description.fitness_unit, heard.gpus.missing):
        assert text.isprintable()
        assert len(text) < 20_000


def lying(**lies: object) -> ScriptWall:
    """Workers that open everything with these words."""
    return ScriptWall(BEGINS.replace("def train", f"description.update({lies!r})\n\ndef train"))


async def described(wall: ScriptWall, problem: Problem, scratch: Path) -> TaskDescription:
    runner = DryRunner(wall, problem, scratch)
    try:
        return await runner.start()
    finally:
        await runner.close()


async def test_a_worker_cannot_choose_the_settings_of_a_run(tmp_path: Path) -> None:
    wall = lying(training_overrides={"base_url": "http://192.0.2.1/v1", "novelty": False})
    with pytest.raises(WorkerDiedError, match="'base_url' is none of its names"):
        await described(wall, Problem("cartpole"), tmp_path)


async def test_a_worker_cannot_name_another_environment_or_task(tmp_path: Path) -> None:
    wall = lying(environment="/tmp/other", task="other", fitness_author="you")
    found = await described(wall, Problem("cartpole", "balance"), tmp_path)
    assert (found.environment, found.task, found.fitness_author) == ("cartpole", "balance", "")
    settings = effective_settings({}, found, "cpu")
    assert (settings.env, settings.task) == ("cartpole", "balance")
    assert settings.base_url is SearchSettings().base_url


async def test_fingerprints_follow_from_files_whatever_a_worker_says(tmp_path: Path) -> None:
    """One that tells cart-pole's would fill the shared caches for it."""
    cartpole = resource_folder("envs") / "cartpole"
    real = read_entry(cartpole).fingerprint("balance")
    own = tmp_path / "own"
    shutil.copytree(cartpole, own)
    assert (await described(lying(), Problem(str(own), "balance"), tmp_path)).fingerprint == real

    with (own / "env.py").open("a") as file:
        file.write("\n# another file\n")
    wall = lying(fingerprint=real, files={"env.py": "0" * 16})
    found = await described(wall, Problem(str(own), "balance"), tmp_path)
    assert found.fingerprint == read_entry(own).fingerprint("balance") != real
    assert "rewards/balance_human.py" in found.files
    assert "rewards/swingup_human.py" not in found.files

    written = WrittenFitness(
        sentence="s", source="x", doc="d", reduction="sum", author="openai/gpt-5.5"
    )
    found = await described(lying(), Problem("cartpole", "balance", written), tmp_path)
    assert found.fingerprint == f"{real}+{written.fingerprint}"
    assert (found.fitness_author, found.environment_fingerprint) == ("openai/gpt-5.5", real)


async def test_the_word_of_an_environment_without_files_counts_for_itself(tmp_path: Path) -> None:
    found = [
        await described(lying(), Problem(f"gymnasium:{name}"), tmp_path)
        for name in ("A-v0", "B-v0")
    ]
    assert found[0].fingerprint == found[1].fingerprint
    entries = {
        BaselineCache(tmp_path, each, SearchSettings())._entry(baseline("x"), 0) for each in found
    }
    assert len(entries) == len({each.environment_fingerprint for each in found}) == 2
