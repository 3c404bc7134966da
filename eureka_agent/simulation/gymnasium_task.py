"""Any registered Gymnasium environment as a batched one: `gymnasium:<id>`, or a folder whose class names its observation."""

from __future__ import annotations

import hashlib
import inspect
import math
import re
import sys
from collections.abc import Mapping
from typing import Any, ClassVar

import gymnasium
import numpy
import torch
from gymnasium import spaces
from torch import Tensor

from eureka_agent.errors import EnvironmentLoadError
from eureka_agent.simulation.vec_task import VecTask
from eureka_agent.task import Task, TrainingBudget, Variable

TASK_NAME = "native"
"""The one task of `gymnasium:<id>`."""

NATIVE_REWARD = Variable(
    "native_reward",
    (),
    "1",
    "-",
    "the reward that the environment itself gives for this step; 0 right after a reset",
    private=True,
)
NATIVE_REWARD_SOURCE = '''"""The environment's own reward."""


def compute_reward(native_reward):
    return native_reward, {"native_reward": native_reward}
'''

_DEFAULT_EPISODE_LENGTH = 1000
_SEED_BITS = 24
_PROBE_SEED = 0
_NOT_FINITE = "an observation or the reward is NaN or infinite"
_HEALTHY = {
    "z": "height of the body {}",
    "angle": "angle of the body {} rad",
    "state": "a further entry of the state {}",
}
"""Ranges of Gymnasium's MuJoCo environments, `_healthy_<name>_range`, outside which an episode ends."""
_THRESHOLDS = {"x_threshold": "position beyond ±{:.3g}", "theta_threshold_radians": "angle beyond ±{:.3g} rad"}
"""Attributes of Gymnasium's classic environments, likewise."""
_SECTIONS_SHOWN = ("## Action Space", "## Observation Space", "## Starting State", "## Episode End")


