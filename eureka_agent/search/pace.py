"""Pace of trainings on this machine: seconds of an update, by the number of trainings that share a
worker."""

from __future__ import annotations

from eureka_agent.base_record import Record
from eureka_agent.fleet.fleet import Fleet
from eureka_agent.fleet.jobs import Population
from eureka_agent.records import TaskDescription
from eureka_agent.search.budget_plan import Speed
from eureka_agent.search.speed import measure_speed
from eureka_agent.settings import TrainingSettings

SETTINGS_OF_PACE = frozenset(
    {"num_envs", "horizon", "hidden_sizes", "activation", "epochs", "minibatches"}
)
"""Settings of a training on which the seconds of an update depend."""


class Pace(Record):
    """Seconds of an update: `alone`, and `further` for each training beside it.

    Trainings in one worker share a simulator batch, so eight take far less than eight times as
    long.
    """

    workers: int
    """Workers that trained at the same time."""
    alone: float
    further: float
    start_seconds: float
    """Seconds from the workers' start to their first env steps."""
    measured: str
    """Date, ISO 8601."""

    def update_seconds(self, trainings: int) -> float:
        """Seconds of an update of this many trainings in one worker."""
        return self.alone + (trainings - 1) * self.further

    def speed(self, settings: TrainingSettings, trainings: int) -> Speed:
        """The speed of a worker with this many trainings."""
        env_steps = trainings * settings.num_envs * settings.horizon
        return Speed(self.workers, env_steps / self.update_seconds(trainings), self.start_seconds)


async def measure_pace(
    fleet: Fleet,
    population: Population,
    description: TaskDescription,
    workers: int,
    *,
    measured: str,
) -> Pace:
    """Measure full workers, then workers with one training each. Raises EurekaError if trainings
    cannot be started or end at once."""
    settings, slots = population.settings, population.slots
    full = await measure_speed(fleet, population, description, workers, workers * slots)
    many = slots * settings.num_envs * settings.horizon / full.steps_per_second
    if slots == 1:
        alone = many
    else:
        single = await measure_speed(fleet, population, description, workers, workers)
        alone = min(many, settings.num_envs * settings.horizon / single.steps_per_second)
    return Pace(
        workers=workers,
        alone=alone,
        further=(many - alone) / max(1, slots - 1),
        start_seconds=full.start_seconds,
        measured=measured,
    )
