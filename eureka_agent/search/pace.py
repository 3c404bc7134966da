"""Pace of trainings on this machine: seconds of an update, by the number of trainings that share a
worker. It is kept beside the runs."""

from __future__ import annotations

import math
import platform
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from eureka_agent import wording
from eureka_agent.archive.cache import RecordCache, code_fingerprint
from eureka_agent.archive.run_folder import runs_folder, versions
from eureka_agent.base_record import Record
from eureka_agent.cluster.ray_cluster import Cluster
from eureka_agent.errors import EurekaError
from eureka_agent.fleet.devices import Hardware
from eureka_agent.fleet.fleet import Fleet
from eureka_agent.fleet.jobs import Population
from eureka_agent.fleet.kernels import kernels_for
from eureka_agent.fleet.problem import Problem
from eureka_agent.journal.entries import Notice, Observer
from eureka_agent.records import TaskDescription
from eureka_agent.sandbox.wall import Wall
from eureka_agent.search.budget_plan import PREFERRED_SAMPLES
from eureka_agent.search.capacity import plan_capacity
from eureka_agent.search.speed import MEASURED_SECONDS, measure_speed
from eureka_agent.settings import SearchSettings, training_part

CACHE = "plans"
"""Folder of the records, beside the cached baselines."""
_MOST_TRAININGS = 64
"""Most trainings of a measurement, each of which has a process; two in a worker at least."""
SETTINGS_OF_PACE = frozenset(
    {"num_envs", "horizon", "hidden_sizes", "activation", "epochs", "minibatches"}
)
"""Settings of a training on which the seconds of an update depend."""


class NotMeasuredError(EurekaError):
    """A pace that is not known, with no time left to measure it."""


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


def this_machine() -> dict[str, Any]:
    """Part of the records' keys."""
    return {"machine": platform.node(), "versions": versions(), "code": code_fingerprint()}


async def pace_of(
    settings: SearchSettings,
    description: TaskDescription,
    hardware: Hardware,
    wall: Wall,
    scratch: Path,
    observer: Observer,
    cluster: Cluster | None = None,
    *,
    anew: bool = False,
    until: float = math.inf,
) -> Pace:
    """The pace of such trainings, from the cache unless `anew`, or measured, of which `observer`
    gets a notice. `until`: time (`time.monotonic`) after which no measurement begins.

    Raises NotMeasuredError after that, another EurekaError if trainings cannot be started.
    """
    capacity = plan_capacity(settings, hardware.places)
    # a GPU steps all slots at all times, a CPU those in use: a few of them tell the rest, and
    # searches of other sizes share them
    slots = capacity.slots
    if hardware.kind == "cpu":
        few = max(2, _MOST_TRAININGS // capacity.workers)
        slots = min(settings.slots, PREFERRED_SAMPLES, few)
    training = training_part(settings)
    key = {
        "environment": [description.environment_fingerprint, description.fingerprint],
        "task": description.task,
        "settings": training.model_dump(mode="json", include=set(SETTINGS_OF_PACE)),
        "devices": hardware.names,
        "workers": capacity.workers,
        "slots": slots,
        "wall": wall.name,
        "cluster": cluster is not None,
        **this_machine(),
    }
    cache = RecordCache(runs_folder(), CACHE)
    known = None if anew else cache.find(key, Pace)
    if known is not None:
        return known
    if time.monotonic() > until:
        raise NotMeasuredError("no time is left to measure the pace of trainings")
    seconds = MEASURED_SECONDS * min(2, slots)
    text = (
        f"measuring the pace of trainings in {description.environment!r} for {seconds:g} s, after"
        f" the start of {wording.plural(capacity.workers, 'worker')}"
    )
    observer(Notice(text=text))
    problem = Problem(description.environment, description.task)
    fingerprint = description.environment_fingerprint
    kernels = await kernels_for(
        hardware, wall, problem, training, fingerprint, runs_folder(), scratch
    )
    population = Population(
        problem, training, slots, settings.training_timeout, settings.snapshot_interval, kernels
    )
    devices = hardware.devices(capacity.workers)
    async with Fleet(wall, scratch / "pace", capacity.workers, devices, cluster=cluster) as fleet:
        pace = await measure_pace(
            fleet,
            population,
            description,
            capacity.workers,
            measured=datetime.now(UTC).date().isoformat(),
        )
    cache.put(key, pace)
    return pace


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
