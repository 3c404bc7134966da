"""A designed reward and the task's sparse one by their signs, as in Auto MC-Reward (Li et al. 2023,
"Auto MC-Reward: Automated Dense Reward Design with Large Language Models for Minecraft")."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from eureka_agent.errors import EnvironmentFaultError, EnvironmentLoadError, RewardLoadError
from eureka_agent.settings import TrainingSettings
from eureka_agent.simulation.loading import LoadedEnvironment
from eureka_agent.simulation.time_limit import TimeLimitError
from eureka_agent.task import Task
from eureka_agent.training.reward import Result, Reward, RewardContractError, RewardFunction

DENSE_WEIGHT = 0.1
"""Weight of the designed reward's sign beside the sparse one's, from the paper."""


class SignCombination:
    """`sgn(sparse) + 0.1 sgn(dense)`, so that no dense term outweighs the task's own reward. The
    components are the dense reward's, before the sign."""

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
    if loaded.folder is None:
        return "the task's sparse reward"
    return str(loaded.folder / task.sparse_reward)


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
    cls = loaded.environment_class
    try:
        return RewardFunction.from_source(
            source,
            cls.all_variables(),
            allow_private=True,
            constants=cls.constants,
            quaternion_order=cls.quaternion_order,
        )
    except RewardLoadError as error:
        raise EnvironmentLoadError(f"{_place(loaded, task)}, {error.message}", error.hint) from None
