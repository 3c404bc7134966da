"""Manager-based environments, as those of mjlab: variables, ends and terms of their own reward.
Isaac Lab has the same managers; mjlab alone was tried."""

from __future__ import annotations

import contextlib
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor

from eureka_adapter.job import Variable

Found = tuple[Variable, Callable[[], Tensor]]
"""A variable and how it is read."""
_UNITS = {
    r"(root_link|body_link|site)_pos_w|tendon_len": "m",
    r"(root_link|body_link|site)_quat_w|projected_gravity_b": "1",
    r"(root_link|body_link|site)_lin_vel_[wb]|tendon_vel": "m/s",
    r"(root_link|body_link|site)_ang_vel_[wb]": "rad/s",
    r"(default_)?joint_pos": "rad or m",
    r"joint_vel": "rad/s or m/s",
    r"joint_acc": "rad/s^2 or m/s^2",
    r"qfrc_actuator|actuator_force|applied_torque": "N m or N",
    r"heading_w": "rad",
}
"""Data of an entity that become variables; the rest follows from these."""


class Managed:
    """A manager-based environment, read where it computes its own reward: before its resets."""

    def __init__(
        self, env: Any, found: Mapping[str, Found], values: Callable[[Any], Mapping[str, Tensor]]
    ) -> None:
        """`values`: more of them, or others."""
        self._env, self._found, self._values = env, found, values
        self.reached: Mapping[str, Tensor] = {}
        """Values of the states that the last step reached, or of the start states."""
        rewards, ends = env.reward_manager, env.termination_manager
        scale = env.step_dt if getattr(env.cfg, "scale_rewards_by_dt", True) else 1.0
        self.native_terms: list[dict[str, Any]] = []
        """See `Job.described`. Where the environment multiplies its reward by the seconds of a
        control step, the weights contain them."""
        self._terms: dict[str, tuple[int, Any]] = {}
        for column, name in enumerate(rewards.active_terms):
            term = rewards.get_term_cfg(name)
            if term.weight:  # others are not computed
                free = f"term_{name}" if name in found else name
                doc = f"{sentence(term.func)}; term of the simulator's own reward"
                self.native_terms.append({"name": free, "weight": term.weight * scale, "doc": doc})
                self._terms[free] = column, term
        terms = {name: ends.get_term_cfg(name) for name in ends.active_terms}
        self.ends = {name: sentence(it.func) for name, it in terms.items() if not it.time_out}
        """Words by cause of an early end."""
        self._compute, rewards.compute = rewards.compute, self._computed

    def _computed(self, *arguments: Any, **named: Any) -> Tensor:
        """The environment's own reward. Keeps the values of the same moment."""
        reward, weighted = self._compute(*arguments, **named), self._env.reward_manager._step_reward
        self.reached = self._read()
        for name, (column, term) in self._terms.items():  # a curriculum may change weights
            self.reached[name] = weighted[:, column] / (term.weight or 1.0)
        return reward

    def _read(self) -> dict[str, Tensor]:
        values = {name: read() for name, (_, read) in self._found.items()}
        values.update(self._values(self._env))
        # broken physics is 0, as in the environment's own terms: the task ends such a row, or the
        # observations fail. This is also a copy of what the next step overwrites.
        return {name: torch.nan_to_num(each, 0.0, 0.0, 0.0) for name, each in values.items()}

    def start(self) -> dict[str, Tensor] | None:
        """Values after the last step's resets, if there were any."""
        return self._read() if self._env.reset_buf.any() else None

    def causes(self) -> dict[str, Tensor]:
        """Masks of the last step by cause of an early end."""
        ends = self._env.termination_manager
        return {name: ends.get_term(name) & ~ends.time_outs for name in self.ends}

    def reset_all(self, seeds: list[int]) -> None:
        """Begin an episode in every row. The first seed is that of the one generator."""
        self._env.reset(seed=seeds[0])
        self.reached = self._read()


def find(env: Any, entities: Mapping[str, Any]) -> Iterator[Found]:
    """Variables of the entities that move and of the commands; origins of the environments."""
    moving = {name: it for name, it in entities.items() if it.joint_names or not it.is_fixed_base}
    for name, entity in moving.items():
        kinds = ("joint", "body", "site", "tendon", "actuator")
        orders = {kind: ", ".join(getattr(entity, f"{kind}_names", ())) for kind in kinds}
        fixed, single = r"root|proj|heading", r"body"
        skipped = fixed if entity.is_fixed_base else single if len(entity.body_names) == 1 else "$"
        data = entity.data
        for pattern, unit in _UNITS.items():
            for quantity in filter(re.compile(pattern).fullmatch, dir(data)):
                with contextlib.suppress(NotImplementedError, TypeError):  # without such parts
                    shape = tuple(getattr(data, quantity).shape[1:])
                    if 0 in shape or re.match(skipped, quantity):
                        continue
                    doc = sentence(getattr(type(data), quantity, quantity))
                    frame = (re.findall(r"in (\w+) frame", doc) or "-")[0]
                    if order := orders.pop(quantity.partition("_")[0], ""):
                        doc += f", in order: {order}"
                    free = f"{name}_{quantity}" if len(moving) > 1 else quantity
                    read = partial(getattr, data, quantity)
                    yield Variable(free, shape, unit, frame, doc), read
    for name in env.command_manager.active_terms:
        read = partial(env.command_manager.get_command, name)
        doc = f"command, of the class {type(env.command_manager.get_term(name)).__name__}"
        yield Variable(name, tuple(read().shape[1:]), doc=doc), read
    doc = "place of this environment, to subtract where a place within it is meant"
    yield Variable("env_origin", (3,), "m", "world", doc), lambda: env.scene.env_origins


def sentence(documented: Any) -> str:
    """First sentence of a docstring, without full stop and shape; or the name."""
    named = getattr(documented, "__name__", type(documented).__name__)
    if isinstance(documented, str) or not (doc := inspect.getdoc(documented)):
        return str(documented if isinstance(documented, str) else named).replace("_", " ")
    return re.split(r"\. | Shape", " ".join(doc.split()))[0].rstrip(".")