class GymnasiumTask(VecTask):
    """`num_envs` copies of one Gymnasium environment, stepped one after the other in this process.

    A subclass sets `gymnasium_id`; sizes, episode length and time step are then read from the environment. Actions are Box
    actions rescaled from [-1, 1], or for Discrete ones the index of the largest entry. What reward functions may read: the whole
    `observation`, its named parts (`named_observations`), and the numbers in the environment's `info`. The environment's own
    reward is the private variable `native_reward`.
    """

    gymnasium_id: ClassVar[str]
    gymnasium_options: ClassVar[Mapping[str, Any]] = {}
    """Keyword arguments of `gymnasium.make`."""
    named_observations: ClassVar[tuple[tuple[Variable, int | slice], ...]] = ()
    """Variables that are parts of the observation: an entry for a scalar, a slice for a vector."""
    info_keys: ClassVar[tuple[str, ...]] = ()
    """Numbers in `info` that are variables; found by itself."""
    termination_causes = ("terminated", "not_finite")
    row_multiple = 1  # each row is calculated by itself, and then copied
    restorable = False  # what an environment of Gymnasium's remembers cannot be read from outside

    def __init_subclass__(cls, **arguments: Any) -> None:
        """Read what the class needs from one copy of the environment. Raises EnvironmentLoadError."""
        super().__init_subclass__(**arguments)
        if "gymnasium_id" in vars(cls):
            _probe(cls)

    def __init__(self, num_envs: int, device: torch.device | str = "cpu", seed: int = 0) -> None:
        super().__init__(num_envs, device, seed)
        self.environments = [_make(type(self)) for _ in range(num_envs)]
        space = self.environments[0].action_space
        self._discrete = isinstance(space, spaces.Discrete)
        if isinstance(space, spaces.Discrete):
            self._first_action = int(space.start)
        elif isinstance(space, spaces.Box):
            bounded = numpy.isfinite(space.low) & numpy.isfinite(space.high)
            self._action_shape, self._action_type = space.shape, space.dtype
            self._action_middle = numpy.where(bounded, (space.low + space.high) / 2, 0.0).reshape(-1)
            self._action_scale = numpy.where(bounded, (space.high - space.low) / 2, 1.0).reshape(-1)
        self._observations = numpy.zeros((num_envs, self.num_observations), dtype=numpy.float32)
        self._infos = numpy.zeros((num_envs, len(self.info_keys)), dtype=numpy.float32)
        self._rewards = numpy.zeros(num_envs, dtype=numpy.float32)
        self._terminated = numpy.zeros(num_envs, dtype=bool)
        self._truncated = numpy.zeros(num_envs, dtype=bool)
        self._not_finite = numpy.zeros(num_envs, dtype=bool)
        self._next_actions: list[Any] = []

    def pre_physics_step(self, actions: Tensor) -> None:
        if self._discrete:
            self._next_actions = (actions.argmax(dim=-1) + self._first_action).tolist()
        else:
            scaled = self._action_middle + self._action_scale * actions.cpu().numpy()
            self._next_actions = list(scaled.astype(self._action_type).reshape(-1, *self._action_shape))

    def simulate(self) -> None:
        skipped = [False] * self.num_envs if self.skipped_rows is None else self.skipped_rows.tolist()
        for row in range(self.active_rows):
            if skipped[row]:
                continue
            step = self.environments[row].step(self._next_actions[row])
            observation, reward, self._terminated[row], self._truncated[row], info = step
            self._rewards[row] = reward
            self._store(row, observation, info)

    def _store(self, row: int, observation: Any, info: Mapping[str, Any]) -> None:
        flat = _flatten(self.environments[row].observation_space, observation)
        self._not_finite[row] = not (numpy.isfinite(flat).all() and math.isfinite(self._rewards[row]))
        if self._not_finite[row]:
            flat = numpy.nan_to_num(flat, posinf=0.0, neginf=0.0)
            self._rewards[row] = 0.0
        self._observations[row] = flat
        self._infos[row] = [float(info.get(key, 0.0)) for key in self.info_keys]

    def compute_observations(self) -> None:
        self.obs_buf.copy_(torch.from_numpy(self._observations))

    def compute_variables(self) -> dict[str, Tensor]:
        infos = torch.from_numpy(self._infos).to(self.device)
        return {
            "observation": self.obs_buf,
            NATIVE_REWARD.name: torch.from_numpy(self._rewards).to(self.device),
            **{variable.name: self.obs_buf[:, entries] for variable, entries in self.named_observations},
            **{key: infos[:, column] for column, key in enumerate(self.info_keys)},
        }

    def compute_termination(self) -> dict[str, Tensor]:
        terminated, not_finite = torch.tensor(self._terminated), torch.tensor(self._not_finite)
        causes = {"terminated": terminated & ~not_finite, "not_finite": not_finite}
        return {cause: rows.to(self.device) for cause, rows in causes.items()}

    def compute_truncation(self) -> Tensor:
        """The time limit of the environment's specification, or a truncation of the environment's own."""
        return super().compute_truncation() | torch.from_numpy(self._truncated).to(self.device)

    def reset_idx(self, env_ids: Tensor) -> None:
        """Reset each row's environment with a seed of that row's own stream."""
        seeds = (self.random.uniform(env_ids, 1)[:, 0].double() * 2**_SEED_BITS).long()
        for row, seed in zip(env_ids.tolist(), seeds.tolist(), strict=True):
            observation, info = self.environments[row].reset(seed=seed)
            self._rewards[row] = 0.0
            self._terminated[row] = self._truncated[row] = False
            self._store(row, observation, info)

    def close(self) -> None:
        for environment in self.environments:
            environment.close()


def environment_class(gymnasium_id: str) -> type[GymnasiumTask]:
    """The class behind `gymnasium:<id>`. Raises EnvironmentLoadError."""
    return type("GymnasiumEnvironment", (GymnasiumTask,), {"gymnasium_id": gymnasium_id})


