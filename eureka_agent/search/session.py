"""A search from its settings to its report."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from eureka_agent.archive.files import locked
from eureka_agent.archive.run_folder import Run, create_run, open_run, versions
from eureka_agent.archive.snapshots import SnapshotStore
from eureka_agent.boundary import landlock
from eureka_agent.critic.contract import contract_fault
from eureka_agent.designer.interface import GivenDesigner
from eureka_agent.errors import EurekaError, SettingsError
from eureka_agent.invocation import resume_command
from eureka_agent.journal.entries import FeedbackGiven, Notice, Observer, RunStarted
from eureka_agent.llm.interface import LanguageModelError, MissingReplyError
from eureka_agent.records import CommandFacts, RunStatus
from eureka_agent.report.ledger import Ledger
from eureka_agent.rewards import DESIGN_WORDS, KIND_WORDS
from eureka_agent.search.advisers import designer_name, notes_on
from eureka_agent.search.assembly import run_assembled
from eureka_agent.search.budget import time_limit
from eureka_agent.search.card import keep_card
from eureka_agent.search.clock import plan_capacity
from eureka_agent.search.deadline import ALONE, SearchContext
from eureka_agent.search.preparation import Preparation, prepared, prepared_again
from eureka_agent.search.recorder import Recorder, end_run, has_results, remove_run
from eureka_agent.search.refinement import Person
from eureka_agent.search.resumption import check_resumable, record_changes, with_changes
from eureka_agent.search.sentence import notices
from eureka_agent.search.written_fitness import RANKED_BY, Confirm, keep_in_run


async def start(
    values: Mapping[str, Any],
    given: GivenDesigner | None,
    command: Sequence[str],
    observer: Observer,
    confirm: Confirm | None = None,
    context: SearchContext = ALONE,
) -> Run:
    """Run a new search from settings by name. `given`: the user's own reward in place of a search;
    `confirm` asks the user to accept a written fitness. Raises RewardRejectedError."""
    async with prepared(values, given, observer, confirm, context) as ready:
        assert ready.created is not None  # it is new
        run = create_run(
            ready.settings,
            ready.dry_runner.description,
            list(command),
            ready.created,
            seconds=ready.seconds,
            folder=context.folder,
        )
        if judge := RANKED_BY.get(ready.settings.fitness):
            who = f"--fitness {ready.settings.fitness}"
            run.archive.append(FeedbackGiven(who=who, feedback=judge))
        await run_search(run, ready, observer, context)
    return run


async def train_given(
    values: Mapping[str, Any], given: GivenDesigner, command: Sequence[str], observer: Observer
) -> Run:
    """Run a search of one given reward alone, with settings of `OF_ONE_REWARD`; for the other
    arguments and errors see `start`."""
    alone: dict[str, Any] = {"iterations": 1, "samples": 1, "confirm": 0, "finalists": 1}
    alone |= {"revisions": 0, "retry_rounds": 0}
    if given.reward.designs_observation:
        alone["design"] = "both"
    return await start({**values, **alone}, given, command, observer)


async def resume(
    folder: Path,
    observer: Observer,
    changes: Mapping[str, Any] | None = None,
    context: SearchContext = ALONE,
    person: Person | None = None,
) -> Run:
    """Resume a run, with some settings changed; it is this user's from then on. A `person` refines
    it. Raises EnvironmentLoadError, SettingsError."""
    run = open_run(folder)
    check_resumable(run)
    if person is not None and run.archive.state.began.given_source is not None:
        raise SettingsError(
            f"the run {run.name!r} trained a reward of your own, and nobody designs in it",
            "refine a run of `search`, and give the reward there",
        )
    run.settings = with_changes(run, changes or {})
    time_limit(run.settings)  # it may be edited
    async with prepared_again(run, observer, context) as ready:
        await run_search(run, ready, observer, context, resumed=True, person=person)
    return run


async def run_search(
    run: Run,
    ready: Preparation,
    observer: Observer,
    context: SearchContext = ALONE,
    *,
    resumed: bool = False,
    person: Person | None = None,
) -> None:
    """Run a prepared search, and record how it ended. With a `person` it is refined."""
    with locked(run.folder):
        changes = record_changes(run) if resumed else []
        if resumed:
            run.why_unsigned = run.sign()
        keep_in_run(run)
        devices_before = run.archive.state.devices
        recorder = Recorder(run, observer)
        recorder(
            RunStarted(
                run_folder=run.folder,
                run_name=run.name,
                description=run.description,
                sentence=run.sentence,
                settings=run.settings,
                wall=ready.wall.name,
                designer=designer_name(ready.models, ready.given),
                resumed=resumed,
                devices=" and ".join(ready.hardware.names),
                fitness_origin=run.fitness_origin,
                asked=Ledger(run.archive.account()).asked,
                state=run.archive.state,
            )
        )
        for notice in _opening_notices(run, ready, changes, resumed=resumed):
            recorder(notice)
        if devices_before:
            for notice in moved_devices(run, devices_before[-1], ready.hardware.kind):
                recorder(notice)
        status, message, kept = RunStatus.FAILED, "", True
        keeping = asyncio.create_task(recorder.keep_current())
        try:
            await run_assembled(run, ready, recorder, context, person)
            status = RunStatus.FINISHED
            SnapshotStore(run.folder).clear()
            if text := keep_card(run):
                recorder(Notice(text=text))
        except asyncio.CancelledError:
            status, message = RunStatus.STOPPED, f"go on with: {resume_command(run.folder)}"
            raise
        except EurekaError as error:
            if isinstance(error, LanguageModelError):
                kept = resumed or has_results(run)
                _add_resume_hint(error, run, kept)
            message = str(error)
            raise
        finally:
            keeping.cancel()
            if kept:
                end_run(run, status, message, recorder)
            else:
                remove_run(run, message, recorder)


def _opening_notices(
    run: Run, ready: Preparation, changes: Sequence[str], *, resumed: bool
) -> list[Notice]:
    """The notices at a run's start. `changes` describes changed settings."""
    began, opening = run.archive.state.began, []
    if run.why_unsigned:
        text = (
            "this run is not signed, so later commands take it for a stranger's and ask for"
            f" --trust: {run.why_unsigned}"
        )
        opening.append(Notice(text=text, level="warning", stays=True))
    opening += [Notice(text=change) for change in changes]
    if not resumed and run.settings.budget is not None:
        opening.append(Notice(text=began.budget, stays=True))
    if resumed and began.versions != versions():
        text = (
            "the run began with other versions of its packages: its scores may not be"
            " comparable (see report.md)"
        )
        opening.append(Notice(text=text, level="warning"))
    if not resumed and began.card_text:
        opening.append(Notice(text=began.card_text, stays=True))
    workers = plan_capacity(run.settings, ready.hardware.places).workers
    opening.append(Notice(text=ready.hardware.sentence(workers)))
    if not resumed and run.settings.trains_baselines:
        opening += _unfit_baselines(run)
    if (kind := run.settings.rewards) in KIND_WORDS:
        opening.append(Notice(text=f"rewards are of the kind {kind}: {KIND_WORDS[kind]}"))
    if (design := run.settings.design) in DESIGN_WORDS:
        opening.append(Notice(text=f"designed is {DESIGN_WORDS[design]}"))
    if run.description.command is not None:
        opening.append(_walls_of_command(run.description.command, ready.wall.name))
    if ready.given is None and run.settings.iterations:
        opening += notes_on(ready.models)
        if not resumed:
            opening += notices(run.sentence, run.description, offline=ready.models is None)
    return opening


