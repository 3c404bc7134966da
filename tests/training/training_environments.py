"""Tiny environments, rewards for them, runs to the end, and what two of them have in common."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from eureka_agent.records import CurvePoint
from eureka_agent.simulation.vec_task import VecTask
from eureka_agent.task import Channel, Variable
from eureka_agent.training.members import Snapshot, load_snapshot, snapshot_bytes
from eureka_agent.training.trainer import MemberFinished, MemberProgress, Trainer, TrainerEvent


class PointMass(VecTask):
    """A point pushed around a plane; falls off beyond 1.5 m from the middle."""

    variables = (
        Variable("position", (2,), "m", "world", "x and y"),
        Variable("speed", (), "m/s", "world", "length of the velocity"),
        Variable("secret", (), "1", "-", "for the fitness", private=True),
    )
    num_observations = 4
    num_actions = 2
    max_episode_length = 24
    control_dt = 0.1
    termination_causes = ("fell_off",)

    def __init__(self, num_envs: int, device: torch.device | str = "cpu", seed: int = 0) -> None:
        super().__init__(num_envs, device, seed)
        self.position = torch.zeros(num_envs, 2)
        self.velocity = torch.zeros(num_envs, 2)
        self.reset()

    def pre_physics_step(self, actions: Tensor) -> None:
        self.velocity = 0.9 * self.velocity + 0.3 * actions

    def simulate(self) -> None:
        self.position = self.position + self.control_dt * self.velocity

    def compute_observations(self) -> None:
        self.obs_buf[:, :2] = self.position
        self.obs_buf[:, 2:] = self.velocity

    def compute_variables(self) -> dict[str, Tensor]:
        return {
            "position": self.position,
            "speed": self.velocity.square().sum(dim=1).sqrt(),
            "secret": self.position[:, 0],
        }

    def compute_termination(self) -> Tensor:
        return self.position.abs().amax(dim=1) > 1.5

    def reset_idx(self, env_ids: Tensor) -> None:
        self.position[env_ids] = self.random.uniform(env_ids, 2, -1.0, 1.0)
        self.velocity[env_ids] = 0.0


class Rail(VecTask):
    """A cart that is pushed to the left, not at all or to the right; falls off beyond 1.5 m."""

    variables = (Variable("place", (), "m", "world", "position of the cart"),)
    num_observations = 2
    num_actions = 1
    action_choices = (3,)
    action_channels = (Channel("push", doc="0 left, 1 none, 2 right"),)
    max_episode_length = 24
    control_dt = 0.1
    termination_causes = ("fell_off",)

    def __init__(self, num_envs: int, device: torch.device | str = "cpu", seed: int = 0) -> None:
        super().__init__(num_envs, device, seed)
        self.place = torch.zeros(num_envs, device=self.device)
        self.velocity = torch.zeros(num_envs, device=self.device)
        self.reset()

    def pre_physics_step(self, actions: Tensor) -> None:
        self.velocity = 0.9 * self.velocity + 0.6 * self.pushes(actions)
        self.place = self.place + self.control_dt * self.velocity

    def pushes(self, actions: Tensor) -> Tensor:
        return actions[:, 0] - 1.0

    def compute_observations(self) -> None:
        self.obs_buf[:, 0] = self.place
        self.obs_buf[:, 1] = torch.sigmoid(self.velocity)  # rounded by its place in a register

    def compute_variables(self) -> dict[str, Tensor]:
        return {"place": self.place}

    def compute_termination(self) -> Tensor:
        return self.place.abs() > 1.5

    def reset_idx(self, env_ids: Tensor) -> None:
        self.place[env_ids] = self.random.uniform(env_ids, 1, -1.0, 1.0)[:, 0]
        self.velocity[env_ids] = 0.0


class TwoGearRail(Rail):
    """With a second choice: half the push or all of it."""

    num_actions = 2
    action_choices = (3, 2)
    action_channels = ()

    def pushes(self, actions: Tensor) -> Tensor:
        return (actions[:, 0] - 1.0) * (0.5 + 0.5 * actions[:, 1])


class Countdown(VecTask):
    """Row i counts 1, 2, 3, … and terminates at `lengths[i]`; every second cause is the other one.
    Needs no physics."""

    variables = (Variable("count", (), "1", "-", "steps since the reset"),)
    num_observations = 1
    num_actions = 1
    max_episode_length = 6
    control_dt = 1.0
    termination_causes = ("even", "odd")

    def __init__(self, lengths: list[int]) -> None:
        super().__init__(len(lengths))
        self.lengths = torch.tensor(lengths)
        self.reset()

    def pre_physics_step(self, actions: Tensor) -> None:
        pass

    def compute_observations(self) -> None:
        self.obs_buf[:, 0] = self.progress_buf.float()

    def compute_variables(self) -> dict[str, Tensor]:
        return {"count": self.progress_buf.float()}

    def compute_termination(self) -> dict[str, Tensor]:
        ended = self.progress_buf == self.lengths
        return {"even": ended & (self.lengths % 2 == 0), "odd": ended & (self.lengths % 2 == 1)}

    def reset_idx(self, env_ids: Tensor) -> None:
        pass


def near_the_middle(position: Tensor) -> Tensor:
    """Fitness of the point mass."""
    return -position.square().sum(dim=1)


def in_the_middle(place: Tensor) -> Tensor:
    """Fitness of the rails: 1 in the middle."""
    return 1.0 - place.square()


RAIL_REWARD = """
def compute_reward(place, actions):
    idle = 0.01 * (actions == 1).float().reshape(len(place), -1)[:, 0]
    return idle - place.square(), {"idle": idle, "away": -place.square()}
"""

CENTRE_REWARD = """
def compute_reward(position, actions):
    distance = position.square().sum(dim=-1)
    effort = 0.01 * actions.square().sum(dim=-1)
    return 1.0 - distance - effort, {"distance": -distance, "effort": -effort}
"""

SLOW_REWARD = """
def compute_reward(speed, previous_position):
    return -speed - previous_position[:, 0].abs(), {"speed": -speed}
"""


def run(trainer: Trainer) -> dict[str, list[TrainerEvent]]:
    """All events of a trainer until nothing is left, by job."""
    events: dict[str, list[TrainerEvent]] = {}
    while trainer.busy:
        for event in trainer.iterate():
            events.setdefault(event.job, []).append(event)
    return events


def points(events: list[TrainerEvent]) -> list[CurvePoint]:
    return [event.point for event in events if isinstance(event, MemberProgress)]


def policy_of(events: list[TrainerEvent]) -> dict[str, Tensor]:
    finished = events[-1]
    assert isinstance(finished, MemberFinished), finished
    return finished.policy


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    assert one.keys() == other.keys()
    return all(torch.equal(value, other[name]) for name, value in one.items())


def assert_equal(one: list[TrainerEvent], other: list[TrainerEvent]) -> None:
    """Curve and policy are equal to the bit; wall seconds are not looked at."""
    assert points(one) == points(other)
    assert same(policy_of(one), policy_of(other))


def saved(trainer: Trainer, job: str, path: Path) -> Snapshot:
    """The state of a running training as a file brings it back."""
    path.write_bytes(snapshot_bytes(trainer.snapshot(job)))
    return load_snapshot(path)
