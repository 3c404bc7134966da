"""The view model of a running search: events in, everything that a view shows out. No clock, no
terminal, no file."""

from __future__ import annotations

from collections import defaultdict, deque

from eureka_agent.journal.entries import (
    Analysed,
    AttemptEnded,
    AttemptRepeated,
    BaseEntry,
    ConfirmationStarted,
    FinalStarted,
    IterationEnded,
    IterationStarted,
    Judged,
    Notice,
    Proposed,
    RequestEnded,
    RequestStarted,
    Reviewed,
    RunEnded,
    RungScored,
    RunStarted,
    Scored,
    TrainingEnded,
    TrainingKind,
    TrainingProgress,
    TrainingQueued,
    TrainingResumed,
    TrainingRetried,
    TrainingWaits,
)
from eureka_agent.journal.state import Recorded, changed
from eureka_agent.ranking import ranked
from eureka_agent.records import Attempt, Score, Stage
from eureka_agent.report.activity import AT_A_RUNG, Activity, activity
from eureka_agent.report.entries import (
    Discarded,
    SeedScores,
    Standing,
    TrainingView,
    first_error,
    standing,
    why_stopped,
)
from eureka_agent.report.ledger import ledger
from eureka_agent.report.pace import Pace
from eureka_agent.report.phases import IterationPhases
from eureka_agent.report.requests import Requests

KEPT_REJECTIONS = 50
KEPT_NOTICES = 5
FINALS = "final trainings"
"""Last phase of a run."""


