"""Checkpoints of a training, and its state as a file, to resume it bit for bit in any slot."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field, ValidationError
from safetensors import SafetensorError
from safetensors.torch import save
from torch import Tensor

from eureka_agent.array_files import open_tensors
from eureka_agent.errors import RunFolderError
from eureka_agent.records import CheckpointRecord, CurvePoint, Record
from eureka_agent.summaries import checkpoint_iterations, summarize


class CheckpointKeeper:
    """Collects curve points, closes checkpoints, keeps the policies of the best few."""

    def __init__(
        self, iterations: int, checkpoints: int, policies: int = 1, counts_from: int = 0
    ) -> None:
        """`policies`: number of policies kept. `counts_from`: env step up to which a checkpoint is
        worse than any later one, since its episodes had other parameters."""
        self._due = frozenset(checkpoint_iterations(iterations, checkpoints))
        self._last = iterations
        self._most = policies
        self._counts_from = counts_from
        self.recent: list[CurvePoint] = []
        """Points since the last checkpoint."""
        self.iterations = 0
        """Iterations added so far."""
        self.records: list[CheckpointRecord] = []
        self.policies: dict[int, dict[str, Tensor]] = {}
        """Policies of the checkpoints with the highest fitness, by checkpoint index. Of equal ones,
        or ones without fitness, the later counts as better."""

    @property
    def best(self) -> int:
        """Index of the best checkpoint so far; 0 before the first."""
        return max(self.policies, key=self._rank, default=0)

    def resume(
        self,
        iterations: int,
        records: Sequence[CheckpointRecord],
        recent: Sequence[CurvePoint],
        policies: Mapping[int, Mapping[str, Tensor]],
    ) -> None:
        """Continue from the state of another keeper of the same training."""
        self.iterations, self.recent, self.records = iterations, list(recent), list(records)
        self.policies = {index: dict(policy) for index, policy in policies.items()}

    @property
    def finished(self) -> bool:
        return self.iterations >= self._last

    def add(self, point: CurvePoint, policy: Callable[[], dict[str, Tensor]]) -> None:
        """Add an iteration. `policy` copies the member's policy, and is called if that is kept."""
        self.recent.append(point)
        self.iterations += 1
        if self.iterations not in self._due:
            return
        self.records.append(summarize(self.recent))
        self.recent = []
        newest = len(self.records) - 1
        kept = sorted((*self.policies, newest), key=self._rank)[-self._most :]
        if newest in kept:
            known = {**self.policies, newest: policy()}
            self.policies = {index: known[index] for index in sorted(kept)}

    def _rank(self, index: int) -> tuple[bool, bool, float, int]:
        record = self.records[index]
        counts, fitness = record.env_steps > self._counts_from, record.fitness
        return counts, fitness is not None, fitness or 0.0, index


_STATE, _POLICY, _KEY = "state", "policy", "training"


class TrainingRecord(Record):
    """Numbers of a training that are not tensors."""

    seed: int
    iterations: int
    env_steps: int
    seconds: float
    """Wall seconds so far."""
    checkpoints: tuple[CheckpointRecord, ...]
    recent: tuple[CurvePoint, ...] = Field(default=())
    """Points since the last checkpoint."""

    @property
    def component_names(self) -> tuple[str, ...] | None:
        """Component names as in the curves, the order of the first call; None before it."""
        known = self.recent or self.checkpoints
        return tuple(known[0].components) if known else None


@dataclass(frozen=True)
class Snapshot:
    """A training's state."""

    record: TrainingRecord
    state: Mapping[str, Tensor]
    """`StackedMembers.member_state`, and the current episodes."""
    policies: Mapping[int, Mapping[str, Tensor]]
    """Policies of the best checkpoints so far, by checkpoint index."""


def snapshot_bytes(snapshot: Snapshot) -> bytes:
    """A snapshot as a safetensors file."""
    tensors = {f"{_STATE}.{name}": value for name, value in snapshot.state.items()}
    for index, policy in snapshot.policies.items():
        tensors |= {f"{_POLICY}.{index}.{name}": value for name, value in policy.items()}
    return save(tensors, {_KEY: snapshot.record.model_dump_json()})


def load_snapshot(path: Path) -> Snapshot:
    """Read a file of `snapshot_bytes` without unpickling. Raises RunFolderError."""
    try:
        with open_tensors(path, "pt") as file:
            record = TrainingRecord.model_validate_json((file.metadata() or {}).get(_KEY, ""))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  (not a mapping)
    except (OSError, SafetensorError, ValidationError) as error:
        what = f"cannot read the snapshot {str(path)!r}: {error}"
        raise RunFolderError(what, "delete it: the training then starts over") from None
    policies: dict[int, dict[str, Tensor]] = {}
    state = {}
    for name, value in tensors.items():
        kind, _, rest = name.partition(".")
        if kind == _POLICY:
            index, _, tensor_name = rest.partition(".")
            policies.setdefault(int(index), {})[tensor_name] = value
        else:
            state[rest] = value
    return Snapshot(record, state, policies)
