"""The clock of a search: its wall time in advance, from the measured pace of trainings."""

from __future__ import annotations

import asyncio
import math
import platform
import shlex
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from eureka_agent import wording
from eureka_agent.analysis.parameter_prior import values_to_score
from eureka_agent.archive.cache import RecordCache, code_fingerprint
from eureka_agent.archive.run_folder import runs_folder, versions
from eureka_agent.base_record import Record
from eureka_agent.errors import EurekaError
from eureka_agent.fleet.devices import Hardware, kernels_for
from eureka_agent.fleet.fleet import Fleet
from eureka_agent.fleet.jobs import Population, Problem
from eureka_agent.fleet.ray_cluster import Cluster
from eureka_agent.invocation import command
from eureka_agent.journal.entries import Notice, Observer
from eureka_agent.records import CurvePoint, TaskDescription
from eureka_agent.rewards import baseline
from eureka_agent.sandbox.wall import Wall
from eureka_agent.search.models import Models
from eureka_agent.search.schedules import waves_of
from eureka_agent.search.seeing import AT_ONCE, COMPARISONS
from eureka_agent.settings import SearchSettings, schedule_of, training_part
from eureka_agent.training_counts import TrainingCounts

ROLLOUT_SHARE = 0.4
"""Seconds of an env step of an evaluation over those of a training (benchmarks/LOG.md)."""
VIDEO_SECONDS = 5.0
PROPOSAL_SECONDS, DRAFT_SECONDS = 0.05, 0.04
"""Design of a proposal, and of each further draft, without a model (benchmarks/LOG.md)."""
USUAL_TURNS = 2
"""Requests for a proposal of a designer with tools."""
REPLY_SECONDS = 20.0
"""Assumed latency of a model's reply. Models differ much."""


class Pace(Record):
    """Seconds of an update: `alone` in a worker, and `further` for each training beside it."""

    alone: float
    further: float
    start_seconds: float
    """Seconds from the workers' start to their first env steps."""
    start_of_each: float = 0.0
    """Seconds in which a training, or a pass of scores, starts a process of its own: a command."""
    measured: str
    """Date, ISO 8601."""


class Capacity(NamedTuple):
    """Training workers, and the slots of each."""

    workers: int
    slots: int


def plan_capacity(settings: SearchSettings, places: int) -> Capacity:
    """Slots for a generation and the baselines, on a worker for each of `places` cores or GPUs."""
    made = TrainingCounts.of(settings)
    beside = made.baselines
    if schedule_of(settings) == "steady":
        beside = max(beside, made.confirmations)
    wanted = max(made.candidates + beside, made.confirmations, made.finals, made.randomised)
    workers = min(settings.workers or places, wanted)
    return Capacity(workers, min(settings.slots, math.ceil(wanted / workers)))


