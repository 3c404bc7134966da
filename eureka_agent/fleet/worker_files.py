"""Policies and states of trainings, taken from a worker's inbox with checks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from eureka_agent.archive.snapshots import SnapshotStore
from eureka_agent.errors import WorkerDiedError
from eureka_agent.fleet.jobs import TrainingJob
from eureka_agent.protocol.events import RungReached, Trained
from eureka_agent.sandbox.inbox import (
    DO_NOT_TRUST,
    Inbox,
    WorkerFileError,
    check_policy,
    check_state,
)

MOST_POLICIES = 100
"""Policies that a worker may send for one training."""


class WorkerFiles:
    """Files of one training worker. Each method raises WorkerDiedError for an invalid file."""

    def __init__(self, inbox: Inbox, scratch: Path) -> None:
        """Policies go to a folder in `scratch`."""
        self._inbox = inbox
        self._policies = scratch / "policies"

    async def store_state(self, job: TrainingJob, snapshot: str, store: SnapshotStore) -> None:
        """Store a training's state, after its points, since a state is of no use without them."""
        store.put_points(job.name, job.points)
        await self._take(snapshot, store.state_path(job.name), check_state)

    async def take_policy(self, job: TrainingJob, name: str, suffix: str) -> Path:
        """Move a policy out of the worker's reach."""
        destination = self._policies / f"{job.order[1]}-{suffix}.safetensors"
        await self._take(name, destination, check_policy)
        return destination

    async def take_rung(self, job: TrainingJob, event: RungReached) -> Path:
        """Store a training's policy at a rung, where a resumed search finds it."""
        if job.snapshots is None:
            return await self.take_policy(job, event.policy, f"rung-{event.env_steps}")
        destination = job.snapshots.rung_path(job.name, event.env_steps)
        await self._take(event.policy, destination, check_policy)
        return destination

    async def take_policies(self, job: TrainingJob, event: Trained) -> dict[int, Path]:
        """Move the policies of a finished training, by checkpoint."""
        known = range(len(event.outcome.checkpoints))
        if (
            event.outcome.best_checkpoint not in event.policies
            or len(event.policies) > MOST_POLICIES
            or not all(checkpoint in known for checkpoint in event.policies)
        ):
            raise violation(
                f"it gave the policies of checkpoints {str(sorted(event.policies)[:5])[:100]} "
                f"for an outcome at {str(event.outcome.best_checkpoint)[:100]} of {len(known)}"
            )
        return {
            checkpoint: await self.take_policy(job, name, str(checkpoint))
            for checkpoint, name in event.policies.items()
        }

    def drop(self, *names: str) -> None:
        """Delete files."""
        for name in names:
            self._inbox.drop(name)

    async def _take(self, name: str, destination: Path, check: Callable[[Path], None]) -> None:
        try:
            await self._inbox.take(name, destination, check)
        except WorkerFileError as error:
            raise violation(error.message, error.hint) from None


def violation(what: str, hint: str = DO_NOT_TRUST) -> WorkerDiedError:
    """The error for a worker that breaks the protocol."""
    return WorkerDiedError(f"the worker broke the protocol: {what}", hint)
