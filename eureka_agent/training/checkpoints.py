"""Checkpoints of one training: when they are due, what they sum up, and which policy is kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from torch import Tensor

from eureka_agent.records import CheckpointRecord, CurvePoint
from eureka_agent.summaries import checkpoint_iterations, summarize


class CheckpointKeeper:
    """Collects curve points, closes a checkpoint where one is due, keeps the policy of the best one."""

    def __init__(self, iterations: int, checkpoints: int) -> None:
        self._due = frozenset(checkpoint_iterations(iterations, checkpoints))
        self._iterations = iterations
        self._points: list[CurvePoint] = []
        self._seen = 0
        self.records: list[CheckpointRecord] = []
        self.best = 0
        """Index of the checkpoint with the highest fitness; the last one where none has any."""
        self.policy: dict[str, Tensor] = {}
        """The policy at the best checkpoint."""

    @property
    def iterations(self) -> int:
        """Those taken in so far."""
        return self._seen

    @property
    def recent(self) -> tuple[CurvePoint, ...]:
        """Points since the last checkpoint."""
        return tuple(self._points)

    def resume(
        self,
        iterations: int,
        records: Sequence[CheckpointRecord],
        best: int,
        recent: Sequence[CurvePoint],
        policy: Mapping[str, Tensor],
    ) -> None:
        """Go on from what another keeper of the same training had."""
        self._seen, self._points = iterations, list(recent)
        self.records, self.best, self.policy = list(records), best, dict(policy)

    @property
    def finished(self) -> bool:
        return self._seen >= self._iterations

    def add(self, point: CurvePoint, policy: Callable[[], dict[str, Tensor]]) -> None:
        """Take in an iteration; `policy` copies the member's policy and is called only when it is kept."""
        self._points.append(point)
        self._seen += 1
        if self._seen not in self._due:
            return
        record = summarize(self._points)
        self._points = []
        self.records.append(record)
        best = self.records[self.best].fitness
        if best is None or (record.fitness is not None and record.fitness >= best):
            self.best = len(self.records) - 1
            self.policy = policy()