@dataclass(frozen=True)
class SearchClock:
    """Wall times of searches of one task, by their settings."""

    description: TaskDescription
    pace: Pace
    places: int
    """Cores or GPUs for trainings."""
    baselines: Callable[[SearchSettings], int]
    """Trainings of baselines that card and cache lack."""
    before: float
    """Seconds until workers may start to train."""
    models: Models | None
    """Models that are asked; None where none is, or replies are played back."""

    def seconds(self, settings: SearchSettings) -> float:
        """Seconds of the whole search."""
        made = TrainingCounts.of(settings, baselines=self.baselines(settings))
        live = self.models
        size = made.candidates * min(1, settings.iterations)
        later = max(0, settings.iterations - 1)
        design, draft = (REPLY_SECONDS,) * 2 if live else (PROPOSAL_SECONDS, DRAFT_SECONDS)
        passes = size
        if live:
            waves = 1 if schedule_of(settings) == "steady" else waves_of(settings, size)
            passes = max(math.ceil(size / settings.concurrency), waves)
        turns = USUAL_TURNS if live and live.tools else 1  # once there is something to look at
        redesign = turns * design + draft * (settings.drafts_of_each - 1)
        first, generation = passes * design, self._group(settings, size)
        # the baselines begin before the first designs are there, and slow their trainings
        alone = self._group(settings, made.baselines)
        beside = max(0.0, 1.0 - first / alone) if alone else 0.0
        both = self._group(settings, size + made.baselines)
        seconds = first + beside * both + (1.0 - beside) * generation
        if schedule_of(settings) == "steady":  # each place goes on by itself, the best beside it
            seconds += later * (redesign + generation)
            again = self._group(settings, size + made.confirmations) - generation
        else:
            analysis = REPLY_SECONDS if live and live.analyst else 0.0
            seconds += later * (passes * redesign + analysis + generation)
            again = self._group(settings, made.confirmations)
        seconds += made.confirmed * again
        if live and settings.fitness == "judged":
            replies = math.ceil(COMPARISONS * settings.samples / AT_ONCE)
            seconds += (settings.iterations * replies + 1) * REPLY_SECONDS  # and its sub-goals
        # all seeds of the leader, then those of others, in as many rounds as their scores ask for
        others = max(0, made.likely_finals - settings.final_seeds)
        for count in (made.likely_finals - others, others, made.randomised):
            seconds += self._group(settings, count)
        if settings.randomise:  # scores for the prior, then over the safe ranges
            values = 1 + sum(len(values_to_score(each)) - 1 for each in self.description.parameters)
            policies = (1 + settings.randomise) * settings.seeds_of_randomised
            episodes = values * settings.scoring_episodes
            episodes += 2 * policies * settings.evaluation_episodes
            seconds += self._scores(settings, 2, episodes) + (REPLY_SECONDS if live else 0.0)
        video = VIDEO_SECONDS if settings.video else 0.0
        return self.before + self.pace.start_seconds + seconds + video

    def _group(self, settings: SearchSettings, trainings: int) -> float:
        """Seconds of trainings that begin together, in waves, and of the last wave's scores."""
        if trainings <= 0:
            return 0.0
        capacity = plan_capacity(settings, self.places)
        most = capacity.workers * capacity.slots
        waves = math.ceil(trainings / most) - 1
        last = trainings - waves * most
        side_by_side = waves * capacity.slots + math.ceil(last / capacity.workers)
        update = (waves + 1) * self.pace.alone + (side_by_side - waves - 1) * self.pace.further
        kept = settings.kept_policies if settings.kept_policies > 1 else 0
        episodes = kept * settings.scoring_episodes + settings.evaluation_episodes
        scores = self._scores(settings, 2 if kept else 1, last * episodes)
        return settings.updates * update + (waves + 1) * self.pace.start_of_each + scores

    def _scores(self, settings: SearchSettings, passes: int, episodes: int) -> float:
        """Seconds of the evaluator for episodes of full length."""
        further = self.pace.further / settings.num_envs
        update = passes * max(0.0, self.pace.alone - self.pace.further) + episodes * further
        steps = self.description.max_episode_length * ROLLOUT_SHARE
        return update / settings.horizon * steps + passes * self.pace.start_of_each


# ── the pace ──────────────────────────────────────────────────────────────────────────────────────

CACHE = "plans"
"""Folder of the records, beside the cached baselines."""
SETTINGS_OF_PACE = {"num_envs", "horizon", "hidden_sizes", "activation", "epochs", "minibatches"}
"""Settings of a training on which the seconds of an update depend."""
MEASURED_SECONDS = 2.5
"""Time over which the env steps of every training are counted. It begins with its first points."""
_MOST_TRAININGS, _MOST_SLOTS = 64, 8
"""Most trainings of a measurement, and most of them in one worker; two in a worker at least."""
_NEVER_ENDING_ENV_STEPS = 10**12
_ANY_REWARD = """def compute_reward({name}):
    size = {name}.reshape({name}.shape[0], -1).abs().sum(dim=-1)
    return size, {{"size": size}}
"""
"""Reward for a task without one. Its values do not matter here."""


