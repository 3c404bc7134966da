"""A search from its settings to its report: starts the workers, runs the loop, writes down what came of it."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from eureka_agent.archive.baseline_cache import BaselineCache
from eureka_agent.archive.database import resume_command
from eureka_agent.archive.files import write_file
from eureka_agent.archive.run_folder import Run, create_run, locked, open_run, runs_folder, versions
from eureka_agent.archive.snapshots import SnapshotStore
from eureka_agent.critic.critic import Critic
from eureka_agent.designer.given import GivenDesigner
from eureka_agent.designer.interface import Designer
from eureka_agent.designer.offline.designer import OfflineDesigner
from eureka_agent.errors import EnvironmentLoadError, EurekaError
from eureka_agent.llm.interface import LanguageModel
from eureka_agent.records import CurvePoint, RunStatus, TaskDescription
from eureka_agent.report.events import (
    AttemptEnded,
    Event,
    Notice,
    Observer,
    RunEnded,
    RunStarted,
    TrainingEnded,
    TrainingProgress,
    TrainingResumed,
    TrainingRetried,
)
from eureka_agent.report.markdown import write_report
from eureka_agent.sandbox.choose import choose_wall
from eureka_agent.sandbox.cores import usable_cores
from eureka_agent.sandbox.devices import Hardware, choose_hardware
from eureka_agent.sandbox.dry_runner import DryRunner
from eureka_agent.sandbox.evaluator import Evaluator
from eureka_agent.sandbox.kernels import with_kernels
from eureka_agent.sandbox.training_pool import TrainingPool
from eureka_agent.sandbox.wall import Wall
from eureka_agent.search.attempts import ENDED, AttemptRunner
from eureka_agent.search.budget import parse_budget
from eureka_agent.search.capacity import plan_capacity
from eureka_agent.search.deadline import Deadline
from eureka_agent.search.engine import SearchEngine, first_error
from eureka_agent.search.final import FinalTrainings, keep_best
from eureka_agent.search.planning import plan_within
from eureka_agent.search.resumption import check_resumable, driver_scratch
from eureka_agent.search.strategy import STRATEGIES, Strategy
from eureka_agent.search.summary import BUDGET_FACT, DEVICES_FACT, best_attempt, run_report
from eureka_agent.search.trial import TrialRunner
from eureka_agent.settings import SearchSettings, check_minibatches, parse_settings, training_part

WORKERS_FOLDER = ".workers"
"""Scratch of a run's workers; emptied when the run ends."""
REPORT_FILE = "report.md"
GIVEN_FACT = "given_source"
"""Where the archive keeps the reward of a run that trains a person's own."""


def effective_settings(values: Mapping[str, Any], description: TaskDescription) -> SearchSettings:
    """The settings of a run: what the person asked for, else what the task asks for, else the defaults.

    Environment and task are the ones that were found, so that a resumption from another folder finds them too. Raises SettingsError
    for settings that do not go together.
    """
    task = {"env_steps": description.env_steps, "num_envs": description.num_envs, **description.training_overrides}
    found = {"env": description.environment, "task": description.task}
    settings = parse_settings(SearchSettings, {**task, **values, **found}, "the settings")
    check_minibatches(settings)
    return settings


async def start(
    values: Mapping[str, Any], given: GivenDesigner | None, command: Sequence[str], observer: Observer
) -> Run:
    """Start a new search and see it through. `values`: settings by name; `given`: a person's own reward in place of a search."""
    began = time.monotonic()
    asked = parse_settings(SearchSettings, values, "the settings")
    budget = None if asked.budget is None else parse_budget(asked.budget)
    model = None if given is not None else language_model_of(asked)
    wall = choose_wall(asked.sandbox)
    with driver_scratch() as scratch:
        async with AsyncExitStack() as stack:
            dry_runner = await _dry_runner(stack, wall, asked, scratch)
            hardware = choose_hardware(asked.device, dry_runner.opened)
            settings = effective_settings(values, dry_runner.description)
            hardware = await with_kernels(hardware, wall, settings, dry_runner.description, runs_folder(), scratch)
            facts: dict[str, Any] = {} if given is None else {GIVEN_FACT: given.source}
            if budget is not None:
                planned = await plan_within(
                    budget, settings, values, wall, dry_runner.description, hardware, scratch, began
                )
                settings, seconds = planned.settings, time.monotonic() - began
                facts |= {BUDGET_FACT: {"text": planned.text, "seconds_before": seconds}, "seconds": seconds}
            run = create_run(settings, dry_runner.description, list(command), facts)
            designer = given or make_designer(model, run)
            await _work(run, wall, hardware, dry_runner, designer, observer, resumed=False)
    return run


