"""A search from its settings to its report: starts the workers, runs the loop, writes down what
came of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from eureka_agent.archive.run_folder import Run, create_run, open_run, runs_folder, versions
from eureka_agent.archive.run_lock import locked
from eureka_agent.archive.snapshots import SnapshotStore
from eureka_agent.critic.critic import Critic
from eureka_agent.designer.given import GivenDesigner
from eureka_agent.errors import (
    EnvironmentLoadError,
    EurekaError,
    SettingsError,
    WorkerDiedError,
    WorkerFaultError,
)
from eureka_agent.fleet.devices import Hardware, choose_hardware
from eureka_agent.fleet.dry_runner import DryRunner
from eureka_agent.fleet.kernels import with_kernels
from eureka_agent.invocation import resume_command
from eureka_agent.journal.entries import Notice, Observer, RunCreated, RunStarted
from eureka_agent.llm.interface import LanguageModelError, MissingReplyError, RetryObserver
from eureka_agent.records import RunStatus, TaskDescription, Verdict, WrittenFitness
from eureka_agent.report.requests import asked_before
from eureka_agent.sandbox.choose import choose_wall
from eureka_agent.sandbox.wall import Wall
from eureka_agent.search.advisers import advisers_of, designer_name, notes_on, recorded_of
from eureka_agent.search.assembly import search
from eureka_agent.search.budget import parse_budget
from eureka_agent.search.capacity import plan_capacity
from eureka_agent.search.deadline import Deadline
from eureka_agent.search.models import Models, models_of
from eureka_agent.search.planning import plan_within
from eureka_agent.search.recorder import Recorder
from eureka_agent.search.resumption import (
    check_resumable,
    driver_scratch,
    record_changes,
    with_changes,
)
from eureka_agent.search.run_end import end_run, has_results, remove_run
from eureka_agent.search.sentence import notices
from eureka_agent.search.time_limit import time_limit
from eureka_agent.search.written_fitness import (
    AcceptedFitness,
    Confirm,
    accepted_fitness,
    check_fitness_setting,
    keep_in_run,
)
from eureka_agent.settings import SearchSettings, check_training, parse_settings
from eureka_agent.text import one_line


class RewardRejectedError(EurekaError):
    """A person's own reward that the critic rejects. No run was made."""

    exit_status = 1

    def __init__(self, verdict: Verdict, origin: str) -> None:
        """`verdict`: the critic's; `origin`: where the reward is from."""
        first = next(finding for finding in verdict.findings if finding.severity == "error")
        super().__init__(
            f"the critic rejects the reward in {origin!r}: {first.code} {first.message}", first.hint
        )
        self.verdict = verdict


def effective_settings(values: Mapping[str, Any], description: TaskDescription) -> SearchSettings:
    """The settings of a run: what the person asked for, else what the task asks for, else the
    defaults.

    Environment and task are the ones that were found, so that a resumption from another folder
    finds them too. Raises SettingsError for settings that do not go together.
    """
    task = {
        "env_steps": description.env_steps,
        "num_envs": description.num_envs,
        **description.training_overrides,
    }
    found = {"env": description.environment, "task": description.task}
    settings = parse_settings(SearchSettings, {**task, **values, **found}, "the settings")
    check_training(settings)
    _check_exploration(settings, description)
    return settings


def _check_exploration(settings: SearchSettings, description: TaskDescription) -> None:
    """Raises SettingsError for a standard deviation of actions that have none."""
    default = SearchSettings.model_fields["initial_action_std"].default
    if description.action_choices and settings.initial_action_std != default:
        raise SettingsError(
            f"initial_action_std is {settings.initial_action_std!r}, but the actions of"
            f" {description.environment!r} are choices, which have no standard deviation",
            "leave --initial-action-std out; --entropy-coefficient 0.01 keeps a policy trying"
            " several choices",
        )


