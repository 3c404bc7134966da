"""MuJoCo Playground and brax with brax's PPO: a whole program for a user's `main`. A callback takes
each step to the reward on the host. Tried with playground 0.2.0, brax 0.14.2 and jax 0.10.2."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import brax.envs
import jax
import numpy as np
import torch
from brax.training.agents.ppo import train as ppo
from jax import numpy as jnp
from jax.experimental import io_callback

from eureka_adapter.episodes import play
from eureka_adapter.faults import Fault, blame
from eureka_adapter.job import Job, Variable, episode_seed
from eureka_adapter.rows import Step
from eureka_adapter.training import load_arrays, save_arrays

Read = Callable[[Any], Mapping[str, Any]]
"""Arrays by name of a batch of states, which jax traces. The batch comes first."""
NATIVE = Variable("native_reward", doc="the environment's own reward of this step")
PACKAGES = ("playground", "brax", "jax", "mujoco", "mujoco-mjx", "torch")


def main(
    make_env: Callable[[Job], Any],
    variables: Sequence[Variable],
    values: Read,
    hyperparameters: Mapping[str, Any],
    *,
    causes: Read = lambda states: {},
    argv: Sequence[str] | None = None,
    **description: Any,
) -> None:
    """Do the job that eureka-agent asks for. `make_env`: one environment. `hyperparameters`: of
    brax's `ppo.train`; `episode_length` is needed, and `wrap_env_fn` for Playground. `causes`:
    masks by cause of an early end. `description`: other fields of `Job.described`."""
    job = Job.open(argv)
    # the CPU is for the callback, which may wait forever for arguments that come asynchronously
    jax.config.update("jax_platforms", "cuda,cpu" if job.device == "cuda" else "cpu")
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    job.device = "cpu"  # torch's
    torch.set_num_threads(1)
    most = max((each["episodes"] for each in job.fields.get("policies", ())), default=job.num_envs)
    envs = _Envs(make_env(job), min(job.num_envs, most), values, causes)
    settings = {"batch_size": 32, "num_minibatches": 16, "unroll_length": 10, **hyperparameters}
    settings.update(num_envs=job.num_envs, max_devices_per_host=1, run_evals=False)
    # a reset between updates would cut episodes short, and nothing would tell of it
    settings.update(num_resets_per_eval=0, action_repeat=1)
    if (size := settings["batch_size"] * settings["num_minibatches"]) % job.num_envs:
        message = f"batch_size × num_minibatches is {size}, expected a multiple of num_envs, "
        raise Fault(f"{message}which is {job.num_envs}", "change one of the three")
    native = [{"name": NATIVE.name, "weight": 1.0, "doc": NATIVE.doc}]
    job.described(
        [*variables, NATIVE],
        num_observations=int(sum(jax.tree.leaves(envs.env.observation_size))),
        num_actions=envs.env.action_size,
        control_dt=float(envs.env.dt),
        max_episode_length=settings["episode_length"],
        **{"native_terms": native, "versions": PACKAGES, **description},
    )

    def load_policy(path: Path) -> Callable[[Any], Any]:
        make_policy, params = envs.untrained(settings)
        policy = make_policy((*_loaded(params[:2], path), *params[2:]), deterministic=True)
        return jax.jit(lambda observations: policy(observations, jax.random.PRNGKey(0))[0])

    update = size * settings["unroll_length"]
    _train(job, envs, settings, update) if job.mode == "train" else play(job, envs, load_policy)


class _Envs:
    """Copies of an environment and what reads them, as a `BatchedEnv`."""

    def __init__(self, env: Any, num_envs: int, values: Read, causes: Read) -> None:
        self.env, self.num_envs, self._values, self._causes = env, num_envs, values, causes
        self._reset, self._step = jax.jit(jax.vmap(env.reset)), jax.jit(jax.vmap(env.step))
        # takes no time to compile
        self.blank = SimpleNamespace(reset=self._blank, action_size=env.action_size)

    def _blank(self, keys: Any) -> Any:
        return jax.tree.map(jnp.zeros_like, jax.eval_shape(self._reset, keys))

    def untrained(self, settings: dict[str, Any]) -> tuple[Callable[..., Any], Any]:
        """Maker of policies, and parameters of the form that it takes."""
        return ppo.train(self.blank, **{**settings, "num_timesteps": 0, "wrap_env": False})[:2]

    def read(self, state: Any) -> dict[str, Any]:
        return {**self._values(state), NATIVE.name: state.reward}

    def reached(self, state: Any, actions: Any, start: Any = None) -> Step:
        late = state.info.get("truncation", jnp.zeros_like(state.done)) > 0
        ended = (state.done > 0) & ~late
        causes = {name: each & ended for name, each in self._causes(state).items()}
        return Step(self.read(state), actions, ended, late, causes, start)

    def reset(self, seeds: list[int]) -> tuple[Any, Mapping[str, Any]]:
        self._state = self._reset(jnp.stack([jax.random.PRNGKey(seed) for seed in seeds]))
        return self._state.obs, jax.tree.map(np.array, self.read(self._state))

    def step(self, actions: Any) -> Step:
        self._state = self._step(self._state, np.array(actions))
        step: Step = jax.tree.map(np.array, self.reached(self._state, actions))
        return step._replace(observations=self._state.obs)

    def render(self, row: int) -> Any:
        state = jax.tree.map(lambda each: each[row], self._state)
        return self.env.render(getattr(state, "pipeline_state", state), height=480, width=640)


def _rewarded(env: Any, envs: _Envs, host: Callable[[Any], Any]) -> SimpleNamespace:
    """Environments whose rewards `host` returns. It gets start states' values, then each step."""
    inner, reached = env.env.step, []
    # the states that its own wrapper will reset
    env.env.step = lambda *given: reached.append(inner(*given)) or reached[-1]

    @blame("environment")
    def reset(rng: Any) -> Any:
        state = env.reset(rng)
        io_callback(host, None, envs.read(state))
        return state

    @blame("environment")
    def step(state: Any, action: Any) -> Any:
        state = env.step(state, action)
        told = envs.reached(reached.pop(), action, envs.read(state))
        return state.replace(reward=io_callback(host, state.reward, told))

    return SimpleNamespace(reset=reset, step=step, action_size=env.action_size)


