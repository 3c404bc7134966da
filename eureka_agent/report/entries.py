"""The entries of the view model: trainings, standings, discarded attempts, and the one line that says most about an attempt."""

from __future__ import annotations

from dataclasses import dataclass, field

from eureka_agent.records import BASELINES, Attempt, CurvePoint, Score, Stage
from eureka_agent.report.events import TrainingKind
from eureka_agent.report.sparkline import History


@dataclass
class TrainingView:
    """A training that waits or runs."""

    job: str
    label: str
    kind: TrainingKind
    seed: int
    role: str = ""
    """A candidate's operator; which final or baseline training it is."""
    env_steps: int = 0
    fitness: float | None = None
    """The last one known."""
    history: History = field(default_factory=History)

    @property
    def is_baseline(self) -> bool:
        return self.kind in BASELINES

    def add(self, points: tuple[CurvePoint, ...]) -> None:
        """Take over new points of the curve."""
        for point in points:
            if point.fitness is not None:
                self.fitness = point.fitness
            self.history.append(self.fitness)  # no episode ended: the curve goes on level
            self.env_steps = max(self.env_steps, point.env_steps)

    def restart(self) -> None:
        """Forget the curve: the training starts from its first step."""
        self.env_steps, self.fitness, self.history = 0, None, History()


@dataclass(frozen=True)
class Standing:
    """One line of the leaderboard."""

    id: str
    operator: str
    fitness: float
    """Mean over its trainings in the search."""
    seeds: int
    """Trainings that this is the mean of."""
    episode_length: float | None
    remark: str
    """The diagnosis's first finding."""


@dataclass(frozen=True)
class Discarded:
    """One attempt that the critic threw out, that failed in training, or that was stopped there."""

    id: str
    operator: str
    reason: str
    stage: Stage


@dataclass
class SeedScores:
    """The trainings behind one final score."""

    kind: TrainingKind
    planned: int
    queued: int = 0
    ended: int = 0
    fitness: list[float | None] = field(default_factory=list)
    score: Score | None = None


def standing(attempt: Attempt) -> Standing:
    """The leaderboard's line of a trained attempt. Its fitness must be known."""
    assert attempt.fitness is not None
    lengths = attempt.diagnosis.episode_length_values if attempt.diagnosis is not None else ()
    length = next((value for value in reversed(lengths) if value is not None), None)
    return Standing(
        id=attempt.id,
        operator=attempt.proposal.operator.value,
        fitness=attempt.fitness,
        seeds=len(attempt.fitness_per_seed),
        episode_length=length,
        remark=remark(attempt),
    )


def remark(attempt: Attempt) -> str:
    """The one line that says most about an attempt: its first finding, or why it ended."""
    if attempt.diagnosis is not None and attempt.diagnosis.findings:
        return attempt.diagnosis.findings[0].message
    return attempt.reason or first_error(attempt)


def first_error(attempt: Attempt) -> str:
    """The critic's first error as one line; empty where there is none."""
    if attempt.verdict is None:
        return ""
    for finding in attempt.verdict.findings:
        if finding.severity == "error":
            place = f" line {finding.line}" if finding.line is not None else ""
            return f"{finding.code}{place}: {finding.message}"
    return ""
