"""A training as those see it who ask for it: the job, whom it asks at its pauses, and its
result."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from eureka_agent.protocol.messages import Train
from eureka_agent.records import CurvePoint, Outcome

PauseObserver = Callable[[tuple[CurvePoint, ...], Path | None], Awaitable[str]]
ProgressObserver = Callable[[str, tuple[CurvePoint, ...]], None]


@dataclass(frozen=True)
class TrainingResult:
    """What one training gave: an outcome with its policy, or why there is none."""

    outcome: Outcome | None
    points: tuple[CurvePoint, ...]
    policies: Mapping[int, Path]
    """Safetensors files of the best checkpoints by their index, none for a failure; they stay until
    the pool is closed."""
    failure_code: str = ""
    """`"not-a-number"`, `"raised"`, `"timeout"`, `"contract"` (the reward's fault), `"fitness"`,
    `"worker-died"`, `"fault"`, or `"stopped"` by the caller at a pause; empty for an outcome."""
    failure_reason: str = ""
    retries: int = 0
    """Times that it was started again because its worker died."""
    timers: dict[str, float] = field(default_factory=dict)
    """Its worker's wall seconds up to here, by part: physics, policy, reward, update, rest."""

    @property
    def policy(self) -> Path | None:
        """That of the checkpoint which the outcome names."""
        return None if self.outcome is None else self.policies[self.outcome.best_checkpoint]


@dataclass
class TrainingJob:
    """A training that was asked for, until its result is there."""

    command: Train
    result: asyncio.Future[TrainingResult]
    order: tuple[int, int]
    """Priority, then the order in which it was asked for: what is smaller goes first."""
    points: list[CurvePoint] = field(default_factory=list)
    state: Path | None = None
    """Saved state from which it goes on; `points` begins with the points that belong to it."""
    retries: int = 0
    on_pause: PauseObserver | None = None
    """Asked at each of the command's pauses with the points so far and the policy of the moment
    (safetensors, gone once there is an answer; None for a pause that an earlier process passed):
    why the training is to be stopped, or "" to go on."""
