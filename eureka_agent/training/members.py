"""Rewards of the running trainings: their calls side by side, and the failures in them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from pydantic import Field, ValidationError
from safetensors import SafetensorError
from safetensors.torch import save
from torch import Tensor

from eureka_agent.array_files import open_tensors
from eureka_agent.errors import RunFolderError
from eureka_agent.parameters import Distribution
from eureka_agent.records import CheckpointRecord, CurvePoint, ParameterStage, Record
from eureka_agent.reward_names import changed_names_fault
from eureka_agent.simulation.user_modules import TimeLimitError
from eureka_agent.summaries import checkpoint_iterations, summarize
from eureka_agent.training.learned import LearnedPay
from eureka_agent.training.reward import LARGEST_REWARD, Reward, RewardContractError
from eureka_agent.training.rollout import Rollout


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
        """Policies of the best checkpoints by index; of equal ones the later counts as better."""

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
    record: TrainingRecord
    state: Mapping[str, Tensor]
    """`StackedMembers.member_state`, and the current episodes."""
    policies: Mapping[int, Mapping[str, Tensor]]
    """Policies of the best checkpoints so far, by checkpoint index."""


def snapshot_bytes(snapshot: Snapshot) -> bytes:
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


REWARD_TIMEOUT = 5.0
"""Timeout of one call of a reward in seconds."""
REWARD_GRACE = 30.0
"""Seconds that a training may wait for its reward in any case."""
REWARD_SHARE = 9.0
"""Seconds of waiting allowed per second of other work, beyond the grace. A reward just below the
timeout of a call would delay the other trainings for hours."""


@dataclass
class Job:
    name: str
    reward: Reward
    seed: int
    snapshot: Snapshot | None
    rungs: tuple[int, ...]
    """Env steps of the rungs that are ahead of it."""
    curriculum: tuple[ParameterStage, ...] = ()
    """Distributions of the environment's parameters."""
    learned: LearnedPay | None = None
    """Its pay, where that is learned."""


@dataclass
class Member:
    job: Job
    keeper: CheckpointKeeper
    began: float
    """`time.perf_counter` at its start, minus the seconds trained before a resume."""
    env_steps: int = 0
    waited: float = 0.0
    """Seconds of waiting for its reward, the wait for its neighbours' included."""
    worked: float = 0.0
    """Seconds of its iterations without rewards."""
    component_names: tuple[str, ...] | None = None
    """Component names of the first call; None before it."""
    parameters: Distribution | None = None
    """Distribution that its rows were given; None before its first iteration in this slot."""

    def checked_names(self, components: dict[str, Tensor]) -> dict[str, Tensor]:
        """Components in the first call's order. Raises RewardContractError for other names."""
        if self.component_names is None:
            self.component_names = tuple(components)
        if fault := changed_names_fault(self.component_names, components):
            raise RewardContractError("contract", *fault)
        return {name: components[name] for name in self.component_names}


@dataclass(frozen=True)
class Failure:
    """End of a training by a fault of its reward."""

    code: str
    reason: str


def member_rewards(
    members: Mapping[int, Member], rollout: Rollout, timeout: float
) -> tuple[Tensor, dict[int, dict[str, Tensor]], dict[int, Failure]]:
    """Call all rewards: rewards, zero after a failure; components and failures by slot."""
    rewards = torch.zeros(rollout.terminated.shape, device=rollout.terminated.device)
    components: dict[int, dict[str, Tensor]] = {}
    failures: dict[int, Failure] = {}
    waits = {}
    # started at once: rewards in processes of their own work side by side
    for slot, member in members.items():
        reward = member.job.reward
        values = {name: rollout.arguments[name][slot].flatten(0, 1) for name in reward.arguments}
        waits[slot] = reward.begin(values, timeout)
    for slot, wait in waits.items():
        began = time.perf_counter()
        member = members[slot]
        try:
            total, named = wait()
            named = member.checked_names(named)
        except RewardContractError as error:
            reason = f"{error.message}; {error.hint}" if error.hint else error.message
            failures[slot] = Failure(error.code, reason)
            continue
        except TimeLimitError as error:
            failures[slot] = Failure("timeout", f"one call of the reward {error}")
            continue
        finally:
            member.waited += time.perf_counter() - began
        if member.waited > REWARD_GRACE + REWARD_SHARE * member.worked:
            reason = (
                f"its calls took {member.waited:.0f} s beside {member.worked:.1f} s of all the rest"
                f", expected at most {REWARD_SHARE:g} times that and {REWARD_GRACE:g} s; work on"
                " whole tensors, without loops over their rows"
            )
            failures[slot] = Failure("timeout", reason)
            continue
        components[slot], rewards[slot] = named, total.view(rewards.shape[1:])
    # one check of everything: a single transfer from the device
    pairs = ((slot, each) for slot, named in components.items() for each in named.items())
    parts = {(slot, name): value for slot, (name, value) in pairs}
    parts |= {(slot, ""): rewards[slot].flatten() for slot in components}
    if parts:
        table = torch.stack(list(parts.values()))
        broken = torch.stack([(~table.isfinite()).sum(dim=1), table.abs().amax(dim=1)], dim=1)
        for (slot, name), (count, size) in zip(parts, broken.tolist(), strict=True):
            if (count or size >= LARGEST_REWARD) and slot not in failures:
                what = f"component {name!r}" if name else "the total"
                steps = rewards[slot].numel()
                reason = f"{what} is NaN or infinite in {count:.0f} of {steps} steps"
                if not count:
                    most = f"{LARGEST_REWARD:g}: sums of squares overflow"
                    reason = f"{what} reaches {size:.3g}, expected less than {most}"
                failures[slot] = Failure("not-a-number", reason)
                rewards[slot] = 0.0
    return rewards, components, failures
