"""Checkpoints of one training: their iterations, their summaries, and the policies kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from torch import Tensor

from eureka_agent.records import CheckpointRecord, CurvePoint
from eureka_agent.summaries import checkpoint_iterations, summarize


class CheckpointKeeper:
    """Collects curve points, closes checkpoints, keeps the policies of the best few."""

    def __init__(
        self, iterations: int, checkpoints: int, policies: int = 1, counts_from: int = 0
    ) -> None:
        """`policies`: number of policies kept. `counts_from`: env step up to which a checkpoint is
        worse than any later one, since its episodes had other parameters."""
        self._due = frozenset(checkpoint_iterations(iterations, checkpoints))
        self._iterations = iterations
        self._most = policies
        self._counts_from = counts_from
        self._points: list[CurvePoint] = []
        self._seen = 0
        self.records: list[CheckpointRecord] = []
        self.policies: dict[int, dict[str, Tensor]] = {}
        """Policies of the checkpoints with the highest fitness, by checkpoint index. Of equal ones,
        or ones without fitness, the later counts as better."""

    @property
    def best(self) -> int:
        """Index of the best checkpoint so far; 0 before the first."""
        return max(self.policies, key=self._rank, default=0)

    @property
    def iterations(self) -> int:
        """Iterations added so far."""
        return self._seen

    @property
    def recent(self) -> tuple[CurvePoint, ...]:
        """Points since the last checkpoint."""
        return tuple(self._points)

    def resume(
        self,
        iterations: int,
        records: Sequence[CheckpointRecord],
        recent: Sequence[CurvePoint],
        policies: Mapping[int, Mapping[str, Tensor]],
    ) -> None:
        """Continue from the state of another keeper of the same training."""
        self._seen, self._points, self.records = iterations, list(recent), list(records)
        self.policies = {index: dict(policy) for index, policy in policies.items()}

    @property
    def finished(self) -> bool:
        return self._seen >= self._iterations

    def add(self, point: CurvePoint, policy: Callable[[], dict[str, Tensor]]) -> None:
        """Add an iteration. `policy` copies the member's policy, and is called if that is kept."""
        self._points.append(point)
        self._seen += 1
        if self._seen not in self._due:
            return
        self.records.append(summarize(self._points))
        self._points = []
        newest = len(self.records) - 1
        kept = sorted((*self.policies, newest), key=self._rank)[-self._most :]
        if newest in kept:
            self.policies = {
                index: policy() if index == newest else self.policies[index]
                for index in sorted(kept)
            }

    def _rank(self, index: int) -> tuple[bool, bool, float, int]:
        record = self.records[index]
        counts, fitness = record.env_steps > self._counts_from, record.fitness
        return counts, fitness is not None, fitness or 0.0, index
