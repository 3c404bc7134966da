"""Make-believe physics for the corpus: smooth random walks with velocities that fit, and rotations
made of them.

The environments of `envs/` import this from PYTHONPATH. No policy solves anything here. The states
lie in plausible ranges and move smoothly, and derived values (a height, a projection, the step
before) agree with them. Quaternions are x, y, z, w, as Isaac Gym has them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from eureka_agent.simulation.vec_task import VecTask
from eureka_agent.task import Constant, Variable


@dataclass(frozen=True)
class Walk:
    """A damped oscillator that is shaken by noise and by the actions."""

    size: int
    spread: float
    """Standard deviation about `centre` in the long run."""
    speed: float
    """Standard deviation of the velocity; 0: drawn at a reset, and fixed."""
    centre: tuple[float, ...] | float = 0.0


# ── rotations ─────────────────────────────────────────────────────────────────────────────────────


def rotation_of(vector: Tensor) -> Tensor:
    """Quaternion x, y, z, w of a rotation vector. Shape: (batch, 3) → (batch, 4)."""
    half = 0.5 * vector.square().sum(dim=-1, keepdim=True).sqrt()
    return torch.cat([0.5 * torch.sinc(half / torch.pi) * vector, half.cos()], dim=-1)


def product(first: Tensor, second: Tensor) -> Tensor:
    """Quaternion of the rotation `second` followed by `first`."""
    vector = (
        first[:, 3:] * second[:, :3]
        + second[:, 3:] * first[:, :3]
        + cross(first[:, :3], second[:, :3])
    )
    scalar = first[:, 3:] * second[:, 3:] - (first[:, :3] * second[:, :3]).sum(dim=-1, keepdim=True)
    return torch.cat([vector, scalar], dim=-1)


def inverse(rotation: Tensor) -> Tensor:
    """Quaternion of the rotation back."""
    return torch.cat([-rotation[:, :3], rotation[:, 3:]], dim=-1)


def rotated(rotation: Tensor, vector: Tensor) -> Tensor:
    """A vector of the body's frame as the world sees it."""
    twice = 2.0 * cross(rotation[:, :3], vector)
    return vector + rotation[:, 3:] * twice + cross(rotation[:, :3], twice)


def cross(first: Tensor, second: Tensor) -> Tensor:
    """Cross product of rows."""
    return torch.linalg.cross(first, second, dim=-1)


# ── the base of the environments ──────────────────────────────────────────────────────────────────


class RandomWalks(VecTask):
    """Everything that moves is a walk of `walks`; a subclass makes its variables of them."""

    walks: ClassVar[dict[str, Walk]] = {}
    control_dt = 1.0 / 60.0
    max_episode_length = 300
    quaternion_order = "xyzw"
    constants: ClassVar[tuple[Constant, ...]] = ()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.num_observations = max(1, 2 * sum(walk.size for walk in cls.walks.values()))

    def __init__(self, num_envs: int, device: torch.device | str = "cpu", seed: int = 0) -> None:
        super().__init__(num_envs, device, seed)
        total = sum(walk.size for walk in self.walks.values())
        self.place = torch.zeros(num_envs, total, device=self.device)
        self.motion = torch.zeros(num_envs, total, device=self.device)
        self.last_actions = torch.zeros(num_envs, self.num_actions, device=self.device)
        self.prev_actions = torch.zeros(num_envs, self.num_actions, device=self.device)
        self._slices: dict[str, slice] = {}
        centre, spread, speed = [], [], []
        begin = 0
        for name, walk in self.walks.items():
            self._slices[name] = slice(begin, begin + walk.size)
            begin += walk.size
            centre += (
                list(walk.centre) if isinstance(walk.centre, tuple) else [walk.centre] * walk.size
            )
            spread += [walk.spread] * walk.size
            speed += [walk.speed] * walk.size
        self._centre, self._spread, self._speed = (
            torch.tensor([values], device=self.device) for values in (centre, spread, speed)
        )

    def pre_physics_step(self, actions: Tensor) -> None:
        """A spring of the frequency speed / spread, damped and shaken so that place and velocity
        have their intended spread."""
        self.prev_actions = self.last_actions
        self.last_actions = actions
        dt = self.control_dt
        frequency = self._speed / self._spread
        noise = self.random.normal(
            torch.arange(self.num_envs, device=self.device), self.place.shape[1]
        )
        columns = torch.arange(self.place.shape[1], device=self.device) % self.num_actions
        shaken = 0.9 * noise + 0.6 * actions[:, columns]
        pull = -(frequency**2) * (self.place - self._centre) - frequency * self.motion
        self.motion = self.motion + dt * pull + self._speed * (2.0 * frequency * dt).sqrt() * shaken
        self.place = self.place + dt * self.motion

    def at(self, name: str) -> Tensor:
        """Position of a walk. Shape: (num_envs, size)."""
        return self.place[:, self._slices[name]]

    def before(self, name: str) -> Tensor:
        """Position of a walk one step earlier; right after a reset, the present one."""
        return self.at(name) - self.control_dt * self.velocity(name)

    def velocity(self, name: str) -> Tensor:
        """Velocity that took a walk from the earlier position."""
        return self.motion[:, self._slices[name]]

    def angular_velocity(self, name: str) -> Tensor:
        """Angular velocity of a walk that is a rotation vector, in the world's frame, rad/s."""
        turn = product(rotation_of(self.at(name)), inverse(rotation_of(self.before(name))))
        return 2.0 * turn[:, :3] * torch.sign(turn[:, 3:]) / self.control_dt

    def full(self, *values: float) -> Tensor:
        """The same values in every row."""
        return torch.tensor([values], device=self.device).expand(self.num_envs, len(values)).clone()

    def compute_observations(self) -> None:
        self.obs_buf[:] = torch.cat([self.place, self.motion], dim=-1)

    def reset_idx(self, env_ids: Tensor) -> None:
        drawn = self.random.uniform(env_ids, self.place.shape[1], -1.0, 1.0)
        self.place[env_ids] = self._centre + self._spread * drawn
        self.motion[env_ids] = 0.0
        self.last_actions[env_ids] = 0.0
        self.prev_actions[env_ids] = 0.0


def vectors(
    frame: str, unit: str, size: int, bounds: tuple[float, float] | None = None, /, **docs: str
) -> tuple[Variable, ...]:
    """Several variables of one shape, unit, frame and range."""
    return tuple(
        Variable(name, (size,) if size else (), unit, frame, doc, bounds)
        for name, doc in docs.items()
    )


def constants(**numbers: float) -> tuple[Constant, ...]:
    """Isaac's scales and thresholds, which have no unit that anyone wrote down."""
    return tuple(
        Constant(name, value, "1", name.replace("_", " ")) for name, value in numbers.items()
    )