def native_task(gymnasium_id: str) -> Task:
    """The task of `gymnasium:<id>`: the return that the environment itself pays. Raises EnvironmentLoadError."""

    def fitness(native_reward: Tensor) -> Tensor:
        return native_reward

    return Task(
        sentence=f"solve {_words(gymnasium_id)}: earn as much of the environment's own reward as possible",
        fitness=fitness,
        fitness_doc=f"return of an episode: the sum of the rewards that {gymnasium_id} itself gives",
        success_fitness=gymnasium.spec(gymnasium_id).reward_threshold,
        training=TrainingBudget(env_steps=200_000),
    )


def fingerprint(gymnasium_id: str) -> str:
    """SHA-256 over the id and Gymnasium's version."""
    return hashlib.sha256(f"{gymnasium_id}\0{gymnasium.__version__}".encode()).hexdigest()


def _words(gymnasium_id: str) -> str:
    """`"mountain car continuous"` for `MountainCarContinuous-v0`."""
    name = re.sub(r"-v\d+$", "", gymnasium_id.rpartition(":")[2].rpartition("/")[2])
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name).replace("-", " ").lower()


# ── reading an environment ──────────────────────────────────────────────────────────────────────────────────────────


def _make(task: type[GymnasiumTask]) -> gymnasium.Env:
    """One copy, without Gymnasium's time limit: the base class keeps that. Raises EnvironmentLoadError."""
    try:
        return gymnasium.make(
            task.gymnasium_id, max_episode_steps=-1, disable_env_checker=True, **dict(task.gymnasium_options)
        )
    except (gymnasium.error.Error, ImportError, TypeError) as error:
        raise EnvironmentLoadError(
            f"Gymnasium cannot make {task.gymnasium_id!r}: {error}",
            'list what is registered with python -c "import gymnasium; gymnasium.pprint_registry()"',
        ) from None


def _probe(task: type[GymnasiumTask]) -> None:
    """Fill in the class's attributes, those that it does not set itself, from one copy of the environment."""
    environment = _make(task)
    try:
        _check_spaces(task, environment)
        environment.action_space.seed(_PROBE_SEED)
        _, info = environment.reset(seed=_PROBE_SEED)
        later_info = environment.step(environment.action_space.sample())[4]
    finally:
        environment.close()
    physics: Any = environment.unwrapped
    frames_per_second = physics.metadata.get("render_fps")
    spec = environment.spec
    registered = gymnasium.spec(task.gymnasium_id)
    actions = environment.action_space
    own = vars(task)
    task.num_observations = spaces.flatdim(environment.observation_space)
    task.num_actions = int(actions.n) if isinstance(actions, spaces.Discrete) else spaces.flatdim(actions)
    if "max_episode_length" not in own:
        task.max_episode_length = registered.max_episode_steps or _DEFAULT_EPISODE_LENGTH
    if "control_dt" not in own:
        task.control_dt = float(getattr(physics, "dt", None) or 1.0 / (frames_per_second or 1.0))
    named = [variable for variable, _ in task.named_observations]
    taken = {"actions", "terminated", "observation", NATIVE_REWARD.name, *(variable.name for variable in named)}
    task.info_keys = _numeric_keys({**info, **later_info}, taken)
    task.variables = (
        _observation_variable(task.num_observations, environment.observation_space),
        *named,
        *(Variable(key, (), "?", "?", f"number {key!r} in Gymnasium's info of this step") for key in task.info_keys),
        NATIVE_REWARD,
    )
    if "termination_conditions" not in own:
        task.termination_conditions = _termination_conditions(physics)
    if "masses_and_sizes" not in own:
        task.masses_and_sizes = _masses_and_sizes(physics)
    if "__doc__" not in own or own["__doc__"] is None:
        task.__doc__ = _description(physics, spec.id if spec is not None else task.gymnasium_id)


