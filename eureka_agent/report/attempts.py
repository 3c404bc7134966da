"""Attempts of a run in a view: counted, ranked, discarded."""

from __future__ import annotations

from collections import Counter
from itertools import islice

from eureka_agent.feedback.standing import with_strengths
from eureka_agent.feedback_records import Given
from eureka_agent.journal.entries import BaseEntry, FeedbackGiven
from eureka_agent.journal.state import Recorded, changed, heard
from eureka_agent.ranking import ranked
from eureka_agent.records import Attempt, Stage

TRAINING_ENDED = (Stage.TRAINED, Stage.FAILED)
DISCARDED = (Stage.REJECTED, Stage.FAILED)


class Attempts:
    """Attempts after the entries so far."""

    def __init__(self) -> None:
        self._by_id: dict[str, Attempt] = {}
        self._stages: Counter[Stage] = Counter()
        self._discarded: dict[str, None] = {}
        """Ids of discarded attempts, in order."""
        self._leaderboard: list[Attempt] | None = None
        self._feedback: tuple[Given, ...] = ()
        self._in_training: dict[str, bool] = {}
        """Accepted attempts with a queued training; True once it has ended."""
        self.repeats = 0

    def __getitem__(self, attempt: str) -> Attempt:
        return self._by_id[attempt]

    def get(self, attempt: str) -> Attempt | None:
        """Attempt with this id, if any."""
        return self._by_id.get(attempt)

    # ── facts ─────────────────────────────────────────────────────────────────────────────────────

    @property
    def proposed(self) -> int:
        """Number of proposals, revisions included."""
        return len(self._by_id)

    @property
    def accepted(self) -> int:
        """Number of attempts that the critic accepted."""
        return self.proposed - self._stages[Stage.PROPOSED] - self.rejected

    @property
    def rejected(self) -> int:
        return self._stages[Stage.REJECTED]

    @property
    def failed(self) -> int:
        return self._stages[Stage.FAILED]

    @property
    def leaderboard(self) -> list[Attempt]:
        """Trained attempts, best first, with their strengths where strengths rank."""
        if self._leaderboard is None:
            known = tuple(self._by_id.values())
            self._leaderboard = ranked(with_strengths(known, self._feedback))
        return self._leaderboard

    def discarded(self, most: int) -> list[Attempt]:
        """Last discarded attempts, the latest first."""
        return [self._by_id[name] for name in islice(reversed(self._discarded), most)]

    @property
    def trainings(self) -> int:
        """Number of ended trainings, without those that a review ended."""
        ended = sum(self._stages[stage] for stage in TRAINING_ENDED)
        return ended + sum(self._in_training.values()) + self.repeats

    @property
    def iterations(self) -> set[int]:
        """Generations with a proposal."""
        return {each.iteration for each in self._by_id.values()}

    def trained_samples(self, iteration: int) -> set[int]:
        """Samples of a generation with a training."""
        return {
            each.sample
            for each in self._by_id.values()
            if each.iteration == iteration
            and (each.stage in TRAINING_ENDED or each.id in self._in_training)
        }

    # ── entries ───────────────────────────────────────────────────────────────────────────────────

    def change(self, entry: BaseEntry) -> None:
        """Apply an entry. Raises KeyError for one on an attempt without a proposal."""
        self._put(changed(self._by_id, Recorded(0, "", 0.0, entry)))

    def hear(self, *feedback: Given) -> None:
        """Add feedback from before this process."""
        self._feedback, self._leaderboard = feedback, None

    def hear_more(self, entry: FeedbackGiven) -> None:
        """Apply an entry on feedback."""
        self.hear(*heard(self._feedback, entry, entry.number))

    def take_in(self, attempt: Attempt) -> int:
        """Add an attempt of an earlier process. Returns its env steps."""
        self._put(attempt)
        outcomes = (attempt.outcome, *(repeat.outcome for repeat in attempt.repeats))
        return sum(each.env_steps for each in outcomes if each is not None)

    def begin_training(self, name: str) -> None:
        """Note that a candidate's training is queued."""
        attempt = self._by_id.get(name)
        if attempt is not None and attempt.stage is Stage.ACCEPTED:
            self._in_training[name] = False

    def end_training(self, name: str) -> None:
        """Note that it has ended."""
        if name in self._in_training:
            self._in_training[name] = True

    def drop_trainings(self) -> None:
        """Forget the trainings of an earlier process."""
        self._in_training.clear()

    def _put(self, attempt: Attempt) -> None:
        before = self._by_id.get(attempt.id)
        self._by_id[attempt.id] = attempt
        if before is not None:
            self._stages[before.stage] -= 1
            self.repeats -= len(before.repeats)
        self._stages[attempt.stage] += 1
        self.repeats += len(attempt.repeats)
        if attempt.stage is not Stage.ACCEPTED:
            # the training of a rejected attempt's revision counts in its place
            self._in_training.pop(attempt.id, None)
        if attempt.stage not in DISCARDED:
            self._discarded.pop(attempt.id, None)
        elif before is None or before.stage is not attempt.stage:
            self._discarded[attempt.id] = None
        self._leaderboard = None