async def start(
    values: Mapping[str, Any],
    given: GivenDesigner | None,
    command: Sequence[str],
    observer: Observer,
    confirm: Confirm | None = None,
) -> Run:
    """Start a new search and see it through. `values`: settings by name; `given`: a person's own
    reward in place of a search; `confirm`: asked where a fitness is written for it. Raises
    RewardRejectedError before a run is made.
    """
    began = time.monotonic()
    asked = parse_settings(SearchSettings, values, "the settings")
    check_fitness_setting(asked, given, confirm)
    budget = None if asked.budget is None else parse_budget(asked.budget)
    time_limit(asked)  # raises for one that cannot be read, before anything is started
    models = None if given is not None else models_of(asked, _telling(observer))
    wall = choose_wall(asked.sandbox)
    with driver_scratch() as scratch:
        async with AsyncExitStack() as stack:
            _close_at_end(stack, models)
            dry_runner = await _dry_runner(stack, wall, asked, scratch)
            written = await _written_fitness(asked, models, dry_runner, confirm, observer)
            if written is not None:
                began += written.shown_seconds
                dry_runner = await _dry_runner(stack, wall, asked, scratch, written.fitness)
            fitness = None if written is None else written.fitness
            if given is not None:
                verdict = await Critic(dry_runner.description, dry_runner).judge(given.source)
                if not verdict.accepted:
                    raise RewardRejectedError(verdict, given.origin)
            hardware = choose_hardware(asked.device, dry_runner.opened)
            settings = effective_settings(values, dry_runner.description)
            hardware = await with_kernels(
                hardware, wall, settings, dry_runner.description, runs_folder(), scratch
            )
            if models is not None:
                await _measure(dry_runner, observer)
            recorded: dict[str, Any] = (
                recorded_of(models) if given is None else {"given_source": given.source}
            )
            recorded |= {} if written is None else written.recorded()
            seconds = 0.0
            if budget is not None:
                planned = await plan_within(
                    budget,
                    settings,
                    values,
                    wall,
                    dry_runner.description,
                    hardware,
                    scratch,
                    began,
                    fitness,
                )
                settings, seconds = planned.settings, time.monotonic() - began
                recorded |= {"budget": planned.text, "seconds_before": seconds}
            run = create_run(
                settings,
                dry_runner.description,
                list(command),
                RunCreated(**recorded),
                seconds=seconds,
            )
            await _work(run, wall, hardware, dry_runner, models, given, observer, resumed=False)
    return run


async def resume(folder: Path, observer: Observer, changes: Mapping[str, Any] | None = None) -> Run:
    """Go on with a run from what is missing, with some settings changed. It is this user's run from
    then on: who calls this trusts what the folder asks for.

    Raises EnvironmentLoadError where its environment has changed since, SettingsError where a
    setting has that its results depend on.
    """
    run = open_run(folder)
    check_resumable(run)
    run.settings = with_changes(run, changes or {})
    time_limit(run.settings)  # it may be edited
    given = _given_again(run)
    models = None if given is not None else models_of(run.settings, _telling(observer))
    wall = choose_wall(run.settings.sandbox)
    with driver_scratch() as scratch:
        async with AsyncExitStack() as stack:
            _close_at_end(stack, models)
            dry_runner = await _dry_runner(stack, wall, run.settings, scratch, run.written_fitness)
            if dry_runner.description.fingerprint != run.description.fingerprint:
                raise EnvironmentLoadError(
                    f"the environment {run.description.environment!r} has changed since the run"
                    f" {run.name!r} began{_changed(run.description, dry_runner.description)}",
                    "its old and new attempts could not be compared: bring the old files back, or"
                    " start a new search",
                )
            hardware = choose_hardware(run.settings.device, dry_runner.opened)
            hardware = await with_kernels(
                hardware, wall, run.settings, run.description, folder.parent, scratch
            )
            await _work(run, wall, hardware, dry_runner, models, given, observer, resumed=True)
    return run


def _changed(before: TaskDescription, now: TaskDescription) -> str:
    """The files that are not as they were, in words; empty where nobody knows."""
    if not (before.files and now.files):
        return ""
    names = sorted(
        name
        for name in {*before.files, *now.files}
        if before.files.get(name) != now.files.get(name)
    )
    shown = ", ".join(one_line(name, 100) for name in names[:5]) + (
        f" and {len(names) - 5} more" if len(names) > 5 else ""
    )
    return f": {shown}" if names else ""


async def _measure(dry_runner: DryRunner, observer: Observer, *, scores: bool = True) -> None:
    """Have it found out, once for a run, what models are told beside what the environment says of
    itself."""
    for with_scores in (True, False) if scores else (False,):
        try:
            await dry_runner.measure(scores=with_scores)
        except (WorkerDiedError, WorkerFaultError) as error:
            what = "what doing nothing scores" if with_scores else "where episodes start"
            observer(
                Notice(
                    text=f"models are not told {what}: {error.message.splitlines()[0]}",
                    level="warning",
                )
            )
        else:
            return


def _telling(observer: Observer) -> RetryObserver:
    """Requests to models that are made again, as notices."""
    return lambda reason: observer(Notice(text=reason, level="warning"))


def _close_at_end(stack: AsyncExitStack, models: Models | None) -> None:
    if models is not None:
        stack.push_async_callback(models.close)


def _given_again(run: Run) -> GivenDesigner | None:
    """The designer of a run on a reward that a person gave, which the archive still has."""
    source = run.archive.state.began.given_source
    return None if source is None else GivenDesigner(source, "the run's own record")


async def _written_fitness(
    settings: SearchSettings,
    models: Models | None,
    dry_runner: DryRunner,
    confirm: Confirm | None,
    observer: Observer,
) -> AcceptedFitness | None:
    """What a model wrote and was accepted, in a search by a fitness of its own. The dry runner is
    closed then: it has the task's own metric."""
    if settings.fitness != "written" or models is None or confirm is None:
        return None
    await _measure(dry_runner, observer, scores=False)
    written = await accepted_fitness(settings, models, dry_runner, runs_folder(), confirm, observer)
    await dry_runner.close()
    return written


