"""Manager-based environments, as those of mjlab and Isaac Lab: variables, ends, terms of their own
reward."""

from __future__ import annotations

import contextlib
import inspect
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor

from eureka_adapter.job import Job, Variable
from eureka_adapter.training import load_state

Found = dict[str, tuple[Variable, Callable[[], Tensor]]]
"""Variables by name, and how they are read."""
_UNITS = {
    r"(root_link|body_link|site)_pos_w|tendon_len": "m",
    r"(root_link|body_link|site)_quat_w|projected_gravity_b": "1",
    r"(root_link|body_link|site)_lin_vel_[wb]|tendon_vel": "m/s",
    r"(root_link|body_link|site)_ang_vel_[wb]": "rad/s",
    r"joint_pos": "rad or m",
    r"joint_vel": "rad/s or m/s",
    r"joint_acc": "rad/s^2 or m/s^2",
    r"actuator_force|qfrc_actuator|applied_torque": "N m or N",
}
"""Units of the data of an entity that become variables. All else follows from these."""


def managed(job: Job, env: Any, found: Found) -> tuple[dict[str, Any], dict[str, Any]]:
    """Arguments of `RslEnv` and of `rsl_rl.main`. The environment is read where it computes its own
    reward, before its resets. The terms of that reward become variables too."""
    rewards, over, terms, native = env.reward_manager, env.termination_manager, {}, []
    # the weights are those of a step's reward, which may be multiplied by its seconds
    scale = env.step_dt if getattr(env.cfg, "scale_rewards_by_dt", True) else 1.0
    for column, name in enumerate(rewards.active_terms):
        if (term := rewards.get_term_cfg(name)).weight:  # others are not computed
            free = f"term_{name}" if name in {*found, "actions", "terminated"} else name
            doc = f"{_sentence(term.func, name)}; term of the simulator's own reward"
            native.append({"name": free, "weight": term.weight * scale, "doc": doc})
            terms[free] = column, term
    early = {name: over.get_term_cfg(name) for name in over.active_terms}
    ends = {name: _sentence(it.func, name) for name, it in early.items() if not it.time_out}

    trainings = job.fields.get("trainings", ())
    saved = [load_state(job.folder / it["state"]) for it in trainings if it["state"]]
    if saved:  # what changes in the course of a training goes on
        steps = max(it["env_steps"] for it in saved)
        getattr(env, "unwrapped", env).common_step_counter = steps * len(trainings) // job.num_envs

    def read() -> dict[str, Tensor]:
        # 0 where physics broke, as in the environment's own terms; a copy of what is overwritten
        return {name: torch.nan_to_num(it(), 0.0, 0.0, 0.0) for name, (_, it) in found.items()}

    def computed(dt: float) -> Tensor:
        reached, reward = read(), compute(dt)  # which may set another goal
        rewards.reached = reached
        for name, (column, term) in terms.items():  # a curriculum may change the weight
            rewards.reached[name] = rewards._step_reward[:, column] / (term.weight or 1.0)
        return reward

    def reset_all(_: Any, seeds: list[int]) -> None:
        env.reset(seed=seeds[0])  # of the one generator
        rewards.reached = read()

    compute, rewards.compute = rewards.compute, computed
    reads: dict[str, Any] = {"reset_all": reset_all, "values": lambda _: rewards.reached}
    reads["start"] = lambda _: read() if env.reset_buf.any() else None
    reads["causes"] = lambda _: {it: over.get_term(it) & ~over.time_outs for it in ends}
    variables = [it for it, _ in found.values()]
    variables += [Variable(it["name"], doc=it["doc"]) for it in native]
    return reads, {"variables": variables, "ends": ends, "native_terms": native}


def find(env: Any, entities: Mapping[str, Any]) -> Found:
    """Variables of the entities that move, of commands, and the environments' origins."""
    fixed = {name for name, it in entities.items() if getattr(it, "is_fixed_base", False)}
    moving = {name: it for name, it in entities.items() if name not in fixed or it.joint_names}
    doc = "place of this environment in world frame, which the other positions contain"
    found = readable("env_origin", lambda: env.scene.env_origins, "m", doc)
    found = found if env.scene.env_origins.any() else {}  # all share one place
    for name, entity in moving.items():
        prefix, data = f"{name}_" if len(moving) > 1 else "", entity.data
        still = "root|proj" if name in fixed else "-"
        for pattern, unit in _UNITS.items():
            for quantity in filter(re.compile(f"(?!{still})({pattern})").fullmatch, dir(data)):
                parts = re.sub("(_link)?_(pos|len|force).*", "_names", quantity)
                order = ", ".join(getattr(entity, parts, ()))
                doc = _sentence(getattr(type(data), quantity), quantity)
                doc += f", in order: {order}" * bool(order)
                found |= readable(prefix + quantity, partial(getattr, data, quantity), unit, doc)
    for name in getattr(getattr(env, "command_manager", None), "active_terms", ()):
        doc = f"command of the class {type(env.command_manager.get_term(name)).__name__}"
        found |= readable(name, partial(env.command_manager.get_command, name), "SI", doc)
    return found


def readable(name: str, read: Callable[[], Tensor], unit: str, doc: str) -> Found:
    """Variable with the shape of what is read; none where that fails or is empty."""
    frame = (re.findall(r"[io]n (?:\w+ )?(\w+) frame", doc) or "-")[0]

    def tensor() -> Tensor:
        return getattr(value := read(), "torch", value)  # Isaac Lab has arrays of Warp

    with contextlib.suppress(AttributeError, NotImplementedError, TypeError):
        if 0 not in (shape := tuple(tensor().shape[1:])):
            return {name: (Variable(name, shape, unit, frame, doc), tensor)}
    return {}


def _sentence(documented: Any, name: str) -> str:
    """First sentence of a docstring without shape and full stop, or the name in words."""
    doc = inspect.getdoc(documented) or name.replace("_", " ")
    return re.split(r"\. | Shape", " ".join(doc.split()))[0].rstrip(".")
