"""The pieces of a run's search, assembled and run."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager, suppress
from functools import partial
from typing import Any

from eureka_agent.archive.cache import BaselineCache
from eureka_agent.archive.run_folder import Run, cache_parent
from eureka_agent.archive.safe_files import inside
from eureka_agent.archive.snapshots import SnapshotStore
from eureka_agent.critic.critic import Critic
from eureka_agent.errors import EurekaError, RunFolderError
from eureka_agent.fleet.fleet import Trainings
from eureka_agent.fleet.warm_worker import FilmMaker
from eureka_agent.journal.entries import Notice, Observer
from eureka_agent.journal.progress import (
    TrainingProgress,
    TrainingResumed,
    TrainingRetried,
    progress_of,
)
from eureka_agent.records import CurvePoint
from eureka_agent.report.curve_log import CurveLog
from eureka_agent.search.advisers import Advisers, advisers_of
from eureka_agent.search.asking import RunTools, bench_of
from eureka_agent.search.attempts import AttemptRunner
from eureka_agent.search.briefing import Briefing
from eureka_agent.search.budget import time_limit
from eureka_agent.search.clock import plan_capacity
from eureka_agent.search.deadline import Deadline, SearchContext
from eureka_agent.search.filming import film_best, films_best
from eureka_agent.search.final import FinalTrainings, keep_best
from eureka_agent.search.labelling import Labelling
from eureka_agent.search.preparation import Preparation
from eureka_agent.search.randomisation import Randomising
from eureka_agent.search.recorder import WORKERS_FOLDER, Recorder
from eureka_agent.search.refinement import Person, Refinement
from eureka_agent.search.search import Search, first_error
from eureka_agent.search.seeing import Judging, RunAnalyst
from eureka_agent.search.strategies import strategy_of
from eureka_agent.search.summary import best_attempt
from eureka_agent.search.trial import TrialRunner

SAVING_SECONDS = 5.0
"""Time for saving the running trainings when a run is stopped."""


async def run_assembled(
    run: Run, ready: Preparation, recorder: Recorder, context: SearchContext, person: Person | None
) -> None:
    """Assemble the pieces of a run's search and run it, up to `best/` and the video."""
    settings = run.settings
    deadline = Deadline(run, time_limit(settings), recorder.seconds, recorder, context.time_limit)
    async with AsyncExitStack() as stack:
        if context.machine is not None:
            fleet = context.machine.fleet(ready.hardware)
        else:
            scratch = inside(run.folder, WORKERS_FOLDER)
            shutil.rmtree(scratch, ignore_errors=True)  # of a run that was killed
            fleet = await stack.enter_async_context(ready.new_fleet(scratch))
        slots = plan_capacity(settings, ready.hardware.places).slots
        # in company of other searches all slots are filled
        population = ready.population(slots if context.machine is None else settings.slots)
        evaluator = await stack.enter_async_context(fleet.evaluator(population.problem))
        maker = await stack.enter_async_context(fleet.film_maker(population.problem))
        tools = None
        if ready.models is not None and ready.models.tools:
            sees = maker if settings.analyst_sees else None
            drafts = Critic(
                run.description,
                ready.dry_runner,
                novelty=settings.novelty,
                design=settings.design,
            )
            tools = RunTools(bench_of(run, ready.dry_runner, evaluator, drafts, sees), recorder)
        about = deadline.is_up, recorder, context, tools
        advisers = advisers_of(ready.models, ready.given, run, *about)
        ask = None
        if person is not None:
            assert advisers.reader is not None  # `refine` refuses a reward of one's own
            refinement = Refinement(run, ready, recorder, advisers.reader)
            stack.push_async_callback(refinement.clips.close)
            ask = partial(person, refinement)
        stack.push_async_callback(advisers.finish, recorder)
        snapshots = SnapshotStore(run.folder)

        def on_progress(job: str, points: Sequence[CurvePoint]) -> None:
            evaluator.warm_up()  # policies to score follow soon
            recorder(TrainingProgress(job=job, points=progress_of(tuple(points))))

        def on_resume(job: str, points: Sequence[CurvePoint]) -> None:
            observed = progress_of(tuple(points))
            recorder(TrainingResumed(job=job, label=job.partition("@")[0], points=observed))

        labelling = None
        if settings.rewards == "labels":
            assert advisers.labeller is not None  # the settings are refused without a model
            labelling = Labelling(advisers.labeller, run, recorder)
        trainings = await stack.enter_async_context(
            fleet.trainings(
                population,
                snapshots,
                on_progress,
                lambda job, reason: recorder(TrainingRetried(job=job, reason=reason)),
                on_resume,
                context.share,
                labelling,
            )
        )
        if labelling is not None:
            labelling.begin(trainings.give_labels)
            stack.push_async_callback(labelling.close)
        log = CurveLog(settings.log, run.folder, recorder)
        stack.push_async_callback(log.close)
        trials = TrialRunner(
            trainings,
            evaluator,
            snapshots,
            settings.evaluation_episodes,
            run.description.success_fitness,
            recorder,
            settings.scoring_episodes,
            log,
        )
        critic = Critic(
            run.description,
            ready.dry_runner,
            novelty=settings.novelty,
            reviewer=advisers.reviewer,
            review_all=advisers.review_all,
            design=settings.design,
        )
        cache = BaselineCache(
            cache_parent(run.folder), run.description, settings, ready.hardware.kind
        )
        search = assembled(run, recorder, advisers, critic, trials, deadline, cache, maker)
        search.ask = ask
        films = ask is None and films_best(settings)
        if films:
            search.warm_up = maker.warm_up
        with keeping_best(run), first_error():
            await saving_when_stopped(search.all_trainings(), trainings, recorder)
        if labelling is not None:  # before scores and video, which wait for no labels
            await labelling.end()
        if settings.finalists and (ask is None or run.archive.state.decision == "finish"):
            search.finals.scores()
        if films and (reason := await film_best(run, maker)):
            recorder(Notice(text=reason))