def _termination_conditions(physics: Any) -> dict[str, str]:
    """What can be read of them from the environment's attributes; the rest is in its docstring."""
    parts = []
    if getattr(physics, "_terminate_when_unhealthy", False):
        ranges = {name: getattr(physics, f"_healthy_{name}_range", None) for name in _HEALTHY}
        parts += [_HEALTHY[name].format(_outside(*ends)) for name, ends in ranges.items() if ends is not None]
    for name, words in _THRESHOLDS.items():
        if isinstance(value := getattr(physics, name, None), float):
            parts.append(words.format(value))
    return ({"terminated": " or ".join(parts)} if parts else {}) | {"not_finite": _NOT_FINITE}


def _outside(low: float, high: float) -> str:
    """`below 0.7`, `outside -0.2 to 0.2`."""
    if math.isinf(high):
        return f"below {low:g}"
    return f"above {high:g}" if math.isinf(low) else f"outside {low:g} to {high:g}"


def _masses_and_sizes(physics: Any) -> tuple[str, ...]:
    """Of a MuJoCo environment's model."""
    if "mujoco" not in sys.modules:  # no environment has a model of it
        return ()
    import mujoco

    from eureka_agent.simulation.mujoco_sizes import masses_and_sizes

    model = getattr(physics, "model", None)
    return masses_and_sizes(model) if isinstance(model, mujoco.MjModel) else ()


def _check_spaces(task: type[GymnasiumTask], environment: gymnasium.Env) -> None:
    actions, observations = environment.action_space, environment.observation_space
    if not isinstance(actions, spaces.Box | spaces.Discrete):
        raise EnvironmentLoadError(
            f"{task.gymnasium_id!r} has the action space {actions}, expected Box or Discrete",
            "wrap the environment's actions",
        )
    if not observations.is_np_flattenable:
        raise EnvironmentLoadError(
            f"{task.gymnasium_id!r} has the observation space {observations}, which has no fixed size",
            "wrap its observations",
        )


def _flatten(space: spaces.Space, observation: Any) -> numpy.ndarray:
    """One float32 vector. Shape: (num_observations,)."""
    flat = observation.reshape(-1) if isinstance(space, spaces.Box) else spaces.flatten(space, observation)
    return numpy.asarray(flat, dtype=numpy.float32)


def _numeric_keys(info: Mapping[str, Any], taken: set[str]) -> tuple[str, ...]:
    """Names of plain numbers that can be arguments; none that tells of a reward."""
    return tuple(
        key
        for key, value in sorted(info.items())
        if numpy.ndim(value) == 0
        and isinstance(value, bool | int | float | numpy.number | numpy.bool_)
        and key.isidentifier()
        and "reward" not in key.lower()
        and not key.startswith("previous_")
        and key not in taken
    )


def _observation_variable(size: int, space: spaces.Space) -> Variable:
    limits = None
    if isinstance(space, spaces.Box) and numpy.isfinite(space.low).all() and numpy.isfinite(space.high).all():
        limits = (float(space.low.min()), float(space.high.max()))
    doc = f"whole observation vector; read its entries as observation[:, i], i from 0 to {size - 1}"
    return Variable("observation", (size,), "?", "?", doc, limits)


def _description(physics: Any, gymnasium_id: str) -> str:
    """First paragraph of the environment's own docstring, and its sections on what is observed, done and reached; not the one on rewards."""
    text = re.sub(r"^```\{figure\}.*?^```\n", "", inspect.getdoc(type(physics)) or "", flags=re.DOTALL | re.MULTILINE)
    paragraph = re.sub(r"^#+.*\n+", "", text).split("\n\n")[0].strip()
    sections = re.split(r"^(?=## )", text, flags=re.MULTILINE)
    shown = [section.strip() for section in sections if section.startswith(_SECTIONS_SHOWN)]
    return "\n\n".join([paragraph or f"Gymnasium's {gymnasium_id}.", *shown])