def _unfit_baselines(run: Run) -> list[Notice]:
    """Warnings of baselines that cannot be trained."""
    faults = {
        name: contract_fault(reward, run.description)
        for name, reward in run.description.baselines.items()
    }
    return [
        Notice(text=f"the {name} reward cannot be trained: {fault}", level="warning", stays=True)
        for name, fault in faults.items()
        if fault
    ]


def _walls_of_command(command: CommandFacts, wall: str) -> Notice:
    """Notice of the walls around a command's rewards, before any is trained."""
    packages = ", ".join(f"{name} {version}" for name, version in command.versions.items())
    text = (
        f"trainings are the command's own{f' ({packages})' if packages else ''}: a reward shares a"
        " process with simulator and trainer, where it could falsify this training's curve; scores"
        " come from processes that never load one"
    )
    if wall == "process":
        text += (
            f"; behind the wall `process` nothing keeps that process from {landlock.uncovered()}"
            " but the critic's list of allowed names"
        )
    return Notice(text=text, level="warning" if wall == "process" else "info", stays=True)


def moved_devices(run: Run, before: str, kind: str) -> list[Notice]:
    """A warning if the run trained on another kind of device; its saved states are deleted."""
    if before.startswith("cuda") == (kind == "cuda"):
        return []
    SnapshotStore(run.folder).clear()
    text = (
        f"the run trained on {before} before: its scores may not be comparable, and"
        " trainings under way start over"
    )
    return [Notice(text=text, level="warning")]


def _add_resume_hint(error: LanguageModelError, run: Run, kept: bool) -> None:
    """Add to the hint if and how the run can be resumed. A replayed search would fail again."""
    if isinstance(error, MissingReplyError):
        return
    then = "nothing came of this run, so it was removed"
    if kept:
        then = f"the run is kept: `{resume_command(run.folder)}` goes on with it"
    error.hint = f"{error.hint}; {then}" if error.hint else then