async def resume(folder: Path, observer: Observer) -> Run:
    """Go on with a run from what is missing.

    Raises EnvironmentLoadError where its environment has changed since, SettingsError where a setting has that its results depend on.
    """
    run = open_run(folder)
    check_resumable(run)
    if run.settings.budget is not None:
        parse_budget(run.settings.budget)  # it may be edited
    designer = _given_again(run) or make_designer(language_model_of(run.settings), run)
    wall = choose_wall(run.settings.sandbox)
    with driver_scratch() as scratch:
        async with AsyncExitStack() as stack:
            dry_runner = await _dry_runner(stack, wall, run.settings, scratch)
            if dry_runner.description.fingerprint != run.description.fingerprint:
                raise EnvironmentLoadError(
                    f"the environment {run.description.environment!r} has changed since the run {run.name!r} began",
                    "its old and new attempts could not be compared: bring the old files back, or start a new search",
                )
            hardware = choose_hardware(run.settings.device, dry_runner.opened)
            hardware = await with_kernels(hardware, wall, run.settings, run.description, folder.parent, scratch)
            await _work(run, wall, hardware, dry_runner, designer, observer, resumed=True)
    return run


def _given_again(run: Run) -> Designer | None:
    """The designer of a run on a reward that a person gave, which the archive still has."""
    source = run.archive.fact(GIVEN_FACT)
    return None if source is None else GivenDesigner(source, "the run's own record")


async def _dry_runner(stack: AsyncExitStack, wall: Wall, settings: SearchSettings, scratch: Path) -> DryRunner:
    dry_runner = DryRunner(wall, settings.env, settings.task, scratch / "dry-runs", settings.dry_run_timeout)
    stack.push_async_callback(dry_runner.close)
    await dry_runner.start()
    return dry_runner


async def _work(
    run: Run,
    wall: Wall,
    hardware: Hardware,
    dry_runner: DryRunner,
    designer: Designer,
    observer: Observer,
    *,
    resumed: bool,
) -> None:
    with locked(run.folder):
        run.archive.set_facts({"status": RunStatus.RUNNING.value, "designer": designer.name, "wall": wall.name})
        stopwatch = observer = _Stopwatch(run, observer)
        observer(
            RunStarted(
                run_folder=run.folder,
                run_name=run.name,
                description=run.description,
                sentence=run.sentence,
                settings=run.settings,
                wall=wall.name,
                designer=designer.name,
                resumed=resumed,
            )
        )
        if not resumed and run.settings.budget is not None:
            observer(Notice(text=run.archive.fact(BUDGET_FACT)["text"]))
        if resumed and run.archive.fact("versions") != versions():
            text = "the run began with other versions of its packages: its scores may not be comparable (see report.md)"
            observer(Notice(text=text, level="warning"))
        _note_devices(run, hardware, observer)
        if isinstance(designer, OfflineDesigner):
            observer(Notice(text="the offline designer writes the rewards; --model openai/<name> asks an LLM instead"))
        for attempt in run.archive.attempts():
            if attempt.stage in ENDED:
                observer(AttemptEnded(attempt=attempt))
        status, message = RunStatus.FAILED, ""
        try:
            async with AsyncExitStack() as workers:
                await _search(run, wall, hardware, dry_runner, designer, stopwatch, workers)
            status = RunStatus.FINISHED
            SnapshotStore(run.folder).clear()
        except asyncio.CancelledError:
            status, message = RunStatus.STOPPED, f"go on with: {resume_command(run.folder)}"
            raise
        except EurekaError as error:
            message = str(error)
            raise
        finally:
            _end(run, status, message, stopwatch)


def _note_devices(run: Run, hardware: Hardware, observer: Observer) -> None:
    """Say what the run trains on and keep it. Where that is another kind of device than before, saved states are of no use."""
    workers = plan_capacity(run.settings, hardware.places).workers
    observer(Notice(text=hardware.sentence(workers)))
    devices = " and ".join(hardware.names)
    earlier: list[str] = run.archive.fact(DEVICES_FACT, [])
    if earlier and earlier[-1].startswith("cuda") != devices.startswith("cuda"):
        SnapshotStore(run.folder).clear()
        text = f"the run trained on {earlier[-1]} before: its scores may not be comparable, and trainings under way start over"
        observer(Notice(text=text, level="warning"))
    if earlier[-1:] != [devices]:
        run.archive.set_fact(DEVICES_FACT, [*earlier, devices])


