"""Tasks of Isaac Lab with its trainer, rsl_rl. Tried with isaaclab 3.0.0 on a CPU, with its Newton
physics and a cartpole of our own. It has not run with Isaac Sim (PhysX), nor on a GPU."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import gymnasium
from isaaclab.app import launch_simulation
from isaaclab.utils import to_dict
from isaaclab_rl import rsl_rl as lab
from isaaclab_tasks.utils import resolve_task_config  # also registers the tasks
from torch import Tensor

from eureka_adapter import rsl_rl
from eureka_adapter.faults import Fault
from eureka_adapter.job import Job, Variable, episode_seed
from eureka_adapter.managers import find, managed

_CONFIGURATIONS = {"env_cfg_entry_point", "rsl_rl_cfg_entry_point"}
_END = SimpleNamespace(time_out=False, func=SimpleNamespace(__doc__="the environment ended it"))
_TERM = SimpleNamespace(weight=1.0, func=SimpleNamespace(__doc__="the whole of it"))


def main(
    variables: Sequence[Variable] = (),
    values: Callable[[Any], Mapping[str, Any]] = lambda env: {},
    **description: Any,
) -> None:
    """Do the job that eureka-agent asks for, with the task that its option `task` names, changed by
    its option `overrides`. Variables and values are more than those found, or replace them.
    `description`: of `rsl_rl.main`."""
    job = Job.open()
    tasks = [it for it, spec in gymnasium.registry.items() if spec.kwargs.keys() >= _CONFIGURATIONS]
    if (task := job.options.get("task")) not in tasks:
        raise Fault(f"`task` is {task!r}, expected one of {tasks}", "set it in `options`")
    del sys.argv[1:]  # Isaac Sim would read them
    overrides, device = job.options.get("overrides", []), job.device.replace("cuda", "cuda:0")
    env_cfg, rl_cfg = resolve_task_config(task, "rsl_rl_cfg_entry_point", overrides=overrides)
    rl_cfg = lab.handle_deprecated_rsl_rl_cfg(rl_cfg, lab.check_rsl_rl_version())
    env_cfg.scene.num_envs, env_cfg.sim.device = job.num_envs, device
    entries = job.fields.get("trainings") or job.fields.get("policies") or [{"seed": 0}]
    env_cfg.seed = episode_seed("environments", entries[0]["seed"])
    env_cfg.is_finite_horizon = False  # or time limits would not be told apart
    with launch_simulation(env_cfg, {"headless": True, "device": device}):
        try:
            made = gymnasium.make(task, cfg=env_cfg)
            env, scene = made.unwrapped, made.unwrapped.scene
            own = {it.name: (it, lambda it=it: values(env)[it.name]) for it in variables}
            found = {**find(env, {**scene.articulations, **scene.rigid_objects}), **own}
            reads, told = managed(
                job, env if hasattr(env, "reward_manager") else _Direct(env), found
            )
            clip = float("inf") if rl_cfg.clip_actions is None else rl_cfg.clip_actions
            rsl = rsl_rl.RslEnv(lab.RslRlVecEnvWrapper(made), **reads, clip_actions=clip)
            told |= {"control_dt": env.step_dt, "rewards": 8, "quaternion_order": "xyzw"}
            told |= {"doc": f"The task {task} of Isaac Lab.", "argv": [str(job.folder)]}
            told["versions"] = ("isaaclab", "isaacsim", "newton", "rsl-rl-lib", "torch")
            rsl_rl.main(lambda _: rsl, configuration=to_dict(rl_cfg), **{**told, **description})
        except Exception as error:  # noqa: BLE001  (leaving Isaac Sim ends the process)
            traceback.print_exc()
            job.report(error)
            sys.exit(1)


class _Direct:
    """A direct environment, as a manager-based one with one term and one end."""

    step_dt, active_terms = 1.0, ["native_reward"]  # not seconds: the reward counts as it is

    def __init__(self, env: Any) -> None:
        self._env, self.reward_manager, self.get_term_cfg = env, self, lambda _: _TERM
        self._rewards, env._get_rewards = env._get_rewards, lambda: self.compute(1.0)
        self.termination_manager = SimpleNamespace(
            active_terms=["terminated"],
            get_term_cfg=lambda _: _END,
            get_term=lambda _: env.reset_terminated,
            time_outs=env.reset_time_outs,
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(self._env, name)

    def compute(self, _: float) -> Tensor:
        reward = self._rewards()
        self._step_reward = reward[:, None]
        return reward
