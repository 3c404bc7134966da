"""Progress of a run in numbers and words, from its state."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain

from eureka_agent import wording
from eureka_agent.analysis.standing import with_strengths
from eureka_agent.journal.entries import BaseEntry, RunStarted
from eureka_agent.journal.state import RunState
from eureka_agent.journal.under_way import UnderWay
from eureka_agent.ranking import ranked
from eureka_agent.records import Attempt, Outcome, RunStatus, Stage
from eureka_agent.report.metric import metric_sentence
from eureka_agent.settings import SearchSettings
from eureka_agent.training_counts import TrainingCounts, is_confirmed

TRAINING_ENDED = (Stage.TRAINED, Stage.FAILED)
_PLURALS = {"analysis": "analyses", "fitness": "fitnesses"}


class Watched:
    """A run as an observer of its entries sees it: its state, and the time since the last entry."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = self._last = clock()
        self.state = RunState()
        """Empty until the run starts."""

    def see(self, entry: BaseEntry) -> None:
        """Take note of an entry, which the state has already."""
        if isinstance(entry, RunStarted):
            self.state = entry.state
        self._last = self._clock()

    @property
    def has_ended(self) -> bool:
        return self.state.status is not RunStatus.RUNNING

    def seconds(self) -> float:
        """Wall time of the run, over all processes; before it starts, that of this view."""
        if self.state.started is None:
            return self._clock() - self._began
        return self.state.seconds + (0.0 if self.has_ended else self._clock() - self._last)


# ── attempts ──────────────────────────────────────────────────────────────────────────────────────


def leaderboard(state: RunState) -> list[Attempt]:
    """Trained attempts, best first, with their strengths where strengths rank."""
    return ranked(with_strengths(state.attempts(), state.feedback))


def attempt_counts(state: RunState) -> dict[str, str]:
    """`16 proposals`, `2 thrown out by the critic`, each by its name, without those of 0."""
    stages = Counter(each.stage for each in state.by_id.values() if each.is_ranked)
    proposed, rejected, failed = stages.total(), stages[Stage.REJECTED], stages[Stage.FAILED]
    texts = {
        "proposed": (proposed, wording.plural(proposed, "proposal")),
        "rejected": (rejected, f"{rejected} thrown out by the critic"),
        "failed": (failed, f"{failed} failed in training"),
    }
    return {name: text for name, (number, text) in texts.items() if number}


# ── trainings ─────────────────────────────────────────────────────────────────────────────────────


def trainings_done(state: RunState) -> int:
    """Trainings that ended, in all processes."""
    ended = sum(each.stage in TRAINING_ENDED for each in state.by_id.values())
    ended += sum(len(each.repeats) for each in state.by_id.values())
    return ended + sum(not each.cached for each in state.by_training.values())


def trainings_to_come(state: RunState) -> int:
    """Trainings that are under way or still to begin, as far as is known now."""
    settings = state.settings
    if settings is None:
        return 0
    made = TrainingCounts.of(settings)
    to_come = _finals_to_come(state, made)
    others = [each for each in state.by_id.values() if not each.is_ranked]
    known = sum(len(each.outcomes) - (each.stage not in TRAINING_ENDED) for each in others)
    to_come += max(0, made.randomised - known)
    if state.under_way.end:
        return to_come
    for iteration in range(state.iterations):
        if iteration not in state.iterations_ended:
            to_come += _candidates_to_come(state, iteration, settings)
            if is_confirmed(settings, iteration):
                ranked_ones = (each for each in state.by_id.values() if each.is_ranked)
                repeats = (each for attempt in ranked_ones for each in attempt.repeats)
                done = sum(each.iteration == iteration for each in repeats)
                to_come += max(0, made.confirmations - done)
    return to_come


def _candidates_to_come(state: RunState, iteration: int, settings: SearchSettings) -> int:
    begun = state.under_way.rounds.get(iteration)
    first, samples = (0, settings.samples)
    if begun is not None:
        first, samples = begun.round * begun.samples, begun.samples
    ended = {
        each.sample
        for each in state.attempts(iteration)
        if each.sample >= first and each.stage in TRAINING_ENDED
    }
    return max(0, samples - len(ended))


def _finals_to_come(state: RunState, made: TrainingCounts) -> int:
    """Trainings of finalists and baselines."""
    assert state.started is not None
    known = Counter(name for name, _ in state.by_training)
    to_come = 0
    if state.began.card is None:
        settings = state.started.settings
        baselines = state.started.description.baselines if settings.trains_baselines else ()
        to_come = sum(max(0, settings.seeds_of_baselines - known[name]) for name in baselines)
    if state.no_finals or any(name in state.under_way.scores for name in state.finalists):
        return to_come
    done = sum(known[name] for name in state.finalists)
    last = state.final_rounds[-1].seeds if state.final_rounds else {}
    wanted = sum(max(each.seeds.get(name, 0) for each in state.final_rounds) for name in last)
    wanted += sum(known[name] for name in state.finalists if name not in last)
    if len(last) != 1 or not state.under_way.end:  # a round of one finalist is the last
        wanted = max(wanted, made.likely_finals)
    return to_come + max(0, wanted - done)


def trainings_total(state: RunState) -> int:
    """Trainings of the whole run, as far as is known now."""
    return trainings_done(state) + trainings_to_come(state)