@blame("trainer")
def _train(job: Job, envs: _Envs, settings: dict[str, Any], update: int) -> None:
    training, caught, restored, done = job.trainings[0], [], None, 0
    if training.state:
        restored, done = _loaded((envs.untrained(settings)[1], 0), training.state)

    def host(given: Any) -> Any:
        try:
            given = jax.tree.map(np.array, given)
            is_step = isinstance(given, Step)
            return training.step(given).numpy() if is_step else training.begin(given, int(done))
        except Exception as error:  # jax would pass on its text alone
            caught.append(error)
            raise

    def keep(step: int, _: Any, params: Any) -> None:
        if step:  # else the first reset may still be under way
            save = partial(_save, params[:2])
            training.keep(save, partial(_save, (params, training.env_steps)))
        if training.cancelled:
            raise SystemExit

    wrap = settings.get("wrap_env_fn", brax.envs.training.wrap)
    left = job.fields["env_steps"] - int(done)
    # parameters come out between what brax calls evaluations: after each update
    settings |= {"num_timesteps": left, "num_evals": 1 - (-left // update)}
    settings |= {"seed": episode_seed("algorithm", training.seed, int(done))}
    settings["wrap_env_fn"] = lambda env, **more: (
        env if env is envs.blank else _rewarded(wrap(env, **more), envs, host)
    )
    # brax 0.14.2 calls what jax 0.10 has no more; with another layout it would compile twice
    layout = jax.NamedSharding(jax.sharding.Mesh(jax.local_devices()[:1], ("i",)), jax.P("i"))
    jax.device_put_replicated = lambda tree, _: jax.device_put(
        jax.tree.map(lambda each: jnp.stack([each]), tree), layout
    )
    settings |= {"eval_env": envs.blank, "policy_params_fn": keep, "restore_params": restored}
    try:
        params = ppo.train(envs.env, **settings)[1]
    finally:
        if caught:
            raise caught[0]
    training.end(partial(_save, params[:2]))


def _save(params: Any, path: Path) -> None:
    leaves = [(jax.tree_util.keystr(at), leaf) for at, leaf in jax.tree.leaves_with_path(params)]
    save_arrays(path, {name: torch.from_numpy(np.array(leaf)) for name, leaf in leaves})


def _loaded(params: Any, path: Path) -> Any:
    arrays = load_arrays(path)
    return jax.tree.map_with_path(lambda at, _: arrays[jax.tree_util.keystr(at)].numpy(), params)