async def _dry_runner(
    stack: AsyncExitStack,
    wall: Wall,
    settings: SearchSettings,
    scratch: Path,
    fitness: WrittenFitness | None = None,
) -> DryRunner:
    folder = scratch / "dry-runs"
    dry_runner = DryRunner(
        wall, settings.env, settings.task, folder, settings.dry_run_timeout, fitness=fitness
    )
    stack.push_async_callback(dry_runner.close)
    await dry_runner.start()
    return dry_runner


async def _work(
    run: Run,
    wall: Wall,
    hardware: Hardware,
    dry_runner: DryRunner,
    models: Models | None,
    given: GivenDesigner | None,
    observer: Observer,
    *,
    resumed: bool,
) -> None:
    with locked(run.folder):
        changes = record_changes(run) if resumed else []
        if resumed:
            run.why_unsigned = run.sign()
        keep_in_run(run)
        designer = designer_name(models, given)
        before = run.archive.state
        devices_before = before.devices
        workers_now = plan_capacity(run.settings, hardware.places).workers
        recorder = observer = Recorder(run, observer)
        observer(
            RunStarted(
                run_folder=run.folder,
                run_name=run.name,
                description=run.description,
                sentence=run.sentence,
                settings=run.settings,
                wall=wall.name,
                designer=designer,
                resumed=resumed,
                devices=" and ".join(hardware.names),
                fitness_origin=run.fitness_origin,
                seconds_before=run.seconds,
                known=before.attempts(),
                asked=asked_before(run.archive.account()),
            )
        )
        if run.why_unsigned:
            text = (
                "this run is not signed, so later commands take it for a stranger's and ask for"
                f" --trust: {run.why_unsigned}"
            )
            observer(Notice(text=text, level="warning", stays=True))
        for change in changes:
            observer(Notice(text=change))
        if not resumed and run.settings.budget is not None:
            observer(Notice(text=before.began.budget, stays=True))
        if resumed and before.began.versions != versions():
            text = (
                "the run began with other versions of its packages: its scores may not be"
                " comparable (see report.md)"
            )
            observer(Notice(text=text, level="warning"))
        observer(Notice(text=hardware.sentence(workers_now)))
        if devices_before:
            _note_devices(run, devices_before[-1], observer)
        notes = notes_on(models) if given is None else []
        if given is None and not resumed:
            notes += notices(run.sentence, run.description, offline=models is None)
        for note in notes:
            observer(note)
        status, message, kept = RunStatus.FAILED, "", True
        keeping = asyncio.create_task(recorder.keep_current())
        try:
            async with AsyncExitStack() as workers:
                limit = time_limit(run.settings)
                deadline = (
                    None if limit is None else Deadline(run, limit, recorder.seconds, recorder)
                )
                time_is_up = (
                    deadline.is_up if deadline is not None and run.settings.max_time else _never
                )
                advisers = advisers_of(models, given, run, time_is_up, recorder)
                try:
                    await search(
                        run, wall, hardware, dry_runner, advisers, deadline, recorder, workers
                    )
                finally:
                    await advisers.leave(recorder)
            status = RunStatus.FINISHED
            SnapshotStore(run.folder).clear()
        except asyncio.CancelledError:
            status, message = RunStatus.STOPPED, f"go on with: {resume_command(run.folder)}"
            raise
        except EurekaError as error:
            if isinstance(error, LanguageModelError):
                kept = resumed or has_results(run)
                _say_how_to_go_on(error, run, kept)
            message = str(error)
            raise
        finally:
            keeping.cancel()
            if kept:
                end_run(run, status, message, recorder)
            else:
                remove_run(run, message, recorder)


def _say_how_to_go_on(error: LanguageModelError, run: Run, kept: bool) -> None:
    """Put into the hint what has become of the run. What a recording does not have it will not have
    later."""
    if isinstance(error, MissingReplyError):
        return
    then = (
        f"the run is kept: `{resume_command(run.folder)}` goes on with it"
        if kept
        else "nothing came of this run, so it was removed"
    )
    error.hint = f"{error.hint}; {then}" if error.hint else then


def _note_devices(run: Run, before: str, observer: Observer) -> None:
    """Where the run trains on another kind of device than before, say so, and drop the saved
    states: they are of no use."""
    if before.startswith("cuda") == run.archive.state.devices[-1].startswith("cuda"):
        return
    SnapshotStore(run.folder).clear()
    text = (
        f"the run trained on {before} before: its scores may not be comparable, and"
        " trainings under way start over"
    )
    observer(Notice(text=text, level="warning"))


def _never() -> str:
    """There is always time."""
    return ""
