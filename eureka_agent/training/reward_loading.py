"""From a reward's specification to a function of tensors: the one place that looks at its kind."""

from __future__ import annotations

from collections.abc import Sequence

from eureka_agent.rewards import RewardSpecification
from eureka_agent.task import Constant, QuaternionOrder, Variable
from eureka_agent.training.reward import RewardFunction


def load_reward(
    reward: RewardSpecification,
    variables: Sequence[Variable],
    *,
    constants: Sequence[Constant] = (),
    quaternion_order: QuaternionOrder = "wxyz",
) -> RewardFunction:
    """The reward as a function that runs in this process. Raises RewardLoadError as
    `RewardFunction.from_source` does."""
    match reward.kind:
        case "code":
            return RewardFunction.from_source(
                reward.source,
                variables,
                reward.trusted,
                constants=constants,
                quaternion_order=quaternion_order,
            )
