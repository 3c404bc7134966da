"""Wall time of a search before it starts: its schedule, played through on the measured pace."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from eureka_agent.analysis.parameter_prior import values_to_score
from eureka_agent.records import TaskDescription
from eureka_agent.search.capacity import plan_capacity
from eureka_agent.search.judging import AT_ONCE, COMPARISONS
from eureka_agent.search.pace import Pace
from eureka_agent.search.played_machine import Kind, PlayedMachine, Scoring
from eureka_agent.settings import SearchSettings, schedule_of
from eureka_agent.training_counts import TrainingCounts, is_confirmed

ROLLOUT_SHARE = 0.4
"""Seconds of an evaluation's env step, in those of a training's, which also updates. It gives the
waits for the scores of 18 trainings on cartpole, quadcopter and hopper (benchmarks/LOG.md)."""
VIDEO_SECONDS = 5.0
"""Video of the best policy at the end, its worker included (benchmarks/LOG.md)."""
PROPOSAL_SECONDS = 0.05
"""Design and dry run of a proposal without a model (benchmarks/results/where_time_goes.json)."""
DRAFT_SECONDS = 0.04
"""Design and credit of a draft without a model (benchmarks/LOG.md)."""
REPLY_SECONDS = 20.0
"""Assumed latency of a model's reply, as in benchmarks/model_latency.py. Models differ much."""
_MOST_PLAYED = 4
"""Generations that are played through. Each further one takes as long as the last of them."""


@dataclass(frozen=True)
class Latency:
    """Seconds that a search waits for its designer and other models."""

    at_once: int
    """Proposals that are designed at the same time."""
    design: float
    """Until a proposal is there."""
    analysis: float
    """Before a later generation is designed; a steady search seldom waits for one."""
    judging: float
    """After a generation."""
    drafts: float = 0.0
    """Further drafts of a proposal, from the second generation on."""

    @classmethod
    def of(cls, settings: SearchSettings, *, designs: bool, analyses: bool) -> Latency:
        """Latency where a model `designs` and another one `analyses`."""
        further = settings.drafts_of_each - 1
        if not designs:
            return cls(1, PROPOSAL_SECONDS, 0.0, 0.0, DRAFT_SECONDS * further)
        judged = settings.fitness == "judged"
        passes = math.ceil(COMPARISONS * settings.samples / AT_ONCE) if judged else 0
        analysis = REPLY_SECONDS if analyses else 0.0
        drafts = REPLY_SECONDS * further
        return cls(settings.concurrency, REPLY_SECONDS, analysis, REPLY_SECONDS * passes, drafts)


@dataclass(frozen=True)
class SearchTimes:
    """Wall times of searches of one task, by their settings."""

    description: TaskDescription
    pace: Pace
    places: int
    """Cores or GPUs for trainings."""
    baselines: Callable[[SearchSettings], int]
    """Trainings of baselines that the cache lacks."""
    before: float
    """Seconds until workers may start to train."""
    designs: bool
    """True where a model designs."""
    analyses: bool

    def seconds(self, settings: SearchSettings) -> float:
        """Seconds of the whole search."""
        before = self.before
        if settings.randomise:
            before += scores_of_randomised(settings, self.description, self.pace)
            before += REPLY_SECONDS if self.designs else 0.0
        return before + wall_time(
            settings,
            TrainingCounts.of(settings, baselines=self.baselines(settings)),
            self.pace,
            plan_capacity(settings, self.places).slots,
            scoring_of(settings, self.description, self.pace),
            Latency.of(settings, designs=self.designs, analyses=self.analyses),
        )


def scoring_of(settings: SearchSettings, description: TaskDescription, pace: Pace) -> Scoring:
    """Seconds of a training's scores, in episodes of full length: its kept policies are scored in
    one pass, then the best of them in another."""
    kept = settings.kept_policies if settings.kept_policies > 1 else 0
    episodes = kept * settings.scoring_episodes + settings.evaluation_episodes
    any_pass, row = _pass_seconds(settings, description, pace)
    return Scoring(any_pass * (2 if kept else 1), row * episodes)


