"""The clock of a search: its wall time in advance, from the measured pace of trainings."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from eureka_agent.analysis.parameter_prior import values_to_score
from eureka_agent.base_record import Record
from eureka_agent.records import TaskDescription
from eureka_agent.search.models import Models
from eureka_agent.search.seeing import AT_ONCE, COMPARISONS
from eureka_agent.settings import SearchSettings, schedule_of
from eureka_agent.training_counts import TrainingCounts

ROLLOUT_SHARE = 0.4
"""Seconds of an env step of an evaluation over those of a training (benchmarks/LOG.md)."""
VIDEO_SECONDS = 5.0
PROPOSAL_SECONDS, DRAFT_SECONDS = 0.05, 0.04
"""Design of a proposal, and of each further draft, without a model (benchmarks/LOG.md)."""
REPLY_SECONDS = 20.0
"""Assumed latency of a model's reply. Models differ much."""


class Pace(Record):
    """Seconds of an update: `alone` in a worker, and `further` for each training beside it, which
    shares the simulator's batch."""

    alone: float
    further: float
    start_seconds: float
    """Seconds from the workers' start to their first env steps."""
    measured: str
    """Date, ISO 8601."""


class Capacity(NamedTuple):
    """Training workers, and the slots of each."""

    workers: int
    slots: int


def plan_capacity(settings: SearchSettings, places: int) -> Capacity:
    """Slots for a generation and the baselines, on at most one worker for each of `places` cores or
    GPUs. A steady search repeats its best attempts beside its candidates."""
    made = TrainingCounts.of(settings)
    beside = made.baselines
    if schedule_of(settings) == "steady":
        beside = max(beside, made.confirmations)
    wanted = max(made.candidates + beside, made.confirmations, made.finals, made.randomised)
    workers = min(settings.workers or places, wanted)
    return Capacity(workers, min(settings.slots, math.ceil(wanted / workers)))


@dataclass(frozen=True)
class SearchClock:
    """Wall times of searches of one task, by their settings: groups of trainings, one after the
    other, and the waits between them."""

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
        passes = math.ceil(size / settings.concurrency) if live else size
        redesign = design + draft * (settings.drafts_of_each - 1)
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
            seconds += settings.iterations * replies * REPLY_SECONDS
        # all seeds of the leader and one of each other finalist, then the rest
        begun = min(settings.final_seeds + settings.finalists - 1, made.likely_finals)
        for count in (begun, made.likely_finals - begun, made.randomised):
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
        """Seconds of trainings that begin together, in waves where slots are fewer, and of the last
        wave's scores: the kept policies in one pass, the best of them in another."""
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
        return settings.updates * update + self._scores(settings, 2 if kept else 1, last * episodes)

    def _scores(self, settings: SearchSettings, passes: int, episodes: int) -> float:
        """Seconds of the evaluator for episodes of full length."""
        further = self.pace.further / settings.num_envs
        update = passes * max(0.0, self.pace.alone - self.pace.further) + episodes * further
        steps = self.description.max_episode_length * ROLLOUT_SHARE
        return update / settings.horizon * steps