class NotMeasuredError(EurekaError):
    """A pace that is not known, with no time left to measure it."""


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
    """The pace of such trainings, from the cache unless `anew`, or measured; `until`: the time
    after which no measurement begins. Raises NotMeasuredError after that, and EurekaError."""
    capacity = plan_capacity(settings, hardware.places)
    workers, slots = capacity.workers, capacity.slots
    # a GPU steps all slots at all times, a CPU those in use: a few of them tell the rest, and
    # searches of other sizes share them
    if hardware.kind == "cpu":
        slots = min(settings.slots, _MOST_SLOTS, max(2, _MOST_TRAININGS // workers))
    training = training_part(settings)
    key = {
        "environment": [description.environment_fingerprint, description.fingerprint],
        "task": description.task,
        "settings": training.model_dump(mode="json", include=SETTINGS_OF_PACE),
        "devices": hardware.names,
        "workers": workers,
        "slots": slots,
        "wall": wall.name,
        "cluster": cluster is not None,
        **this_machine(),
    }
    cache = RecordCache(runs_folder(), CACHE)
    if not anew and (known := cache.find(key, Pace)) is not None:
        return known
    if time.monotonic() > until:
        raise NotMeasuredError("no time is left to measure the pace of trainings")
    text = (
        f"measuring the pace of trainings in {description.environment!r} for"
        f" {MEASURED_SECONDS * min(2, slots):g} s, after the start of"
        f" {wording.plural(workers, 'worker')}"
    )
    observer(Notice(text=text))
    problem = Problem(description.environment, description.task)
    fingerprint = description.environment_fingerprint
    kernels = await kernels_for(
        hardware, wall, problem, training, fingerprint, runs_folder(), scratch
    )
    population = Population(
        problem,
        training,
        slots,
        settings.training_timeout,
        settings.snapshot_interval,
        kernels,
        settings.design != "reward",
    )
    devices, steps = hardware.devices(workers), workers * training.num_envs * training.horizon
    async with Fleet(wall, scratch / "pace", workers, devices, cluster=cluster) as fleet:
        speed, start = await measure_speed(fleet, population, description, workers * slots)
        many = alone = slots * steps / speed
        if slots > 1:
            speed, _ = await measure_speed(fleet, population, description, workers)
            alone = min(many, steps / speed)
    further, today = (many - alone) / max(1, slots - 1), datetime.now(UTC).date().isoformat()
    each = 0.0 if description.command is None else start
    pace = Pace(
        alone=alone, further=further, start_seconds=start, start_of_each=each, measured=today
    )
    cache.put(key, pace)
    return pace


async def measure_speed(
    fleet: Fleet, population: Population, description: TaskDescription, trainings: int
) -> tuple[float, float]:
    """Env steps per second of so many trainings together, and seconds until all have begun. Raises
    EurekaError if trainings cannot be started or end at once."""
    began, done = time.monotonic(), asyncio.Event()
    marks: dict[str, list[tuple[float, int]]] = {f"speed@{each}": [] for each in range(trainings)}

    def watch(job: str, points: Sequence[CurvePoint]) -> None:
        own = marks[job]
        if points:
            if own and points[-1].env_steps <= own[-1][1]:  # restarted after a death
                own.clear()
            own.append((time.monotonic(), points[-1].env_steps))
        if all(each and each[-1][0] - each[0][0] >= MEASURED_SECONDS for each in marks.values()):
            done.set()

    # designed rewards cost as much as a human's, and several times a sparse one
    reward = description.human_reward or description.sparse_reward
    if reward is None:
        reward = baseline(_ANY_REWARD.format(name=description.public_variables()[0].name))
    endless = population.settings.model_copy(update={"env_steps": _NEVER_ENDING_ENV_STEPS})
    async with fleet.trainings(replace(population, settings=endless), on_progress=watch) as pool:
        training = [
            asyncio.create_task(pool.train(job, reward, seed)) for seed, job in enumerate(marks)
        ]
        observed = asyncio.create_task(done.wait())
        try:
            await asyncio.wait({observed, *training}, return_when=asyncio.FIRST_COMPLETED)
            if not done.is_set():
                result = next(each for each in training if each.done()).result()
                check = command(shlex.join(["envs", "--check", description.environment]))
                raise EurekaError(
                    "the speed of trainings could not be measured:"
                    f" {result.failure_reason or 'a training ended at once'}",
                    f"`{check}` looks for defects of an environment; a --budget in env steps needs"
                    " no measurement",
                )
        finally:
            for task in (observed, *training):
                task.cancel()
            await asyncio.gather(observed, *training, return_exceptions=True)
    speed = sum((each[-1][1] - each[0][1]) / (each[-1][0] - each[0][0]) for each in marks.values())
    return speed, max(each[0][0] for each in marks.values()) - began
