"""The parts of a run, assembled: workers, critic, engine and final trainings."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from eureka_agent.archive.cache import BaselineCache
from eureka_agent.archive.run_folder import Run, cache_parent
from eureka_agent.archive.snapshots import SnapshotStore
from eureka_agent.critic.critic import Critic
from eureka_agent.errors import EurekaError, RunFolderError
from eureka_agent.fleet.film_maker import FilmMaker
from eureka_agent.fleet.fleet import Fleet
from eureka_agent.fleet.trainings import Trainings
from eureka_agent.journal.entries import Notice, Observer
from eureka_agent.journal.progress import (
    TrainingProgress,
    TrainingResumed,
    TrainingRetried,
    progress_of,
)
from eureka_agent.llm.interface import LanguageModelError
from eureka_agent.records import CurvePoint, Diagnosis
from eureka_agent.rewards import RewardSpecification
from eureka_agent.search.advisers import Advisers
from eureka_agent.search.attempts import AttemptRunner
from eureka_agent.search.briefing import Analyses, Briefing
from eureka_agent.search.clock import plan_capacity
from eureka_agent.search.context import ALONE, SearchContext
from eureka_agent.search.deadline import Deadline
from eureka_agent.search.engine import SearchEngine, first_error
from eureka_agent.search.filming import film_best, films_best
from eureka_agent.search.final import FinalTrainings, keep_best
from eureka_agent.search.judging import Judging
from eureka_agent.search.preparation import Prepared
from eureka_agent.search.randomisation import Randomising
from eureka_agent.search.recorder import Recorder
from eureka_agent.search.schedules import Asks
from eureka_agent.search.seeing import SeeingAnalyst
from eureka_agent.search.strategies import STRATEGIES
from eureka_agent.search.strategies.interface import Strategy
from eureka_agent.search.summary import best_attempt
from eureka_agent.search.trial import TrialRunner
from eureka_agent.settings import SearchSettings, strategy_name

SAVING_SECONDS = 5.0
"""Time for saving the running trainings when a run is stopped."""


async def search(
    run: Run,
    ready: Prepared,
    fleet: Fleet,
    advisers: Advisers,
    deadline: Deadline,
    observer: Recorder,
    person: Asks | None = None,
    context: SearchContext = ALONE,
) -> None:
    """Run a search on a fleet: its generations, its final trainings, and the files of its best
    attempt. With a `person` there are generations as long as they are wanted, and final
    trainings if they are."""
    settings, description = run.settings, run.description
    snapshots = SnapshotStore(run.folder)
    slots = plan_capacity(settings, ready.hardware.places).slots
    # in company of other searches all slots are filled
    population = ready.population(slots if context.machine is None else settings.slots)

    def on_progress(job: str, points: Sequence[CurvePoint]) -> None:
        evaluator.warm_up()  # policies to score follow soon
        observer(TrainingProgress(job=job, points=progress_of(tuple(points))))

    def on_resume(job: str, points: Sequence[CurvePoint]) -> None:
        observed = progress_of(tuple(points))
        observer(TrainingResumed(job=job, label=job.partition("@")[0], points=observed))

    async with (
        fleet.evaluator(population.problem) as evaluator,
        fleet.film_maker(population.problem) as maker,
        fleet.trainings(
            population,
            snapshots,
            on_progress,
            lambda job, reason: observer(TrainingRetried(job=job, reason=reason)),
            on_resume,
            context.share,
        ) as trainings,
    ):
        trials = TrialRunner(
            trainings,
            evaluator,
            snapshots,
            settings.evaluation_episodes,
            description.success_fitness,
            observer,
            settings.scoring_episodes,
        )
        engine, final = _engine(
            run, ready, advisers, trials, deadline, observer, person, maker, context
        )
        films = person is None and films_best(settings)
        with keeping_best(run), first_error():
            randomising = Randomising(run, trials, advisers.distributions, observer)
            work = (
                _all_trainings(engine, final, settings, randomising, maker if films else None)
                if person is None
                else _refined(engine, final, settings, person, randomising)
            )
            await saving_when_stopped(work, trainings, observer)
        if settings.finalists and (person is None or person.finals):
            final.scores()
        if films and (reason := await film_best(run, maker)):
            observer(Notice(text=reason))


def _engine(
    run: Run,
    ready: Prepared,
    advisers: Advisers,
    trials: TrialRunner,
    deadline: Deadline,
    observer: Recorder,
    person: Asks | None,
    maker: FilmMaker,
    context: SearchContext,
) -> tuple[SearchEngine, FinalTrainings]:
    settings, description = run.settings, run.description
    critic = Critic(
        description,
        ready.dry_runner,
        novelty=settings.novelty,
        reviewer=advisers.reviewer,
        review_all=advisers.review_all,
    )
    attempts = AttemptRunner(run, advisers.designer, critic, trials, observer)
    analyst: Analyses | None = None
    if advisers.analyst is not None:
        analyst = advisers.analyst
        if settings.analyst_sees:
            analyst = SeeingAnalyst(advisers.analyst, run, maker, observer)
        analyst = AnalystIfReachable(analyst, observer)
    briefing = Briefing(
        run,
        strategy_of(settings),
        observer,
        advisers.models,
        analyst,
        refining=strategy_of(settings, refined=True),
    )
    cache = BaselineCache(cache_parent(run.folder), description, settings, ready.hardware.kind)
    final = FinalTrainings(run, trials, cache, observer)
    known = final.known if settings.trains_baselines else None
    engine = SearchEngine(
        run,
        advisers.designer,
        attempts,
        briefing,
        observer,
        deadline,
        advisers.spent,
        known,
        person,
        None if advisers.judge is None else Judging(advisers.judge, run, maker, observer),
        context.refuses,
    )
    return engine, final


@contextmanager
def keeping_best(run: Run) -> Iterator[None]:
    """Fill `best/` after the block, even if that fails, so that the run folder has what there
    is."""
    try:
        yield
    except EurekaError:
        with suppress(RunFolderError):
            _keep_best(run)
        raise
    _keep_best(run)


def _keep_best(run: Run) -> None:
    best = best_attempt(run)
    if best is not None:
        keep_best(run, best, run.archive.trainings())


async def saving_when_stopped(
    work: Coroutine[Any, Any, None], trainings: Trainings, observer: Observer
) -> None:
    """Await the work. On the first cancellation, save the running trainings before they end; on a
    second one, end at once."""
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


async def _all_trainings(
    engine: SearchEngine,
    final: FinalTrainings,
    settings: SearchSettings,
    randomising: Randomising,
    maker: FilmMaker | None = None,
) -> None:
    """All trainings of a search. `maker`: what films its best attempt afterwards."""
    async with asyncio.TaskGroup() as group:
        if settings.trains_baselines:
            group.create_task(final.baselines())
        if not settings.iterations:
            return
        trained = await engine.search()
        if maker is not None:
            maker.warm_up()
        if settings.finalists:
            await final.finalists(trained)
    await randomising.run()


async def _refined(
    engine: SearchEngine,
    final: FinalTrainings,
    settings: SearchSettings,
    person: Asks,
    randomising: Randomising,
) -> None:
    trained = await engine.search()
    if not person.finals or not settings.finalists:
        return
    async with asyncio.TaskGroup() as group:
        if settings.trains_baselines:
            group.create_task(final.baselines())
        await final.finalists(trained)
    await randomising.run()


class AnalystIfReachable:
    """An analyst that gives no text when its model cannot be asked."""

    def __init__(self, analyst: Analyses, observer: Observer) -> None:
        self._analyst = analyst
        self._observer = observer

    async def analyse(self, attempt: str, reward: RewardSpecification, diagnosis: Diagnosis) -> str:
        """The analysis of an attempt's training; empty if the model cannot be asked."""
        try:
            return await self._analyst.analyse(attempt, reward, diagnosis)
        except LanguageModelError as error:
            text = f"the designer is told of {attempt} without an analysis: {error.message}"
            self._observer(Notice(text=text, level="warning"))
            return ""


def strategy_of(settings: SearchSettings, *, refined: bool = False) -> Strategy:
    """The strategy of a search. `refined`: of one to which a person has said something."""
    return STRATEGIES[strategy_name(settings, refined=refined)]()
