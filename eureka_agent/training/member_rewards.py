"""Rewards of the running trainings: their calls side by side, and the failures in them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from eureka_agent.component_names import changed_names_fault
from eureka_agent.errors import EnvironmentFaultError, EnvironmentLoadError, RewardLoadError
from eureka_agent.parameters import Distribution
from eureka_agent.records import ParameterStage
from eureka_agent.rewards import baseline
from eureka_agent.settings import TrainingSettings
from eureka_agent.simulation.loading import LoadedEnvironment
from eureka_agent.simulation.time_limit import TimeLimitError
from eureka_agent.task import Task
from eureka_agent.training.reward import (
    LARGEST_REWARD,
    Result,
    Reward,
    RewardContractError,
    RewardFunction,
    load_reward,
)
from eureka_agent.training.rollout import Rollout
from eureka_agent.training.snapshot import CheckpointKeeper, Snapshot

REWARD_TIMEOUT = 5.0
"""Timeout of one call of a reward in seconds."""
REWARD_GRACE = 30.0
"""Seconds that a training may wait for its reward in any case."""
REWARD_SHARE = 9.0
"""Seconds of waiting allowed per second of other work, beyond the grace. A reward just below the
timeout of a call would delay the other trainings for hours."""
DENSE_WEIGHT = 0.1
"""Weight of the designed reward's sign beside the sparse one's, from the paper."""


class SignCombination:
    """A designed reward and the task's sparse one by their signs, `sgn(sparse) + 0.1 sgn(dense)`,
    so that no dense term outweighs the task's own reward: as in Auto MC-Reward (Li et al. 2023).
    The components are the dense reward's, before the sign."""

    def __init__(self, dense: Reward, sparse: RewardFunction, place: str) -> None:
        """`sparse` is called in this process: it is the environment's own code, at `place`."""
        self._dense = dense
        self._sparse = sparse
        self._place = place
        self.arguments = tuple(dict.fromkeys((*dense.arguments, *sparse.arguments)))

    def begin(self, values: Mapping[str, Tensor], timeout_s: float) -> Callable[[], Result]:
        """See `Reward`. The wait raises EnvironmentFaultError for a fault of the sparse reward."""
        wait = self._dense.begin({name: values[name] for name in self._dense.arguments}, timeout_s)

        def combined() -> Result:
            dense, components = wait()
            sparse = self._sparse_total(values, timeout_s)
            # a sign would hide that a total is infinite
            sign = torch.where(dense.isfinite(), dense.sign(), dense)
            return sparse.sign() + DENSE_WEIGHT * sign, components

        return combined

    def _sparse_total(self, values: Mapping[str, Tensor], timeout_s: float) -> Tensor:
        try:
            total, _ = self._sparse.begin(values, timeout_s)()
        except RewardContractError as error:
            raise EnvironmentFaultError(f"{self._place}, {error.message}", error.hint) from None
        except TimeLimitError as error:
            what = f"{self._place}: one call of the reward {error}"
            raise EnvironmentFaultError(what, "make it faster") from None
        # its sign would be 0 or 1, as if nothing were wrong
        if not bool(total.isfinite().all()):
            value = total[~total.isfinite()][0].item()
            raise EnvironmentFaultError(
                f"{self._place}: the reward is {value}, expected a finite number in every step",
                "guard divisions, roots and logarithms",
            )
        return total


def combination(
    settings: TrainingSettings, loaded: LoadedEnvironment, task: Task
) -> Callable[[Reward], Reward]:
    """Makes of a designed reward the one to train on, as the setting `combine` says. Raises as
    `sparse_reward`."""
    if settings.combine == "none":
        return lambda reward: reward
    sparse, place = sparse_reward(loaded, task), _place(loaded, task)
    return lambda reward: SignCombination(reward, sparse, place)


def _place(loaded: LoadedEnvironment, task: Task) -> str:
    folder = loaded.folder
    return "the task's sparse reward" if folder is None else str(folder / task.sparse_reward)


def sparse_reward(loaded: LoadedEnvironment, task: Task) -> RewardFunction:
    """The task's sparse reward. Raises EnvironmentLoadError where there is none that loads, or
    where another metric counts."""
    source = loaded.reward_source(task, "sparse")
    if source is None or loaded.written is not None:
        why = "another metric counts" if source is not None else "the task has no sparse reward"
        raise EnvironmentLoadError(
            f"--combine sign adds up signs of a reward and of the task's sparse one, but {why}",
            "leave --combine out",
        )
    try:
        return load_reward(baseline(source), loaded.environment_class)
    except RewardLoadError as error:
        raise EnvironmentLoadError(f"{_place(loaded, task)}, {error.message}", error.hint) from None


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
