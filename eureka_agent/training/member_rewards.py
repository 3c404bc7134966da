"""Rewards of the running trainings: their calls side by side, and the failures in them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from eureka_agent.component_names import changed_names_fault
from eureka_agent.parameters import Distribution
from eureka_agent.records import ParameterStage
from eureka_agent.simulation.time_limit import TimeLimitError
from eureka_agent.training.checkpoints import CheckpointKeeper
from eureka_agent.training.reward import LARGEST_REWARD, Reward, RewardContractError
from eureka_agent.training.rollout import Rollout
from eureka_agent.training.snapshot import Snapshot

REWARD_TIMEOUT = 5.0
"""Timeout of one call of a reward in seconds."""
REWARD_GRACE = 30.0
"""Seconds that a training may wait for its reward in any case."""
REWARD_SHARE = 9.0
"""Seconds of waiting allowed per second of other work, beyond the grace. A reward just below the
timeout of a call would delay the other trainings for hours."""


@dataclass
class Job:
    """A training that is queued or running."""

    name: str
    reward: Reward
    seed: int
    snapshot: Snapshot | None
    rungs: tuple[int, ...]
    """Env steps of the rungs that are ahead of it."""
    curriculum: tuple[ParameterStage, ...] = ()
    """Distributions of the environment's parameters."""


@dataclass
class Member:
    """A running training."""

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


def _overdue(member: Member) -> str:
    """Reason why a training has waited too long for its reward; empty where it has not."""
    if member.waited <= REWARD_GRACE + REWARD_SHARE * member.worked:
        return ""
    return (
        f"its calls took {member.waited:.0f} s beside {member.worked:.1f} s of all the rest,"
        f" expected at most {REWARD_SHARE:g} times that and {REWARD_GRACE:g} s; work on whole"
        " tensors, without loops over their rows"
    )


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
        try:
            total, named = wait()
            components[slot] = members[slot].checked_names(named)
        except RewardContractError as error:
            reason = f"{error.message}; {error.hint}" if error.hint else error.message
            failures[slot] = Failure(error.code, reason)
            continue
        except TimeLimitError as error:
            failures[slot] = Failure("timeout", f"one call of the reward {error}")
            continue
        finally:
            members[slot].waited += time.perf_counter() - began
        if reason := _overdue(members[slot]):
            failures[slot] = Failure("timeout", reason)
            del components[slot]
            continue
        rewards[slot] = total.view(rewards.shape[1:])
    # one check of everything: a single transfer from the device
    parts = {
        (slot, name): value for slot, named in components.items() for name, value in named.items()
    }
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
                    reason = (
                        f"{what} reaches {size:.3g}, expected less than {LARGEST_REWARD:g}: sums of"
                        " squares overflow"
                    )
                failures[slot] = Failure("not-a-number", reason)
                rewards[slot] = 0.0
    return rewards, components, failures