def scores_of_randomised(
    settings: SearchSettings, description: TaskDescription, pace: Pace
) -> float:
    """Seconds of the scores that distributions of parameters need besides those of their trainings:
    a pass for the prior, and one for the policies over the safe ranges."""
    values = 1 + sum(len(values_to_score(each)) - 1 for each in description.parameters)
    policies = (1 + settings.randomise) * settings.seeds_of_randomised
    episodes = values * settings.scoring_episodes + 2 * policies * settings.evaluation_episodes
    any_pass, row = _pass_seconds(settings, description, pace)
    return 2 * any_pass + row * episodes


def _pass_seconds(
    settings: SearchSettings, description: TaskDescription, pace: Pace
) -> tuple[float, float]:
    """Seconds of any pass of the evaluator, and of each episode in it."""
    steps = description.max_episode_length * ROLLOUT_SHARE
    any_pass = max(0.0, pace.alone - pace.further) / settings.horizon * steps
    return any_pass, pace.further / (settings.horizon * settings.num_envs) * steps


def wall_time(
    settings: SearchSettings,
    counts: TrainingCounts,
    pace: Pace,
    slots: int,
    scoring: Scoring,
    latency: Latency,
) -> float:
    """Seconds from the workers' start to the end of the search."""

    def played(generations: int) -> float:
        machine = PlayedMachine(pace, slots, settings.updates, scoring)
        machine.submit(Kind.BASELINE, counts.baselines)
        play = _play_steady if schedule_of(settings) == "steady" else _play_generations
        sized = settings.model_copy(update={"iterations": generations})
        play(machine, sized, counts, latency)
        machine.finish(*Kind)
        # all seeds of the leader and one of each other finalist, then the rest
        first = min(settings.final_seeds + settings.finalists - 1, counts.likely_finals)
        for count in (first, counts.likely_finals - first, counts.randomised):
            machine.submit(Kind.AGAIN, count)
            machine.finish(*Kind)
        return machine.now

    generations = min(settings.iterations, _MOST_PLAYED)
    seconds = played(generations)
    if (further := settings.iterations - generations) > 0:
        seconds += further * (seconds - played(generations - 1))
    seconds += settings.iterations * latency.judging
    return pace.start_seconds + seconds + (VIDEO_SECONDS if settings.video else 0.0)


def _play_generations(
    machine: PlayedMachine, settings: SearchSettings, counts: TrainingCounts, latency: Latency
) -> None:
    passes = math.ceil(counts.candidates / latency.at_once)
    for generation in range(settings.iterations):
        delay = passes * latency.design
        if generation:
            machine.finish(Kind.BASELINE)
            delay += passes * latency.drafts + latency.analysis
        machine.submit(Kind.CANDIDATE, counts.candidates, delay)
        machine.finish(Kind.CANDIDATE)
        if is_confirmed(settings, generation):
            machine.submit(Kind.AGAIN, counts.confirmations)
            machine.finish(Kind.AGAIN)


def _play_steady(
    machine: PlayedMachine, settings: SearchSettings, counts: TrainingCounts, latency: Latency
) -> None:
    size, total = counts.candidates, settings.iterations * counts.candidates
    for place in range(size):
        machine.submit(Kind.CANDIDATE, 1, (place // latency.at_once + 1) * latency.design)
    planned, scored = size, 0
    while scored < total:
        for kind in machine.next_scored():
            if kind is not Kind.CANDIDATE:
                continue
            scored += 1
            if planned < total:
                planned += 1
                machine.submit(Kind.CANDIDATE, 1, latency.design + latency.drafts)
            if scored % size == 0 and is_confirmed(settings, scored // size - 1):
                machine.submit(Kind.AGAIN, counts.confirmations)