def env_steps_done(state: RunState) -> int:
    """Env steps of the run's trainings so far."""
    finals = [each.outcome for each in state.by_training.values() if not each.cached]
    outcomes: Iterator[Outcome | None] = chain(
        finals,
        (each.outcome for each in state.by_id.values()),
        (repeat.outcome for each in state.by_id.values() for repeat in each.repeats),
    )
    ended = sum(each.env_steps for each in outcomes if each is not None)
    return ended + sum(each.env_steps for each in state.under_way.running.values())


def env_steps_total(state: RunState) -> int:
    """Env steps of the whole run, as far as is known now."""
    if state.settings is None:
        return 0
    begun = sum(each.env_steps for each in state.under_way.running.values())
    to_come = trainings_to_come(state) * state.settings.steps_of_a_training
    return env_steps_done(state) + max(0, to_come - begun)


def all_trained(state: RunState) -> bool:
    """True once the last final training has ended: what is still done takes no env steps."""
    under_way = state.under_way
    return bool(under_way.end) and not under_way.is_training and not trainings_to_come(state)


def phase(state: RunState) -> str:
    """Phase of the run in words: `iterations 1 (the best again) and 2 of 3`."""
    if state.status is not RunStatus.RUNNING:
        return state.status.value
    if all_trained(state):
        video = state.settings is not None and state.settings.video
        return "scores, video and report" if video else "scores and report"
    if state.under_way.end or not state.under_way.iterations:
        return state.under_way.end or "starting"
    under_way = sorted(state.under_way.iterations.items())
    if len(under_way) == 1:
        ((iteration, remark),) = under_way
        last = f", {remark}" if remark else ""
        return f"iteration {iteration + 1} of {state.iterations}{last}"
    named = (f"{number + 1}" + (f" ({remark})" if remark else "") for number, remark in under_way)
    return f"iterations {' and '.join(named)} of {state.iterations}"


def seconds_left(state: RunState, now: float) -> float | None:
    """Estimated seconds for the remaining env steps, at the run's pace with its waits for models;
    None while unknown, and below a second, where scores take longer. `now`: seconds of the run."""
    under_way = state.under_way
    if under_way.first is None or state.status is not RunStatus.RUNNING:
        return None
    passed = now - under_way.first
    if under_way.trained <= 0 or passed < 1.0:
        return None
    to_come = env_steps_total(state) - env_steps_done(state)
    left = to_come * passed / under_way.trained
    return left if left >= 1.0 else None


def then(state: RunState) -> str:
    """Words after the time that is left: `, then the video`, once the end is near."""
    video = state.settings is not None and state.settings.video
    return ", then the video" if video and state.under_way.end else ""


# ── requests ──────────────────────────────────────────────────────────────────────────────────────


def account(under_way: UnderWay) -> str:
    """`12 replies · 45.2k tokens · $0.1234`; empty before the first request."""
    asked = under_way.asked
    if not asked.requests and not under_way.requests:
        return ""
    parts = [wording.plural(asked.requests, "reply", "replies")]
    if asked.requests:
        uncounted = f" and {asked.uncounted} uncounted" if asked.uncounted else ""
        money = "cost unknown" if asked.money is None else wording.money(asked.money)
        parts += [f"{wording.count(asked.tokens)} tokens{uncounted}", money]
    return " · ".join(parts)


def awaited(under_way: UnderWay, now: float) -> str:
    """`3 replies awaited for 0:42: 2 designs, 1 review`, then each batch of requests that is
    awaited; empty for none."""
    batches = under_way.batches.values()
    parts = [
        f"a batch of {wording.plural(batch.requests, 'request')} to {batch.model} awaited for"
        f" {wording.rough_duration(now - since)}"
        for batch, since in batches
    ]
    number = len(under_way.requests) - sum(batch.requests for batch, _ in batches)
    if number > 0:
        pending = under_way.requests.values()
        longest = wording.clock_time(max(now - since for _, since in pending))
        kinds = Counter(request.purpose.partition(" ")[0] for request, _ in pending)
        named = (wording.plural(many, kind, _PLURALS.get(kind, "")) for kind, many in kinds.items())
        head = f"{wording.plural(number, 'reply', 'replies')} awaited for {longest}"
        parts.insert(0, head if batches else f"{head}: {', '.join(named)}")
    return "; ".join(parts)


# ── lines ─────────────────────────────────────────────────────────────────────────────────────────


def told(entry: BaseEntry, state: RunState) -> list[str]:
    """Lines of a search's log for an entry. `state`: with the entry."""
    lines = [entry.line(state)] if entry.is_told else []
    if isinstance(entry, RunStarted):
        lines.append(metric_sentence(entry.description, entry.fitness_origin))
    return [line for line in lines if line]


def progress_line(state: RunState, now: float) -> str:
    """Progress in one line: trainings, env steps, time and waits."""
    under_way = state.under_way
    waits = awaited(under_way, now)
    if state.started is None:
        return waits or "the environment is being opened and measured"
    rate, left = under_way.steps_per_second, seconds_left(state, now)
    running, queued = len(under_way.running), len(under_way.queued)
    idle = phase(state) if all_trained(state) else "nothing is training"
    total = wording.count(env_steps_total(state))
    parts = (
        f"{wording.plural(running, 'training')} running" if running else idle,
        f"{queued} waiting" if queued else "",
        f"{trainings_done(state)} of {trainings_total(state)} done",
        f"{wording.count(env_steps_done(state))} of {total} env steps",
        f"{wording.count(rate)} steps/s" if rate is not None else "",
        f"about {wording.duration(left)} left{then(state)}" if left is not None else "",
    )
    return "; ".join(filter(None, (", ".join(filter(None, parts)), waits)))
