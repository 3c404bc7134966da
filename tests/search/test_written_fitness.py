"""Conditions for writing a fitness, and what a run keeps of one; without workers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from eureka_agent.archive.database import Archive
from eureka_agent.archive.run_folder import Run, list_runs
from eureka_agent.designer.interface import GivenDesigner, given_reward
from eureka_agent.errors import SettingsError
from eureka_agent.journal.entries import BaseEntry, Notice, RunCreated
from eureka_agent.llm.budget import Limits
from eureka_agent.llm.interface import Completion, CompletionRequest, FinishReason
from eureka_agent.records import Message, TaskDescription, Verdict, WrittenFitness
from eureka_agent.search.models import Models
from eureka_agent.search.session import start
from eureka_agent.search.summary import run_report
from eureka_agent.search.written_fitness import (
    Acceptance,
    AcceptedFitness,
    accepted_fitness,
    check_fitness_setting,
    keep_in_run,
    write_fitness,
)
from eureka_agent.settings import SearchSettings

FITNESS = WrittenFitness(
    sentence="keep the cart still",
    source=(
        "def compute_reward(cart_position):\n    return cart_position, {'position':"
        " cart_position}\n"
    ),
    doc="stillness",
    reduction="mean",
    author="openai/tiny",
)


async def confirm(fitness: WrittenFitness, verdict: Verdict, kept: Path) -> Acceptance | None:
    raise AssertionError("nobody should be asked")


def settings(**values: object) -> SearchSettings:
    return SearchSettings.model_validate(
        {"fitness": "written", "model": "openai/tiny", "sentence": "wave a leg", **values}
    )


@pytest.mark.parametrize(
    ("values", "part"),
    [
        ({"model": "offline"}, "needs a language model"),
        ({"sentence": None}, "needs the task in plain words, found None"),
        ({"sentence": "?!"}, "found '?!'"),
    ],
)
def test_a_model_and_a_sentence_are_needed(values: dict[str, object], part: str) -> None:
    with pytest.raises(SettingsError) as caught:
        check_fitness_setting(settings(**values), None, confirm)
    assert part in caught.value.message
    check_fitness_setting(settings(), None, confirm)
    check_fitness_setting(
        settings(fitness="task", **values), None, None
    )  # nothing is to be written


def test_a_person_s_own_reward_is_trained_by_the_task_s_metric() -> None:
    with pytest.raises(SettingsError, match="needs a language model"):
        check_fitness_setting(settings(), GivenDesigner(given_reward(""), "a file"), confirm)


async def test_nothing_is_started_for_settings_that_do_not_go_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EUREKA_RUNS", str(tmp_path / "runs"))
    with pytest.raises(SettingsError, match="nobody is there to accept"):
        await start(
            settings().model_dump(include={"fitness", "model", "sentence"}),
            None,
            [],
            lambda event: None,
        )
    assert not (tmp_path / "runs").exists()


class SlowModel:
    """Answers when it is let."""

    name = "openai/tiny"
    retries = None

    def __init__(self) -> None:
        self.asked, self.may_answer = asyncio.Event(), asyncio.Event()

    async def complete(self, request: CompletionRequest) -> Completion:
        self.asked.set()
        await self.may_answer.wait()
        return Completion(text="paid for", finish_reason=FinishReason.STOP)


class DescribedTask:
    """All that is asked of a dry runner before there is a reply."""

    def __init__(self, description: TaskDescription) -> None:
        self.description = description


async def test_a_reply_that_is_under_way_when_it_is_stopped_is_kept(
    tmp_path: Path, description: TaskDescription
) -> None:
    model, told = SlowModel(), asyncio.Event()
    models = Models((model,), None, None, {}, Limits(), None, None)

    def observer(event: BaseEntry) -> None:
        if isinstance(event, Notice) and "paid for" in event.text:
            told.set()

    work = accepted_fitness(
        settings(), models, DescribedTask(description), tmp_path, confirm, observer
    )  # type: ignore[arg-type]
    task = asyncio.create_task(work)
    await model.asked.wait()
    task.cancel()
    await told.wait()
    model.may_answer.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    archive = Archive(tmp_path / ".fitness")
    assert [message.reply for message in archive.messages()] == ["paid for"]
    archive.close()


MakeRun = Callable[..., Run]


@pytest.fixture
def run(make_run: MakeRun) -> Run:
    """A new run by a written fitness, whose messages are still where they were asked for."""
    run = make_run(fitness="written")
    run.description = run.description.model_copy(update={"fitness_author": "openai/tiny"})
    drafts = run.folder.parent / ".fitness"
    drafts.mkdir()
    stored = Archive(drafts)
    for key in ("first", "second", "of another run"):
        stored.put(key, Message(role="metric", model="openai/tiny", request="?", reply=key))
    stored.close()
    accepted = AcceptedFitness(FITNESS, "accepted by --yes at the start", ("first", "second"), 0.0)
    run.archive.append(RunCreated(**accepted.recorded()))
    return run


def test_a_run_keeps_its_fitness_and_what_it_took_once(run: Run) -> None:
    assert run.written_fitness == FITNESS
    keep_in_run(run)
    keep_in_run(run)
    assert [message.reply for message in run.archive.messages()] == ["first", "second"]
    assert (run.folder / "fitness.py").read_text() == FITNESS.source
    words = json.loads((run.folder / "fitness.json").read_text())
    assert (words["doc"], words["accepted"]) == ("stillness", "accepted by --yes at the start")
    assert "source" not in words
    assert run.fitness_origin == "fitness written by openai/tiny, accepted by --yes at the start"
    assert run_report(run).fitness_origin == run.fitness_origin
    assert run_report(run).written_fitness == FITNESS


def test_what_is_there_is_not_written_again(run: Run) -> None:
    write_fitness(run.folder, FITNESS, "by hand")
    keep_in_run(run)
    assert json.loads((run.folder / "fitness.json").read_text())["accepted"] == "by hand"


def test_a_run_by_the_task_s_own_metric_has_none(make_run: MakeRun) -> None:
    run = make_run()
    keep_in_run(run)
    assert (run.written_fitness, run.fitness_origin) == (None, "")
    assert not (run.folder / "fitness.json").exists()


def test_the_drafts_are_no_run(run: Run) -> None:
    assert list_runs(run.folder.parent) == [run.folder]