def assembled(
    run: Run,
    recorder: Recorder,
    advisers: Advisers,
    critic: Critic,
    trials: TrialRunner,
    deadline: Deadline,
    cache: BaselineCache,
    maker: FilmMaker,
) -> Search:
    """The pieces of a search. `maker` draws what its models see."""
    settings = run.settings
    analyst = judging = None
    if advisers.analyst is not None:
        seen = maker if settings.analyst_sees else None
        analyst = RunAnalyst(advisers.analyst, run, seen, recorder)
    if advisers.judge is not None:
        judging = Judging(advisers.judge, run, maker, recorder)
    attempts = AttemptRunner(run, advisers.designer, critic, trials, recorder)
    return Search(
        run,
        recorder,
        advisers,
        attempts,
        Briefing(
            run,
            strategy_of(settings),
            recorder,
            advisers.models,
            analyst,
            refining=strategy_of(settings, refined=True),
        ),
        FinalTrainings(run, trials, cache, recorder),
        Randomising(run, attempts.trainer, trials, advisers.distributions, recorder),
        deadline,
        judging,
    )


@contextmanager
def keeping_best(run: Run) -> Iterator[None]:
    """Fill `best/` after the block, even if that fails: the run folder has what there is."""

    def keep() -> None:
        if (best := best_attempt(run)) is not None:
            keep_best(run, best, run.archive.trainings())

    try:
        yield
    except EurekaError:
        with suppress(RunFolderError):
            keep()
        raise
    keep()


async def saving_when_stopped(
    work: Coroutine[Any, Any, None], trainings: Trainings, observer: Observer
) -> None:
    """Await the work. A first cancellation saves the trainings, a second one ends at once."""
    task = asyncio.create_task(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        if trainings.busy:
            observer(Notice(text="saving the trainings under way; Ctrl-C again leaves without"))
            await trainings.save(SAVING_SECONDS)
        raise
    finally:
        task.cancel()
        await asyncio.wait({task})
        if not task.cancelled():  # it failed in the moment of its cancellation, which is raised
            task.exception()
