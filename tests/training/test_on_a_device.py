"""The needs of a GPU, shown without one: the step loop looks at no value, and the device's paths
give what the CPU's give."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from training_environments import CENTRE_REWARD, SLOW_REWARD, Rail, TwoGearRail, assert_equal, run

from eureka_agent.simulation.loading import load_environment
from eureka_agent.simulation.vec_task import VecTask
from eureka_agent.task import Variable
from eureka_agent.training.distributions import distribution_of
from eureka_agent.training.networks import ObservationStatistics, StackedNetworks
from eureka_agent.training.reward import RewardFunction
from eureka_agent.training.rollout import RolloutCollector
from eureka_agent.training.trainer import Trainer

MakeTrainer = Callable[..., Trainer]
LoadReward = Callable[..., RewardFunction]

MEMBERS, NUM_ENVS, HORIZON = 3, 4, 5
CHOOSERS: dict[str, type[VecTask]] = {"rail": Rail, "two-gear rail": TwoGearRail}


def collector_on(
    reference: str, device: str
) -> tuple[RolloutCollector, StackedNetworks, ObservationStatistics]:
    name, _, task = reference.partition("/")
    if name in CHOOSERS:
        environment: VecTask = CHOOSERS[name](MEMBERS * NUM_ENVS, device)
    else:
        loaded = load_environment(name)
        environment = loaded.make(loaded.task(task)[1], MEMBERS * NUM_ENVS, device)
    size, distribution = environment.num_observations, distribution_of(environment)
    networks = StackedNetworks(MEMBERS, size, distribution, (8,), "elu", device)
    return (
        RolloutCollector(environment, distribution, MEMBERS, NUM_ENVS, HORIZON),
        networks,
        ObservationStatistics(MEMBERS, size, device),
    )


@pytest.mark.parametrize(
    ("reference", "variable"),
    [
        ("cartpole/balance", "pole_angle"),
        ("cartpole/swingup", "pole_angle"),
        ("quadcopter/hover", "position_w"),
        ("rail", "place"),
        ("two-gear rail", "place"),
    ],
)
def test_the_step_loop_waits_for_no_value(reference: str, variable: str) -> None:
    """torch's `meta` device holds no values: `.item()`, `nonzero`, `bool(tensor)` and tensors of
    another device raise there."""
    collector, networks, statistics = collector_on(reference, "meta")
    collector.start_member(0, 7, torch.zeros(NUM_ENVS, dtype=torch.int64, device="meta"))
    for _ in range(2):
        arguments = ("actions", "terminated", variable, f"previous_{variable}")
        rollout = collector.collect(networks.members(0, MEMBERS), statistics, MEMBERS, arguments)
    assert rollout.observations.shape[:3] == (MEMBERS, HORIZON, NUM_ENVS)
    assert {value.device.type for value in rollout.arguments.values()} == {"meta"}


def test_a_look_at_a_value_in_the_step_loop_would_be_found() -> None:
    collector, networks, statistics = collector_on("cartpole/balance", "meta")
    collector._environment.resets_by_mask = False
    with pytest.raises((RuntimeError, NotImplementedError)):
        collector.collect(networks.members(0, MEMBERS), statistics, MEMBERS, ("actions",))


def test_a_training_on_the_device_s_paths_is_the_cpu_s(
    make_trainer: MakeTrainer, point_reward: LoadReward
) -> None:
    """On a CPU, resets by mask with all slots taking part give to the bit what resets by index and
    a slot of its own give."""
    alone, among = make_trainer(1), make_trainer(4)
    among._environment.resets_by_mask = among._whole_width = True
    alone.submit("reference", point_reward(SLOW_REWARD), 7)
    among.submit("other", point_reward(CENTRE_REWARD), 1)
    among.submit("reference", point_reward(SLOW_REWARD), 7)
    assert_equal(run(among)["reference"], run(alone)["reference"])


VARIABLES = (
    Variable("height", (), "m", "world", "height"),
    Variable("axis", (3,), "1", "world", "axis"),
)

# torch makes new tensors on the CPU unless it is told otherwise
DEVICELESS_REWARD = """
UP = torch.tensor([0.0, 0.0, 1.0])

def compute_reward(height, axis):
    weights = torch.tensor([1.0, 2.0, 3.0])
    tilt = (axis * UP * weights).sum(dim=-1)
    return height + tilt + torch.zeros(len(height)), {"tilt": tilt, "constant": 1.0}
"""


def test_a_reward_s_own_tensors_are_on_its_arguments_device() -> None:
    reward = RewardFunction.from_source(DEVICELESS_REWARD, VARIABLES)
    on_cpu = {"height": torch.ones(2), "axis": torch.ones(2, 3)}
    assert reward(on_cpu)[0].tolist() == [4.0, 4.0]
    total, components = reward({name: value.to("meta") for name, value in on_cpu.items()})
    assert {total.device.type, *(value.device.type for value in components.values())} == {"meta"}
