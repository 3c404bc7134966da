"""Tasks of mjlab with its trainer, rsl_rl: a whole program for a user's `main`. Tried with mjlab
1.6.0 and rsl-rl-lib 5.4.2."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import mjlab.tasks  # noqa: F401  (registers them)
from mjlab.envs import ManagerBasedRlEnv
from mjlab.rl import RslRlVecEnvWrapper
from mjlab.tasks.registry import list_tasks, load_env_cfg, load_rl_cfg
from torch import Tensor

from eureka_adapter import rsl_rl
from eureka_adapter.faults import Fault
from eureka_adapter.job import Job, Variable, episode_seed
from eureka_adapter.managers import Found, Managed, find

_SENSED = {"found": "1", "force": "N", "current_air_time": "s", "heights": "m"}
"""Units of what is read of a sensor with several outputs."""


def main(
    variables: Sequence[Variable] = (),
    values: Callable[[Any], Mapping[str, Tensor]] = lambda env: {},
    configure: Callable[[Any, Any], None] = lambda env, rl: None,
    argv: Sequence[str] | None = None,
    **description: Any,
) -> None:
    """Do the job that eureka-agent asks for, with the task of mjlab in its option `task`.
    `variables`, `values` of a ManagerBasedRlEnv: beyond those found, or instead. `configure`
    changes the configurations of the environment and of rsl_rl. `description`: of `rsl_rl.main`."""
    job = Job.open(argv)
    task = job.options.get("task")
    if task not in list_tasks():
        hint = "set `options: {task: …}` in command.yaml; import what registers tasks of your own"
        raise Fault(f"the option `task` is {task!r}, expected one of {list_tasks()}", hint)
    env_cfg, rl_cfg = load_env_cfg(task), load_rl_cfg(task)
    env_cfg.scene.num_envs = job.num_envs
    entries = job.fields.get("trainings") or job.fields.get("policies") or [{"seed": 0}]
    env_cfg.seed = episode_seed("environments", entries[0]["seed"])
    env_cfg.viewer.max_extra_envs = 0
    env_cfg.viewer.width, env_cfg.viewer.height = job.fields.get("size", (320, 240))
    env_cfg.is_finite_horizon = False  # time limits are told apart
    configure(env_cfg, rl_cfg)
    env = ManagerBasedRlEnv(env_cfg, job.device.replace("cuda", "cuda:0"), job.render_mode)
    found = {each[0].name: each for each in (*find(env, env.scene.entities), *_sensors(env))}
    managed = Managed(env, found, values)
    natives = [Variable(each["name"], doc=each["doc"]) for each in managed.native_terms]
    known = (*(variable for variable, _ in found.values()), *natives, *variables)
    configuration = asdict(rl_cfg)
    for network in (configuration["actor"], configuration["critic"]):
        for key in [key for key, value in network.items() if value is None]:
            del network[key]  # rsl_rl takes no None, nor the sizes of a memory without one
        if "rnn_type" not in network:
            del network["rnn_hidden_dim"], network["rnn_num_layers"]

    def picture(_: Any, row: int) -> Any:
        env._offline_renderer._env_ids = (row,)
        return env.render()

    read = rsl_rl.RslEnv(
        RslRlVecEnvWrapper(env),
        reset_all=lambda _, seeds: managed.reset_all(seeds),
        values=lambda _: managed.reached,
        start=lambda _: managed.start(),
        causes=lambda _: managed.causes(),
        # without a display or MUJOCO_GL there is no picture
        picture=picture if {"MUJOCO_GL", "DISPLAY"} & os.environ.keys() else None,
        clip_actions=float("inf") if rl_cfg.clip_actions is None else rl_cfg.clip_actions,
    )
    told = {
        "control_dt": env.step_dt,
        "rewards": 8,
        "ends": managed.ends,
        "native_terms": managed.native_terms,
        "versions": ("mjlab", "mujoco", "mujoco-warp", "rsl-rl-lib", "torch"),
        "doc": f"The task {task} of mjlab.",
    }
    listed = [*{each.name: each for each in known}.values()]
    rsl_rl.main(
        lambda _: read, listed, configuration, argv=[str(job.folder)], **{**told, **description}
    )


def _sensors(env: ManagerBasedRlEnv) -> Iterator[Found]:
    """Outputs of sensors that are few numbers."""

    def data(sensor: Any) -> Any:
        # the observations compute it anew later, as without this
        valid = sensor._cache_valid
        data, sensor._cache_valid = sensor.data, valid
        return data

    sensors = env.scene.sensors
    for name, sensor in sensors.items():
        short, now = name.rpartition("/")[2], data(sensor)
        order = ", ".join(getattr(sensor, "primary_names", ()))
        if any(name.startswith(f"{other}_") for other in sensors):
            continue  # a part of that
        if isinstance(now, Tensor):
            doc = f"sensor {getattr(sensor.cfg, 'sensor_type', name)}"
            yield Variable(short, tuple(now.shape[1:]), doc=doc), partial(data, sensor)
        for field, unit in _SENSED.items():
            if isinstance(value := getattr(now, field, None), Tensor):
                doc = f"{field.replace('_', ' ')} of the sensor {short}, in order: {order}"
                variable = Variable(f"{short}_{field}", tuple(value.shape[1:]), unit, doc=doc)
                yield variable, lambda it=sensor, field=field: getattr(data(it), field)
