"""A training between two iterations as a file, to resume bit for bit in any slot or process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field, ValidationError
from safetensors import SafetensorError
from safetensors.torch import save
from torch import Tensor

from eureka_agent.array_files import open_tensors
from eureka_agent.errors import RunFolderError
from eureka_agent.records import CheckpointRecord, CurvePoint, Record

_STATE, _POLICY, _KEY = "state.", "policy.", "training"


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
    """`Population.member_state`, and the current episodes."""
    policies: Mapping[int, Mapping[str, Tensor]]
    """Policies of the best checkpoints so far, by checkpoint index."""


def snapshot_bytes(snapshot: Snapshot) -> bytes:
    """A snapshot as a safetensors file."""
    tensors = {f"{_STATE}{name}": value for name, value in snapshot.state.items()}
    for index, policy in snapshot.policies.items():
        tensors |= {f"{_POLICY}{index}.{name}": value for name, value in policy.items()}
    return save(tensors, {_KEY: snapshot.record.model_dump_json()})


def load_snapshot(path: Path) -> Snapshot:
    """Read a file of `snapshot_bytes` without unpickling. Raises RunFolderError."""
    try:
        with open_tensors(path, "pt") as file:
            record = TrainingRecord.model_validate_json((file.metadata() or {}).get(_KEY, ""))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  (not a mapping)
    except (OSError, SafetensorError, ValidationError) as error:
        raise RunFolderError(
            f"cannot read the snapshot {str(path)!r}: {error}",
            "delete it: the training then starts over",
        ) from None
    policies: dict[int, dict[str, Tensor]] = {}
    for name, value in tensors.items():
        if name.startswith(_POLICY):
            index, _, tensor_name = name.removeprefix(_POLICY).partition(".")
            policies.setdefault(int(index), {})[tensor_name] = value
    state = {
        name.removeprefix(_STATE): value
        for name, value in tensors.items()
        if name.startswith(_STATE)
    }
    return Snapshot(record, state, policies)