class _Stopwatch:
    """Hands events on and adds the time since the last ended attempt to the run's, so that a kill loses little of it."""

    def __init__(self, run: Run, observer: Observer) -> None:
        self._run = run
        self._observer = observer
        self._since = time.monotonic()

    def seconds(self) -> float:
        """Wall time spent on the run up to now, over all its resumptions."""
        return self._run.seconds + time.monotonic() - self._since

    def add(self) -> None:
        """Add the time since the last call."""
        now = time.monotonic()
        self._run.add_seconds(now - self._since)
        self._since = now

    def __call__(self, event: Event) -> None:
        if isinstance(event, AttemptEnded | TrainingEnded):
            self.add()
        self._observer(event)


def _end(run: Run, status: RunStatus, message: str, observer: _Stopwatch) -> None:
    observer.add()  # before the report, which says how long it took
    run.archive.set_facts({"status": status.value, "message": message})
    shutil.rmtree(run.folder / WORKERS_FOLDER, ignore_errors=True)
    report = run_report(run)
    write_file(run.folder / REPORT_FILE, lambda draft: write_report(draft, report))
    observer(
        RunEnded(
            status=status, scores=report.scores, best=report.best, report_path=run.folder / REPORT_FILE, message=message
        )
    )


async def _search(
    run: Run,
    wall: Wall,
    hardware: Hardware,
    dry_runner: DryRunner,
    designer: Designer,
    observer: _Stopwatch,
    stack: AsyncExitStack,
) -> None:
    settings, description = run.settings, run.description
    capacity = plan_capacity(settings, hardware.places)
    scratch = run.folder / WORKERS_FOLDER
    shutil.rmtree(scratch, ignore_errors=True)  # of a run that was killed
    snapshots = SnapshotStore(run.folder)
    evaluator = Evaluator(wall, settings.env, description.task, scratch / "evaluator", most_workers=usable_cores())
    stack.push_async_callback(evaluator.close)

    def on_progress(job: str, points: Sequence[CurvePoint]) -> None:
        evaluator.warm_up()  # the trainings have started: the first policies come soon
        observer(TrainingProgress(job=job, points=tuple(points)))

    pool = TrainingPool(
        wall=wall,
        environment=settings.env,
        task=description.task,
        settings=training_part(settings),
        slots=capacity.slots,
        workers=capacity.workers,
        scratch_root=scratch,
        on_progress=on_progress,
        on_retry=lambda job, reason: observer(TrainingRetried(job=job, reason=reason)),
        on_resume=lambda job, points: observer(
            TrainingResumed(job=job, label=job.partition("@")[0], points=tuple(points))
        ),
        timeout_s=settings.training_timeout,
        snapshots=snapshots,
        snapshot_s=settings.snapshot_interval,
        devices=hardware.devices(capacity.workers),
    )
    stack.push_async_callback(pool.close)
    trials = TrialRunner(
        pool,
        evaluator,
        snapshots,
        settings.evaluation_episodes,
        description.success_fitness,
        observer,
        settings.scoring_episodes,
    )
    critic = Critic(description, dry_runner, novelty=settings.novelty, gate=settings.gate)
    attempts = AttemptRunner(run, designer, critic, trials, observer)
    budget_seconds = None if settings.budget is None else parse_budget(settings.budget).seconds
    deadline = None if budget_seconds is None else Deadline(run, budget_seconds, observer.seconds, observer)
    engine = SearchEngine(run, designer, attempts, strategy_of(settings), observer, deadline)
    cache = BaselineCache(run.folder.parent, description, settings, hardware.kind)
    final = FinalTrainings(run, trials, cache, observer, capacity.baseline_slots)
    try:
        async with asyncio.TaskGroup() as group:
            if settings.finalists and settings.baselines:
                group.create_task(final.baselines())
            group.create_task(_generations(engine, final, settings.finalists))
    except* EurekaError as errors:
        raise first_error(errors) from None
    if settings.finalists:
        final.scores()
    best = best_attempt(run)
    if best is not None:
        keep_best(run, best, run.archive.trainings())


async def _generations(engine: SearchEngine, final: FinalTrainings, finalists: int) -> None:
    trained = await engine.search()
    if finalists:
        await final.finalists(trained[:finalists])


def strategy_of(settings: SearchSettings) -> Strategy:
    """The strategy that the settings name."""
    return STRATEGIES[settings.strategy]()


def language_model_of(settings: SearchSettings) -> LanguageModel | None:
    """The model that the settings name, None for the offline designer. Raises SettingsError for one that cannot be had."""
    if settings.model == "offline":
        return None
    from eureka_agent.llm.registry import language_model

    return language_model(settings.model, settings.base_url)


def make_designer(model: LanguageModel | None, run: Run) -> Designer:
    """The designer that asks this model and keeps its replies in the run; the offline one where there is no model."""
    if model is None:
        return OfflineDesigner()
    from eureka_agent.designer.llm_designer import LanguageModelDesigner

    return LanguageModelDesigner(model, run.archive)
