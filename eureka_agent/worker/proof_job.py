"""One training by another library's PPO, with the reward in a process of its own."""

from __future__ import annotations

import time
from collections.abc import Mapping

from torch import Tensor

from eureka_agent.errors import EurekaError
from eureka_agent.protocol.commands import Prove
from eureka_agent.protocol.events import Proved
from eureka_agent.simulation.loading import LoadedEnvironment
from eureka_agent.simulation.time_limit import TimeLimitError
from eureka_agent.task import Task
from eureka_agent.training.distributions import distribution_of
from eureka_agent.training.libraries import train_with, version_of
from eureka_agent.training.libraries.rewarded import RewardedEnvironment
from eureka_agent.training.member_rewards import REWARD_TIMEOUT, combination
from eureka_agent.training.policy import policy_bytes
from eureka_agent.worker.channel import File
from eureka_agent.worker.nursery import Nursery
from eureka_agent.worker.remote_reward import RemoteReward


def prove(
    command: Prove, loaded: LoadedEnvironment, task: Task, nursery: Nursery
) -> list[File | Proved]:
    """Train, and send the last policy. Raises EurekaError for a missing library, a reward that
    fails, and an environment that the library cannot train on."""
    settings, cls = command.settings, loaded.environment_class
    environment = loaded.make(task, settings.num_envs, seed=command.seed)
    try:
        reward = RemoteReward.on(cls, nursery, command.reward, settings.num_envs)
        try:
            used = combination(settings, loaded, task)(reward)

            def total(values: Mapping[str, Tensor]) -> Tensor:
                return used.begin(values, REWARD_TIMEOUT)()[0]

            rewarded = RewardedEnvironment(environment, used.arguments, total)
            began = time.perf_counter()
            tensors = train_with(command.library, rewarded, settings, command.seed)
            seconds = time.perf_counter() - began
        finally:
            reward.close()
    except TimeLimitError as error:
        raise EurekaError(f"the reward {error}", "make it quicker") from None
    finally:
        environment.close()
    metadata = {"activation": settings.activation, **distribution_of(cls).metadata}
    file = File(f"{command.job}.safetensors", policy_bytes(tensors, metadata))
    library = version_of(command.library)
    return [file, Proved(job=command.job, policy=file.name, seconds=seconds, library=library)]
