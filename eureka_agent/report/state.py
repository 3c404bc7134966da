"""View model of a running search: the facts that views show, from its journal's entries."""

from __future__ import annotations

from collections import deque

from eureka_agent.journal import entries as journal
from eureka_agent.journal.entries import BaseEntry, Notice, RunStarted
from eureka_agent.records import BASELINES, Score
from eureka_agent.report.attempts import Attempts
from eureka_agent.report.entries import SeedScores, TrainingView
from eureka_agent.report.pace import Pace
from eureka_agent.report.phases import IterationPhases
from eureka_agent.report.requests import Requests
from eureka_agent.training_counts import TrainingCounts, is_confirmed

KEPT_NOTICES = 5
FINALS = "final trainings"
RANDOMISED = "distributions of parameters"


class SearchView:
    """Facts of a run over all its processes. `apply` mostly takes constant time."""

    def __init__(self) -> None:
        self.run: RunStarted | None = None
        self.ended: journal.RunEnded | None = None
        self.started_at = 0.0
        self._is_new = True
        self.requests = Requests()
        self._phase = "starting"
        self.queued: dict[str, TrainingView] = {}
        self.running: dict[str, TrainingView] = {}
        self.finals: dict[str, SeedScores] = {}
        self.notices: deque[Notice] = deque(maxlen=KEPT_NOTICES)
        self.attempts = Attempts()
        self._finished_steps = 0
        self._running_steps = 0
        self._plans: dict[int, int] = {}
        """Trainings by iteration."""
        self._phases = IterationPhases()
        self._has_finals = True
        self._repeats = 0
        self._confirmed: set[int] = set()
        self._pace = Pace()
        self._retried_jobs: set[str] = set()
        self._randomising: journal.RandomisationStarted | None = None

    # ── facts ─────────────────────────────────────────────────────────────────────────────────────

    @property
    def trainings_done(self) -> int:
        """Trainings that ended, in all processes."""
        return self.attempts.trainings + sum(final.ended for final in self.finals.values())

    @property
    def iterations(self) -> int:
        """Number of iterations: those of the settings, or more where a person wanted them."""
        asked = self.run.settings.iterations if self.run is not None else 0
        return max(asked, *(each + 1 for each in self._plans), 0)

    @property
    def trainings_total(self) -> int:
        """Trainings of the whole run, as far as is known now."""
        if self.run is None:
            return 0
        settings = self.run.settings
        # a budget may have ended the search before its last generation
        iterations = 0 if self._at_the_end else settings.iterations
        candidates = sum(self._plans.values())
        candidates += max(0, iterations - len(self._plans)) * settings.samples
        made = TrainingCounts.of(settings, candidates=candidates)
        due = made.confirmed - sum(is_confirmed(settings, each) for each in self._confirmed)
        confirmations = 0 if self._at_the_end else max(0, due) * made.confirmations
        again = [each for each in self.finals.values() if each.kind != "randomised"]
        finals = sum(final.planned for final in again)
        if (started := self._randomising) is not None:
            finals += started.distributions * started.seeds
        else:
            finals += settings.randomise * settings.seeds_of_randomised
        if self._has_finals:
            begun = sum(final.planned for final in again if final.kind == "final")
            finals += max(0, made.likely_finals - begun)
        return candidates + self._repeats + confirmations + finals

    @property
    def phase(self) -> str:
        """Phase in words."""
        if self.run is None or not self.all_trained:
            return self._phase
        return "scores, video and report" if self.run.settings.video else "scores and report"

    @property
    def all_trained(self) -> bool:
        """True once the last final training has ended: what is still done takes no env steps."""
        done = self.trainings_done >= self.trainings_total
        return self._at_the_end and done and not self._is_training

    @property
    def _at_the_end(self) -> bool:
        return self._phase in (FINALS, RANDOMISED)

    @property
    def env_steps_done(self) -> int:
        return self._finished_steps + self._running_steps

    @property
    def env_steps_per_training(self) -> int:
        return self.run.settings.steps_of_a_training if self.run is not None else 1

    @property
    def env_steps_total(self) -> int:
        to_come = max(0, self.trainings_total - self.trainings_done)
        return self._finished_steps + to_come * self.env_steps_per_training

    @property
    def steps_per_second(self) -> float | None:
        """Speed over the last seconds of training; None while unknown, and while nothing trains."""
        return self._pace.steps_per_second if self._is_training else None

    @property
    def _is_training(self) -> bool:
        """True where something trains, or waits for a slot."""
        return bool(self.running or self.queued)

    def elapsed(self, now: float) -> float:
        """Seconds of the run, over all processes."""
        return now - self.started_at + (self.run.seconds_before if self.run is not None else 0.0)

    def seconds_left(self, now: float) -> float | None:
        """Estimated time for env steps and for waits on models; None while unknown, and below a
        second, where scores take longer."""
        if self.run is None or self.ended is not None:
            return None
        generations = 0
        if not self._at_the_end:
            generations = max(0, self.run.settings.iterations - len(self._plans))
        done, total = self.env_steps_done, self.env_steps_total
        left = self._pace.seconds_left(now, done, total, generations)
        return left if left is not None and left >= 1.0 else None

    @property
    def then(self) -> str:
        """Words after the time that is left: `, then the video`, once the end is near."""
        near = self.run is not None and self.run.settings.video and self._at_the_end
        return ", then the video" if near else ""

    # ── entries ───────────────────────────────────────────────────────────────────────────────────

    def apply(self, event: BaseEntry, now: float) -> None:
        """Apply an event of `now` seconds. Raises KeyError for one on an unknown attempt."""
        if self._is_new:  # notices may come before the run
            self.started_at, self._is_new = now, False
        self._fold(event, now)
        candidates = (*self.running.values(), *self.queued.values())
        stands_still = self.requests.pending > 0 and all(
            training.is_baseline for training in candidates
        )
        generation = max(self._plans, default=None) if stands_still else None
        self._pace.wait(now, self.env_steps_done, generation)
        self._pace.train(now, self._is_training)

    def _fold(self, event: BaseEntry, now: float) -> None:
        match event:
            case RunStarted():
                self._run_started(event, now)
            case journal.IterationStarted():
                first = event.round * event.samples
                trained = self.attempts.trained_samples(event.iteration)
                before = sum(sample < first for sample in trained)
                self._plans[event.iteration] = before + event.samples
                self._enter(event.iteration, f"round {event.round + 1}" if event.round else "")
            case journal.RequestStarted():
                self.requests.start(event, now)
            case journal.RequestEnded():
                self.requests.end(event)
            case journal.RequestBatchAwaited():
                self.requests.start_batch(event, now)
            case journal.RequestBatchEnded():
                self.requests.end_batch(event)
            case journal.FeedbackGiven():
                self.attempts.hear_more(event)
            case journal.TrainingQueued():
                self._queued(event)
            case journal.TrainingProgress():
                self._progress(event, now)
            case journal.TrainingRetried():
                self._retried(event)
            case journal.TrainingResumed():
                self._resumed(event)
            case journal.TrainingEnded():
                self._training_ended(event)
            case journal.ConfirmationStarted():
                self._enter(event.iteration, "the best again")
                self._confirmed.add(event.iteration)
                self._repeats += event.trainings
            case journal.IterationEnded():
                self._plans[event.iteration] = len(self.attempts.trained_samples(event.iteration))
                self._confirmed.add(event.iteration)
                if self._phases.leave(event.iteration):
                    self._name_phase()
            case journal.FinalStarted():
                self._phase, self._has_finals = FINALS, not event.skipped
            case journal.FinalRound():
                self._final_round(event)
            case journal.Scored():
                self._scored(event.score)
            case journal.RandomisationStarted():
                self._phase, self._randomising = RANDOMISED, event
            case journal.RunEnded():
                self.ended = event
                self._phase = event.status.value
                self.running.clear()
                self.queued.clear()
            case Notice():
                if not event.stays:  # the others are printed above the view
                    self.notices.append(event)
            case _ if event.of_attempt:
                if isinstance(event, journal.Proposed):
                    self._pace.designed.add(event.iteration)
                self.attempts.change(event)

    def _enter(self, iteration: int, special: str) -> None:
        self._phases.enter(iteration, special)
        self._name_phase()

    def _name_phase(self) -> None:
        self._phase = self._phases.text(self.iterations)

    def _run_started(self, event: RunStarted, now: float) -> None:
        self.run, self.ended, self.started_at, self._phase = event, None, now, "starting"
        for attempt in event.known:
            self._finished_steps += self.attempts.take_in(attempt)
        if event.feedback:
            self.attempts.hear(*event.feedback)
        # trainings of an earlier process are gone; this one plans anew, and repeats the entries of
        # known final trainings
        self.running.clear()
        self.queued.clear()
        self._running_steps = 0
        self.attempts.drop_trainings()
        # a session in which a person refines begins with the next one, and tells of no earlier one
        known = self.attempts.iterations
        self._plans = {each: len(self.attempts.trained_samples(each)) for each in known}
        self._confirmed.clear()
        self._repeats = self.attempts.repeats
        self._phases, self._pace = IterationPhases(), Pace()
        self.requests.take_over(event.asked)
        self.finals.clear()
        self._randomising, self._has_finals = None, True
        if event.settings.trains_baselines:
            seeds = event.settings.seeds_of_baselines
            if event.description.human_reward is not None:
                self.finals["human"] = SeedScores("human", seeds)
            if event.description.sparse_reward is not None:
                self.finals["sparse"] = SeedScores("sparse", seeds)
        if event.card is not None:
            for name, reward in event.card.rewards.items():
                if name in self.finals:
                    self.finals[name].planned = 0
                    self.finals[name].fitness = list(reward.fitness)

    def _queued(self, event: journal.TrainingQueued) -> None:
        if event.training == "search":
            attempt = self.attempts.get(event.label)
            role = attempt.proposal.operator.value if attempt is not None else ""
            self.attempts.begin_training(event.label)
        elif event.training == "repeat":
            role = "again"
        else:
            final = self._final(event.label, event.training)
            final.queued += 1
            kind = "baseline" if event.training in BASELINES else event.training
            role = f"{kind}, seed {final.queued}"
        self.queued[event.job] = TrainingView(
            event.job, event.label, event.training, event.seed, role
        )

    def _progress(self, event: journal.TrainingProgress, now: float) -> None:
        training = self.running.get(event.job)
        if training is None:
            waiting = self.queued.pop(event.job, None)
            if waiting is None:
                return
            training = self.running[event.job] = waiting
        self._pace.begin(now, self.env_steps_done)
        self._add(training, event.points)
        self._pace.mark(now, self.env_steps_done)

    def _add(self, training: TrainingView, points: tuple[journal.Progress, ...]) -> int:
        """Add points to a training. Returns its new env steps."""
        before = training.env_steps
        training.add(points)
        self._running_steps += training.env_steps - before
        return training.env_steps - before

    def _retried(self, event: journal.TrainingRetried) -> None:
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

    def _resumed(self, event: journal.TrainingResumed) -> None:
        training = self.queued.get(event.job)
        if training is None:
            return
        steps = self._add(training, event.points)
        # steps of an earlier process took none of this one's time
        self._pace.interrupt(0 if event.job in self._retried_jobs else steps)

    def _training_ended(self, event: journal.TrainingEnded) -> None:
        training = self.running.pop(event.job, None) or self.queued.pop(event.job, None)
        if training is not None:
            self._running_steps -= training.env_steps
            self._finished_steps += training.env_steps
        if event.training == "search":
            self.attempts.end_training(event.label)
        elif event.training != "repeat":
            final = self._final(event.label, event.training)
            final.ended += 1
            final.fitness.append(event.fitness)

    def _final_round(self, event: journal.FinalRound) -> None:
        for name, seeds in event.seeds.items():
            self._final(name, "final").planned = seeds
        if len(event.seeds) == 1:  # the winner's seeds
            self._has_finals = False

    def _scored(self, score: Score) -> None:
        kinds: dict[str, journal.TrainingKind] = {"human": "human", "sparse": "sparse"}
        final = self._final(score.name, kinds.get(score.name, "final"))
        final.score = score
        if final.kind == "final":
            self._has_finals = False
        final.planned = max(final.queued, final.ended)
        final.fitness = list(score.fitness)

    def _final(self, label: str, kind: journal.TrainingKind) -> SeedScores:
        if label not in self.finals:
            planned = self.run.settings.final_seeds if self.run is not None else 0
            if kind == "randomised" and self._randomising is not None:
                planned = self._randomising.seeds
            self.finals[label] = SeedScores(kind, planned)
        return self.finals[label]
