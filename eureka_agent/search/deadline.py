"""The deadline of a run, and what it shares with other searches of its process."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from eureka_agent import wording
from eureka_agent.archive.run_folder import Run
from eureka_agent.fleet.fleet import Machine
from eureka_agent.fleet.jobs import Share
from eureka_agent.journal.entries import DeadlineReached, Notice, Observer
from eureka_agent.llm.breaker import Breakers
from eureka_agent.llm.budget import Budget
from eureka_agent.records import BASELINES, Stage
from eureka_agent.search.budget import TimeLimit
from eureka_agent.search.summary import run_cost
from eureka_agent.training_counts import TrainingCounts


class Deadline:
    """Decides before every generation whether it would end in time, and records the decision."""

    def __init__(
        self,
        run: Run,
        own: TimeLimit | None,
        used_seconds: Callable[[], float],
        observer: Observer,
        shared: Callable[[], TimeLimit | None] = lambda: None,
    ) -> None:
        """`shared`: the limit of all searches from now on, which may change while they run."""
        self._run, self._own, self._observer = run, own, observer
        self._used_seconds, self._shared = used_seconds, shared

    @property
    def limit(self) -> TimeLimit | None:
        """The tighter one of both limits now, in seconds of the run; None without any."""
        shared = self._shared()
        if shared is not None:
            shared = replace(shared, seconds=self._used_seconds() + shared.seconds)
        found = filter(None, (self._own, shared))
        return min(found, key=lambda each: each.seconds, default=None)

    def seconds_left(self) -> float | None:
        """Seconds until the limit, at least 0; None without one."""
        limit = self.limit
        return None if limit is None else max(0.0, limit.seconds - self._used_seconds())

    def is_up(self) -> str:
        """The reason to ask no model any more; empty while there is time."""
        used, limit = self._used_seconds(), self.limit
        if limit is None or not limit.stops_models or used < limit.seconds:
            return ""
        return f"{wording.duration(used)} have passed of {limit.text}"

    def allows(self, iteration: int) -> bool:
        """True if this generation may begin or go on. The first one always may."""
        archive, settings, limit = self._run.archive, self._run.settings, self.limit
        if limit is None:
            return True
        reached = archive.state.deadline_reached
        if reached is not None and reached.limit == limit.text:
            return iteration < reached.iterations
        if iteration == 0 or any(attempt.iteration >= iteration for attempt in archive.attempts()):
            return True
        used, needed = self._used_seconds(), self._seconds_needed(iteration)
        if used + needed <= limit.seconds:
            return True
        text = (
            f"stopped after {iteration} of {wording.plural(settings.iterations, 'generation')}: of"
            f" the budget of {limit.text}, {wording.duration(used)} had passed, and another"
            " generation with the final trainings would have taken about"
            f" {wording.duration(needed)}"
        )
        self._observer(DeadlineReached(limit=limit.text, iterations=iteration, text=text))
        self._observer(Notice(text=text, level="warning"))
        return False

    def _seconds_needed(self, iteration: int) -> float:
        """Wall time of another generation, the finals and the missing baselines, at this speed."""
        archive, settings = self._run.archive, self._run.settings
        attempts, trainings = archive.attempts(), archive.trainings()
        whole, known = settings.steps_of_a_training, tuple(archive.state.by_id.values())
        running = [each for each in attempts if each.stage is Stage.ACCEPTED]
        behind = sum(each.rungs[-1].env_steps for each in running if each.rungs)
        ahead = len(running) * whole - behind
        done = behind + run_cost(known, trainings).env_steps
        generation = (behind + ahead + run_cost(attempts, ()).env_steps) / iteration
        trained = sum(attempt.stage is Stage.TRAINED for attempt in attempts)
        baselines = len(self._run.description.baselines) * settings.seeds_of_baselines
        baselines -= sum(training.name in BASELINES for training in trainings)
        last = TrainingCounts.of(
            settings, candidates=trained + settings.samples, baselines=baselines
        ).outside_generations
        seconds = self._used_seconds() - archive.state.began.seconds_before
        return (generation + ahead + last * whole) * seconds / done if done else 0.0


@dataclass(frozen=True)
class SearchContext:
    """Parts and limits that a search shares with others. The default: it has the machine alone."""

    machine: Machine | None = None
    """Workers of all searches; None: it starts its own."""
    share: Share = field(default_factory=Share)
    """Its share of the trainings."""
    budget: Budget | None = None
    """Spending on models by all searches together; None: unlimited."""
    before_request: Callable[[], Awaitable[object]] | None = None
    """Waits as long as no model is to be asked; None: never."""
    time_limit: Callable[[], TimeLimit | None] = lambda: None
    """Wall time from now until all searches end, if that is limited."""
    breakers: Breakers | None = None
    """Which models' servers are out; None: its own."""
    folder: Path | None = None
    """Folder of a new run; None: one in the runs folder, named by the time."""


ALONE = SearchContext()