class SearchView:
    """Folds events into what a view shows. `apply` is O(1) in the length of the run, but for the
    leaderboard."""

    def __init__(self) -> None:
        self.run: RunStarted | None = None
        self.ended: RunEnded | None = None
        self.started_at = 0.0
        self._untouched = True
        self.requests = Requests()
        self.phase = "starting"
        self.proposed = 0
        self.accepted = 0
        self.rejected = 0
        self.failed = 0
        self.stopped = 0
        self.queued: dict[str, TrainingView] = {}
        self.running: dict[str, TrainingView] = {}
        self.leaderboard: list[Standing] = []
        self.discarded: deque[Discarded] = deque(maxlen=KEPT_REJECTIONS)
        self.finals: dict[str, SeedScores] = {}
        self.notices: deque[Notice] = deque(maxlen=KEPT_NOTICES)
        self.trainings_done = 0
        self._finished_steps = 0
        self.attempts: dict[str, Attempt] = {}
        """The last version of each."""
        self._trained: dict[str, Attempt] = {}
        self._ended_attempts: set[str] = set()
        self._plans: dict[int, int] = {}
        self._phases = IterationPhases()
        self._repeats = 0
        """Made or under way."""
        self._confirmed_iterations: set[int] = set()
        self._trained_samples: defaultdict[int, set[int]] = defaultdict(set)
        self._trained_here: set[str] = set()
        self._pace = Pace()
        self._running_steps = 0
        self._retried_jobs: set[str] = set()

    # ── what is shown ─────────────────────────────────────────────────────────────────────────────

    @property
    def trainings_total(self) -> int:
        """Trainings that the run will have made when it ends, as far as is known now."""
        if self.run is None:
            return 0
        settings = self.run.settings
        unplanned = max(0, settings.iterations - len(self._plans)) * settings.samples
        to_confirm = max(0, settings.iterations - len(self._confirmed_iterations))
        if self.phase == FINALS:  # a budget may have ended the search before its last generation
            unplanned = to_confirm = 0
        search = sum(self._plans.values()) + unplanned
        # at most: who was confirmed before is not again
        search += (
            self._repeats
            + to_confirm * min(settings.confirm, settings.samples) * settings.confirm_seeds
        )
        finals = sum(final.planned for final in self.finals.values())
        if not any(final.kind == "final" for final in self.finals.values()):
            finals += (
                min(settings.finalists, sum(self._plans.values()) + unplanned)
                * settings.final_seeds
            )
        return search + finals

    @property
    def env_steps_done(self) -> int:
        return self._finished_steps + self._running_steps

    @property
    def env_steps_per_training(self) -> int:
        return self.run.settings.env_steps if self.run is not None else 1

    @property
    def env_steps_total(self) -> int:
        to_come = max(0, self.trainings_total - self.trainings_done)
        return self._finished_steps + to_come * self.env_steps_per_training

    @property
    def steps_per_second(self) -> float | None:
        """Over the last seconds in which something trained; None before that can be told, and while
        nothing trains."""
        return None if self.activity.stands_still else self._pace.steps_per_second

    @property
    def activity(self) -> Activity:
        """Activity of the trainings now."""
        return activity(self.running.values(), self.queued.values())

    def elapsed(self, now: float) -> float:
        """Seconds that the run has taken, those of earlier processes included."""
        return now - self.started_at + (self.run.seconds_before if self.run is not None else 0.0)

    def seconds_left(self, now: float) -> float | None:
        """Time for the env steps to come, and for the replies of models that the search will stand
        still for. None before that can be told."""
        if self.run is None or self.ended is not None:
            return None
        generations = (
            0 if self.phase == FINALS else max(0, self.run.settings.iterations - len(self._plans))
        )
        return self._pace.seconds_left(now, self.env_steps_done, self.env_steps_total, generations)

    # ── events ────────────────────────────────────────────────────────────────────────────────────

    def apply(self, event: BaseEntry, now: float) -> None:
        """Take over `event`, which happened at `now` seconds on the caller's monotonic clock."""
        if self._untouched:  # before a run begins there may be notices
            self.started_at, self._untouched = now, False
        self._take_over(event, now)
        candidates = (*self.running.values(), *self.queued.values())
        stands_still = self.requests.pending > 0 and all(
            training.is_baseline or training.waits_for in AT_A_RUNG for training in candidates
        )
        self._pace.wait(
            now, self.env_steps_done, max(self._plans, default=None) if stands_still else None
        )
        self._pace.train(now, not self.activity.stands_still)

    def _take_over(self, event: BaseEntry, now: float) -> None:
        match event:
            case RunStarted():
                self._run_started(event, now)
            case IterationStarted():
                first = event.round * event.samples
                before = sum(sample < first for sample in self._trained_samples[event.iteration])
                self._plans[event.iteration] = before + event.samples
                self._enter(event.iteration, f"round {event.round + 1}" if event.round else "")
            case RequestStarted():
                self.requests.start(event, now)
            case RequestEnded():
                self.requests.end(event)
            case Proposed():
                self._meet(self._changed(event))
                self._pace.designed.add(event.iteration)
            case Judged():
                self._judged(self._changed(event))
            case Reviewed():
                reviewed = self._changed(event)
                if reviewed.stage is Stage.REJECTED:
                    self._judged(reviewed)
                self.attempts[reviewed.id] = reviewed
            case RungScored() | Analysed():
                self.attempts[event.attempt] = self._changed(event)
            case TrainingQueued():
                self._queued(event)
            case TrainingProgress():
                self._progress(event, now)
            case TrainingWaits():
                training = self.running.get(event.job) or self.queued.get(event.job)
                if training is not None:
                    training.wait(event.waits_for, now)
            case TrainingRetried():
                self._retried(event)
            case TrainingResumed():
                self._resumed(event)
            case TrainingEnded():
                self._training_ended(event)
            case AttemptEnded():
                self._attempt_ended(self._changed(event))
            case ConfirmationStarted():
                self._enter(event.iteration, "the best again")
                self._confirmed_iterations.add(event.iteration)
                self._repeats += event.trainings
            case AttemptRepeated():
                self._rank(self._changed(event))
            case IterationEnded():
                self._plans[event.iteration] = len(self._trained_samples[event.iteration])
                self._confirmed_iterations.add(event.iteration)
                if self._phases.leave(event.iteration):
                    self._name_phase()
            case FinalStarted():
                self._final_started(event)
            case Scored():
                self._scored(event.score)
            case RunEnded():
                self.ended = event
                self.phase = event.status.value
                self.running.clear()
                self.queued.clear()
            case Notice():
                if not event.stays:  # the others stand above the view
                    self.notices.append(event)

    def _enter(self, iteration: int, special: str) -> None:
        self._phases.enter(iteration, special)
        self._name_phase()

    def _name_phase(self) -> None:
        self.phase = self._phases.text(
            self.run.settings.iterations if self.run is not None else "?"
        )

    def _run_started(self, event: RunStarted, now: float) -> None:
        self.run, self.started_at = event, now
        self.requests.take_over(ledger(event.asked).total)
        for attempt in event.known:
            if attempt.stage not in (Stage.PROPOSED, Stage.ACCEPTED):
                self._attempt_ended(attempt)
            self.attempts[attempt.id] = attempt
        if not event.settings.trains_baselines:
            return
        seeds = event.settings.seeds_of_baselines
        if event.description.human_reward is not None:
            self.finals["human"] = SeedScores("human", seeds)
        if event.description.sparse_reward is not None:
            self.finals["sparse"] = SeedScores("sparse", seeds)

    def _changed(self, event: BaseEntry) -> Attempt:
        """The attempt that an entry is about, with what it says."""
        return changed(self.attempts, Recorded(0, "", 0.0, event))

    def _meet(self, attempt: Attempt) -> None:
        """Remember an attempt; a resumed run may begin with any of its stages."""
        if attempt.id not in self.attempts:
            self.proposed += 1
        self.attempts[attempt.id] = attempt

    def _judged(self, attempt: Attempt) -> None:
        earlier = self.attempts.get(attempt.id)
        self._meet(attempt)
        if attempt.stage is Stage.REJECTED:
            if earlier is not None and earlier.stage is Stage.ACCEPTED:  # its review came later
                self.accepted -= 1
                if (
                    attempt.id in self._trained_here
                ):  # the training of what is made of it counts in its place, if any
                    self._trained_here.discard(attempt.id)
                    self._trained_samples[attempt.iteration].discard(attempt.sample)
                    self.trainings_done -= 1
            self._discard(attempt)
        else:
            self.accepted += 1
            if attempt.id in self._ended_attempts:  # an earlier process had refused it
                self._ended_attempts.discard(attempt.id)
                self.rejected -= 1

    def _discard(self, attempt: Attempt) -> None:
        by_critic = attempt.stage is Stage.REJECTED
        if by_critic:
            self.rejected += 1
        elif attempt.stage is Stage.STOPPED:
            self.stopped += 1
        else:
            self.failed += 1
        self._ended_attempts.add(attempt.id)
        reason = attempt.reason
        if by_critic:
            reason = first_error(attempt) or reason
        elif attempt.stage is Stage.STOPPED:
            reason = why_stopped(attempt, self.env_steps_per_training)
        self.discarded.append(
            Discarded(attempt.id, attempt.proposal.operator.value, reason, attempt.stage)
        )

    def _queued(self, event: TrainingQueued) -> None:
        attempt = self.attempts.get(event.label)
        if event.training == "search":
            role = attempt.proposal.operator.value if attempt is not None else ""
            if attempt is not None:
                self._trained_samples[attempt.iteration].add(attempt.sample)
        elif event.training == "repeat":
            role = "again"
        else:
            final = self._final(event.label, event.training)
            final.queued += 1
            role = f"{'final' if event.training == 'final' else 'baseline'}, seed {final.queued}"
        self.queued[event.job] = TrainingView(
            event.job, event.label, event.training, event.seed, role
        )

    def _progress(self, event: TrainingProgress, now: float) -> None:
        training = self.running.get(event.job)
        if training is None:
            waiting = self.queued.pop(event.job, None)
            if waiting is None:
                return
            training = self.running[event.job] = waiting
        self._pace.begin(now, self.env_steps_done)
        before = training.env_steps
        training.add(event.points)
        self._running_steps += training.env_steps - before
        self._pace.mark(now, self.env_steps_done)

    def _retried(self, event: TrainingRetried) -> None:
        training = self.running.pop(event.job, None)
        if training is not None:
            self._running_steps -= training.env_steps
            training.restart()
            self._retried_jobs.add(event.job)
            self.queued[event.job] = training
            self._pace.interrupt()
        label = training.label if training is not None else event.job
        self.notices.append(
            Notice(text=f"training of {label} starts again: {event.reason}", level="warning")
        )

    def _resumed(self, event: TrainingResumed) -> None:
        training = self.queued.get(event.job)
        if training is None:
            return
        before = training.env_steps
        training.add(event.points)
        self._running_steps += training.env_steps - before
        # what an earlier process made took none of the time since
        self._pace.interrupt(0 if event.job in self._retried_jobs else training.env_steps - before)

    def _training_ended(self, event: TrainingEnded) -> None:
        training = self.running.pop(event.job, None) or self.queued.pop(event.job, None)
        if training is not None:
            self._running_steps -= training.env_steps
            self._finished_steps += training.env_steps
        attempt = self.attempts.get(event.label)
        if event.training == "search" and attempt and attempt.stage is Stage.REJECTED:
            # turned down meanwhile: the training of what is made of it counts in its place
            self._trained_samples[attempt.iteration].discard(attempt.sample)
            return
        self.trainings_done += 1
        if event.training == "search":
            self._trained_here.add(event.label)
        elif event.training != "repeat":
            final = self._final(event.label, event.training)
            final.ended += 1
            final.fitness.append(event.fitness)

    def _attempt_ended(self, attempt: Attempt) -> None:
        if attempt.id in self._ended_attempts:
            return
        self._meet(attempt)
        if attempt.stage in (Stage.REJECTED, Stage.FAILED, Stage.STOPPED):
            self._discard(attempt)
        self._ended_attempts.add(attempt.id)
        if attempt.stage in (Stage.TRAINED, Stage.FAILED, Stage.STOPPED):
            self._trained_samples[attempt.iteration].add(attempt.sample)
            if attempt.id not in self._trained_here:  # before this process began
                self.trainings_done += 1
                self._finished_steps += (
                    attempt.outcome.env_steps if attempt.outcome is not None else 0
                )
        for repeat in (
            attempt.repeats
        ):  # an attempt ends before it is repeated: these are of an earlier process
            self._repeats += 1
            self.trainings_done += 1
            self._finished_steps += repeat.outcome.env_steps if repeat.outcome is not None else 0
        self._rank(attempt)

    def _rank(self, attempt: Attempt) -> None:
        """Put an attempt where it belongs on the leaderboard."""
        self.attempts[attempt.id] = attempt
        if attempt.fitness is not None:
            self._trained[attempt.id] = attempt
            self.leaderboard = [
                standing(trained) for trained in ranked(list(self._trained.values()))
            ]

    def _final_started(self, event: FinalStarted) -> None:
        self.phase = FINALS
        seeds = self.run.settings.final_seeds if self.run is not None else 0
        for name in event.attempts:
            self._final(name, "final").planned = seeds

    def _scored(self, score: Score) -> None:
        kind: TrainingKind = (
            "human" if score.name == "human" else "sparse" if score.name == "sparse" else "final"
        )
        final = self._final(score.name, kind)
        final.score = score
        final.planned = max(final.queued, final.ended)
        final.fitness = list(score.fitness)

    def _final(self, label: str, kind: TrainingKind) -> SeedScores:
        if label not in self.finals:
            planned = self.run.settings.final_seeds if self.run is not None else 0
            self.finals[label] = SeedScores(kind, planned)
        return self.finals[label]
