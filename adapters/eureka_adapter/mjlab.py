"""Tasks of mjlab with its trainer, rsl_rl. Tried with mjlab 1.6.0 and rsl-rl-lib 5.4.2."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import mjlab.tasks  # noqa: F401  (registers them)
from mjlab.envs import ManagerBasedRlEnv
from mjlab.rl import MjlabOnPolicyRunner, RslRlVecEnvWrapper
from mjlab.tasks.registry import list_tasks, load_env_cfg, load_rl_cfg

from eureka_adapter import rsl_rl
from eureka_adapter.faults import Fault
from eureka_adapter.job import Job, Variable, episode_seed
from eureka_adapter.managers import Found, find, managed, readable

rsl_rl.OnPolicyRunner = MjlabOnPolicyRunner  # it leaves out options that are off
_UNITS = {"data": "SI", "found": "1", "force": "N", "current_air_time": "s", "heights": "m"}
"""Units of a sensor's one output, or of some of several."""


def main(
    variables: Sequence[Variable] = (),
    values: Callable[[Any], Mapping[str, Any]] = lambda env: {},
    **description: Any,
) -> None:
    """Do the job that eureka-agent asks for, with the task that its option `task` names. Variables
    and values are more than those found, or replace them. `description`: of `rsl_rl.main`."""
    job = Job.open()
    if (task := job.options.get("task")) not in list_tasks():
        raise Fault(f"`task` is {task!r}, expected one of {list_tasks()}", "set it in `options`")
    env_cfg, rl_cfg = load_env_cfg(task), load_rl_cfg(task)
    env_cfg.scene.num_envs = job.num_envs
    env_cfg.scene.env_spacing = 0.0  # their physics never meet, and positions are without a grid
    entries = job.fields.get("trainings") or job.fields.get("policies") or [{"seed": 0}]
    env_cfg.seed = episode_seed("environments", entries[0]["seed"])
    env_cfg.is_finite_horizon = False  # or time limits would not be told apart
    env_cfg.viewer.width, env_cfg.viewer.height = job.fields.get("size", (320, 240))
    env = ManagerBasedRlEnv(env_cfg, job.device.replace("cuda", "cuda:0"), job.render_mode)
    own = {it.name: (it, lambda it=it: values(env)[it.name]) for it in variables}
    reads, told = managed(job, env, {**find(env, env.scene.entities), **_sensors(env), **own})

    def picture(_: Any, row: int) -> Any:
        env._offline_renderer._env_ids = (row,)
        return env.render()

    clip = float("inf") if rl_cfg.clip_actions is None else rl_cfg.clip_actions
    rsl = rsl_rl.RslEnv(RslRlVecEnvWrapper(env), **reads, picture=picture, clip_actions=clip)
    told |= {"control_dt": env.step_dt, "rewards": 8, "doc": f"The task {task} of mjlab."}
    told["versions"] = ("mjlab", "mujoco", "mujoco-warp", "rsl-rl-lib", "torch")
    rsl_rl.main(lambda _: rsl, configuration=asdict(rl_cfg), **{**told, **description})


def _sensors(env: ManagerBasedRlEnv) -> Found:
    """Outputs of the sensors that are no part of another one."""
    found: Found = {}
    for name, sensor in env.scene.sensors.items():
        is_part = any(name.startswith(f"{other}_") for other in env.scene.sensors)
        for field, unit in {} if is_part else _UNITS.items():
            free = f"{name.rpartition('/')[2]}_{field}".replace("_data", "")
            doc = f"of the sensor {name} {', '.join(getattr(sensor, 'primary_names', ()))}".strip()
            # not `sensor.data`: the observations would find it again, from before the resets
            found |= readable(
                free, lambda it=sensor, field=field: getattr(it._compute_data(), field), unit, doc
            )
    return found
