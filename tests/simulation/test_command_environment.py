"""A command environment from `command.yaml` and its own description, and all that may be wrong."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from command_folders import write_point

from eureka_agent.command_file import CommandFile, program, read_command, readable_folders
from eureka_agent.environment_files import fingerprints
from eureka_agent.errors import EnvironmentFaultError, EnvironmentLoadError, EurekaError
from eureka_agent.records import NativeTerm
from eureka_agent.simulation import command_environment, command_job
from eureka_agent.simulation.command_environment import (
    Described,
    describe_command,
    recorded_transitions,
)
from eureka_agent.simulation.loading import describe, load_environment
from eureka_agent.task import Variable


def described_in(folder: Path, known: str = "") -> Described:
    return describe_command(folder, read_command(folder), None, known)


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> Described:
    return described_in(write_point(tmp_path_factory.mktemp("envs") / "point"))


def test_a_command_describes_its_variables_and_its_task(tmp_path: Path) -> None:
    folder = write_point(tmp_path / "point")
    loaded = load_environment(str(folder))
    told = describe(loaded)
    own = ["position", "velocity", "to_target", "distance"]
    assert [each.name for each in told.variables] == ["actions", "terminated", *own]
    assert (told.control_dt, told.max_episode_length, told.env_steps) == (0.1, 50, 2000)
    assert told.termination_causes == (), "it told no early ends"
    assert told.fitness_variables == ("distance",)
    assert told.command is not None
    assert told.command.slots == 2
    assert told.command.versions == {"numpy": np.__version__}
    # the driver works the fingerprint out without the command
    assert fingerprints(folder, "reach")[0] == told.fingerprint


def test_previous_values_of_a_description_begin_with_the_start_state(described: Described) -> None:
    episode = described.episodes[-1]
    values = recorded_transitions([episode], (_variable(described, "position"),))
    position = torch.from_numpy(episode.values["position"])
    assert values["previous_position"][0] == float(episode.start["position"])
    assert torch.equal(values["previous_position"][1:], position[:-1])


def test_a_known_description_starts_no_command(described: Described, tmp_path: Path) -> None:
    folder = write_point(tmp_path / "point", fault="status")
    known = described_in(folder, described.event.model_dump_json())
    assert known.event == described.event


def test_own_terms_of_a_simulator_are_the_human_reward(
    described: Described, tmp_path: Path
) -> None:
    weights = {"distance": -2.0, "velocity": 0.5}
    terms = [NativeTerm(name=name, weight=weight) for name, weight in weights.items()]
    folder = write_point(tmp_path / "point")

    def human_reward(*told: NativeTerm) -> str | None:
        known = described.event.model_copy(update={"native_terms": told}).model_dump_json()
        loaded = load_environment(str(folder), known=known)
        return loaded.reward_source(loaded.task(None)[1], "human")

    assert "own reward" not in str(human_reward(*terms)), "the folder has one"
    (folder / "rewards" / "human.py").unlink()
    assert human_reward() is None
    assert human_reward(*terms, NativeTerm(name="hidden")) is None, "no reward can read it"
    space: dict[str, Any] = {}
    exec(str(human_reward(*terms)), space)
    values = {"distance": torch.tensor([1.0, 3.0]), "velocity": torch.tensor([4.0, 0.0])}
    total, parts = space["compute_reward"](**values)
    assert total.tolist() == [0.0, -6.0]
    assert {name: part.tolist() for name, part in parts.items()} == {
        "distance": [-2.0, -6.0],
        "velocity": [2.0, 0.0],
    }


def _variable(described: Described, name: str) -> Variable:
    folder = Path("point")
    command = CommandFile.model_construct()
    cls = command_environment.command_class(folder, command, described.event)
    return next(each for each in cls.all_variables() if each.name == name)


# ── what may be wrong ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("signal", r"the command was ended by SIGKILL.*\nthe point begins to move"),
        ("status", "exit status 1: no license for this simulator"),
        ("port", r"(?s)Address already in use"),
        ("flood", "an event longer than 16 MiB"),
        ("no event", r"a line that is no event: .*'hello'"),
        ("names", "'described.variables.0.name' is"),
        ("protocol", "speaks protocol 2, expected 1"),
        ("shape", r"'distance' has the shape \(50, 2\), expected .* \(50,\)"),
        ("nan", "a line that is no event: it holds NaN"),
    ],
)
def test_a_description_that_fails_says_why(tmp_path: Path, fault: str, said: str) -> None:
    with pytest.raises(EurekaError, match=said) as caught:
        load_environment(str(write_point(tmp_path / "point", fault)))
    assert ("`slots: 1`" in caught.value.hint) == (fault == "port")
    assert caught.value.hint


def test_a_command_that_hangs_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_environment, "LIMIT_SECONDS", 0.5)
    with pytest.raises(EnvironmentLoadError, match=r"no sign of life for 0.5 s and was killed"):
        load_environment(str(write_point(tmp_path / "point", "hang")))


@pytest.mark.parametrize("fault", ["child", "prints"])
def test_what_a_command_leaves_or_prints_does_not_matter(tmp_path: Path, fault: str) -> None:
    folder = write_point(tmp_path / "point", fault)
    assert len(described_in(folder).episodes) == 16
    assert b"time.sleep(3600)" not in b"".join(_command_lines())


def _command_lines() -> Iterator[bytes]:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has just ended
            yield path.read_bytes()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"interpreter": "no/such/python"}, "'no/such/python', which is no program"),
        ({"interpeter": "python"}, "'interpeter' is none of its names"),
        ({"tasks": {}}, "'tasks' is"),
        ({"readable": ["no/such/folder"]}, "as readable, and there is no such path"),
        ({"script": "../train.py"}, "within the environment's folder"),
        ({"protocol": 2}, "'protocol' is 2"),
    ],
)
def test_a_wrong_command_file_is_told_by_its_entry(
    tmp_path: Path, changes: dict[str, object], said: str
) -> None:
    folder = write_point(tmp_path / "point", **changes)
    with pytest.raises(EnvironmentLoadError, match=said):
        readable_folders(read_command(folder), folder)


def test_a_command_gets_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    folder = write_point(tmp_path / "point")
    script = folder / "train.py"
    script.write_text("import os, sys\nsys.exit(' '.join(os.environ.values()))\n")
    with pytest.raises(EnvironmentLoadError) as caught:
        load_environment(str(folder))
    assert "sk-secret" not in str(caught.value.message)


CACHING = """
import json, os, pathlib, sys
folder, cache = pathlib.Path(sys.argv[-1]), pathlib.Path(os.environ["XDG_CACHE_HOME"])
cache.mkdir(exist_ok=True)
found = (cache / "kernels").exists()
(cache / "kernels").touch()
event = {"event": "fault", "whose": "trainer", "message": str(found)}
(folder / "events.jsonl").write_text(json.dumps(event) + chr(10))
"""


def test_jobs_without_a_reward_share_a_cache(tmp_path: Path) -> None:
    folder = write_point(tmp_path / "point")
    (folder / "train.py").write_text(CACHING)
    command = command_environment.command_of(folder, read_command(folder), "reach")

    def found(mode: str) -> str:
        with command_job.CommandJob(command, mode, {}, {}, tmp_path) as job:
            try:
                list(job.run(60.0))
            except EurekaError as error:
                return error.message
        return ""

    modes = ("train", "evaluate", "train", "film", "dry_run", "evaluate")
    assert [found(mode) for mode in modes] == ["False", "False", "False", "True", "False", "True"]


def test_a_file_that_an_event_names_may_not_be_a_link(tmp_path: Path) -> None:
    folder = write_point(tmp_path / "point")
    command = command_environment.command_of(folder, read_command(folder), "reach")
    with command_job.CommandJob(command, "evaluate", {"policies": []}, {}, tmp_path) as job:
        (job.folder / "policy").symlink_to("/etc/hostname")
        with pytest.raises(EurekaError, match="it is a link"):
            job.file("policy")
        place = job.folder
    assert not place.exists()


def test_a_fitness_that_raises_is_named_with_its_line(tmp_path: Path) -> None:
    folder = write_point(tmp_path / "point")
    (folder / "fitness.py").write_text("def compute_fitness(distance):\n    return distance.nope\n")
    with pytest.raises(EnvironmentFaultError, match="the task's fitness, line 2: AttributeError"):
        load_environment(str(folder))


def test_a_missing_script_is_named(tmp_path: Path) -> None:
    folder = write_point(tmp_path / "point", script="nope.py")
    with pytest.raises(EnvironmentLoadError, match=r"is 'nope.py', and there is no such file"):
        load_environment(str(folder))


def test_an_interpreter_is_found_without_the_folders_that_its_path_leaves(tmp_path: Path) -> None:
    inner = Path(sys.executable)
    path = inner.parent / ".." / inner.parent.name / inner.name
    folder = write_point(tmp_path / "point", interpreter=str(path))
    assert program(read_command(folder), folder) == inner
    # a wall shows no folder that `..` leaves
    gone = write_point(tmp_path / "gone", interpreter=str(tmp_path / "none" / ".." / "python"))
    (tmp_path / "python").symlink_to(inner)
    assert program(read_command(gone), gone) == tmp_path / "python"
