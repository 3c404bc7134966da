from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from eureka_agent.archive.artefacts import HTML_REPORT, REPORT
from eureka_agent.archive.run_folder import Run, open_run
from eureka_agent.errors import SettingsError
from eureka_agent.journal.entries import RunEnded
from eureka_agent.journal.progress import RequestEnded, RequestStarted
from eureka_agent.records import Cost, FinalTraining, RunStatus, TaskDescription
from eureka_agent.search.preparation import effective_settings
from eureka_agent.search.recorder import Recorder, end_run
from eureka_agent.search.summary import run_cost


def test_a_person_overrides_the_task_and_the_task_the_defaults(
    description: TaskDescription,
) -> None:
    described = description.model_copy(
        update={"training_overrides": {"horizon": 64, "learning_rate": 1e-4}}
    )
    settings = effective_settings({"learning_rate": 5e-4, "seed": 3}, described, "cpu")
    assert (settings.env_steps, settings.num_envs, settings.horizon) == (10_000, 16, 64)
    assert (settings.learning_rate, settings.seed) == (5e-4, 3)


def test_the_environment_is_the_one_that_was_found(description: TaskDescription) -> None:
    described = description.model_copy(update={"environment": "/somewhere/cart", "task": "centre"})
    settings = effective_settings({"env": "cart"}, described, "cpu")
    assert (settings.env, settings.task) == ("/somewhere/cart", "centre")


def test_choices_have_no_standard_deviation(description: TaskDescription) -> None:
    chosen = description.model_copy(update={"action_choices": (2,)})
    with pytest.raises(
        SettingsError, match=r"initial_action_std is 0\.5, but the actions"
    ) as error:
        effective_settings({"initial_action_std": 0.5}, chosen, "cpu")
    assert "--entropy-coefficient" in error.value.hint
    # a file of all settings has the default in it
    assert effective_settings({"initial_action_std": 1.0}, chosen, "cpu").initial_action_std == 1.0
    assert (
        effective_settings({"initial_action_std": 0.5}, description, "cpu").initial_action_std
        == 0.5
    )


def test_the_report_of_a_run_counts_its_time_up_to_its_end(
    make_run: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run()
    run.archive.clock = lambda: 20.0  # an earlier process
    run.archive.append(RunEnded(status=RunStatus.STOPPED))
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    events: list[Any] = []
    recorder = Recorder(run, events.append)
    now += 100.0
    end_run(run, RunStatus.STOPPED, "", recorder)
    for name in (REPORT, HTML_REPORT):
        assert "2 min 0 s of wall time" in (run.folder / name).read_text()
    assert [type(event) for event in events] == [RunEnded]
    assert run.seconds == 120.0


def test_the_time_of_a_reply_outlives_a_kill(
    make_run: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run()
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    recorder = Recorder(run, lambda event: None)
    request = RequestStarted(number=0, model="openai/tiny", purpose="design of 1-01")
    now += 50.0
    recorder(request)
    assert open_run(run.folder).seconds == 0.0
    recorder(RequestEnded(request=request, cost=Cost()))
    assert open_run(run.folder).seconds == 50.0


def test_finals_and_baselines_that_started_again_are_counted() -> None:
    trainings = [
        FinalTraining(name="human", seed=1, outcome=None, retries=1),
        FinalTraining(name="1-01", seed=1, outcome=None, retries=2),
        FinalTraining(
            name="sparse", seed=1, outcome=None, retries=1, cached=True
        ),  # of another run
    ]
    assert run_cost((), trainings).final_restarts == 3
