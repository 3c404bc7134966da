"""Counts of the trainings that train, wait for a slot, or wait at a rung for a decision."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from eureka_agent import wording
from eureka_agent.report.entries import TrainingView

AT_A_RUNG = ("review", "others")


@dataclass(frozen=True)
class Activity:
    """Numbers of trainings."""

    training: int
    for_a_slot: int
    at_a_rung: int
    for_a_review: int
    """Part of those at a rung; the others there wait for a comparison."""
    at_a_rung_since: float
    """Arrival of the first of them there, on the view's clock; 0 without any."""

    @property
    def stands_still(self) -> bool:
        """True where nothing trains, and nothing waits for a slot."""
        return self.training == self.for_a_slot == 0

    def waiting(self, now: float) -> str:
        """`3 waiting, 4 at a rung for 2:11 (2 for a review)`; empty where none waits."""
        parts = [f"{self.for_a_slot} waiting"] if self.for_a_slot else []
        if self.at_a_rung:
            time = wording.clock_time(now - self.at_a_rung_since)
            reviews = f" ({self.for_a_review} for a review)" if self.for_a_review else ""
            parts.append(f"{self.at_a_rung} at a rung for {time}{reviews}")
        return ", ".join(parts)


def activity(running: Iterable[TrainingView], queued: Iterable[TrainingView]) -> Activity:
    """Activity of trainings with a slot, now or before, and of those that wait for their first."""
    running, queued = list(running), list(queued)
    at_rungs = [training for training in (*running, *queued) if training.waits_for in AT_A_RUNG]
    training = sum(each.waits_for == "" for each in running)
    return Activity(
        training=training,
        for_a_slot=len(running) + len(queued) - training - len(at_rungs),
        at_a_rung=len(at_rungs),
        for_a_review=sum(each.waits_for == "review" for each in at_rungs),
        at_a_rung_since=min((each.waits_since for each in at_rungs), default=0.0),
    )
