"""Environments of MuJoCo Playground and brax with brax's PPO: a whole program for a user's `main`.
A callback takes each step of the compiled training to the reward on the host. Tried with
playground 0.2.0, brax 0.14.2, jax 0.10.2."""

from __future__ import annotations

import contextlib
import inspect
import math
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import torch
from brax.envs.base import State, Wrapper
from brax.training.agents.ppo import networks
from brax.training.agents.ppo import train as ppo
from jax import numpy as jnp
from jax.experimental import io_callback
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from eureka_adapter.episodes import play
from eureka_adapter.faults import Fault, blame
from eureka_adapter.job import Job, Variable, episode_seed
from eureka_adapter.rows import Step
from eureka_adapter.training import Training, load_arrays, save_arrays

Read = Callable[[Any], Mapping[str, Any]]
"""Arrays by name of a batch of states, as jax traces it; the batch comes first."""
NATIVE = "native_reward"
PACKAGES = ("playground", "brax", "jax", "mujoco", "mujoco-mjx", "torch")


def _picture(env: Any, state: Any) -> Any:
    """Picture of one state by the environment's own renderer."""
    return env.render(getattr(state, "pipeline_state", state), height=480, width=640)


def main(
    make_env: Callable[[Job], Any],
    variables: Sequence[Variable],
    values: Read,
    hyperparameters: Mapping[str, Any],
    *,
    causes: Read = lambda states: {},
    picture: Callable[[Any, Any], Any] = _picture,
    argv: Sequence[str] | None = None,
    **description: Any,
) -> None:
    """Do the job that eureka-agent asks for. `make_env`: one environment, unwrapped.
    `hyperparameters`: arguments of brax's `ppo.train`, `episode_length` among them, and for
    Playground `wrap_env_fn=wrapper.wrap_for_brax_training`. `causes`: masks by cause of an early
    end. `picture`: of an environment and a state. `description`: other fields of `Job.described`.
    The environment's own reward is the variable `native_reward`."""
    job = Job.open(argv)
    # the callback needs the CPU, and may wait forever for its arguments if that works by itself
    jax.config.update("jax_platforms", "cuda,cpu" if job.device == "cuda" else "cpu")
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    job.device = "cpu"  # torch's part is on the host
    torch.set_num_threads(1)
    env = make_env(job)

    def told(state: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        return {**values(state), NATIVE: state.reward}, dict(causes(state))

    learner = _Learner(job, env, dict(hyperparameters))
    own = Variable(NATIVE, doc="the environment's own reward of this step")
    described = {
        "native_terms": [{"name": NATIVE, "weight": 1.0, "doc": own.doc}],
        "versions": PACKAGES,
        **description,
        "can": {"film": bool(os.environ.get("MUJOCO_GL")), **description.get("can", {})},
    }
    job.described(
        [*variables, own],
        num_observations=sum(each.shape[-1] for each in jax.tree.leaves(learner.seen)),
        num_actions=env.action_size,
        control_dt=float(env.dt),
        max_episode_length=learner.settings["episode_length"],
        **described,
    )
    if job.mode == "train":
        learner.train(job.trainings[0], told)
        return
    rows = job.num_envs
    if "policies" in job.fields:
        counts = [entry["episodes"] for entry in job.fields["policies"]]
        rows = 1 if job.mode == "film" else min(rows, max(counts))
    play(job, _Batch(env, rows, told, picture), learner.policy)


class _Batch:
    """Copies of an environment as a `BatchedEnv`."""

    def __init__(self, env: Any, num_envs: int, told: Callable[[Any], Any], picture: Any) -> None:
        self.num_envs, self._env, self._picture = num_envs, env, picture

        def reset(keys: Any) -> Any:
            state = jax.vmap(env.reset)(keys)
            return state, told(state)

        def step(state: Any, actions: Any) -> Any:
            state = jax.vmap(env.step)(state, actions)
            return state, told(state)

        self._reset, self._step = jax.jit(reset), jax.jit(step)

    def reset(self, seeds: list[int]) -> tuple[Any, Mapping[str, Any]]:
        """See `BatchedEnv`."""
        with blame("environment"):
            keys = jnp.stack([jax.random.PRNGKey(seed) for seed in seeds])
            self._state, (values, _) = self._reset(keys)
            return self._state.obs, jax.tree.map(np.array, values)

    def step(self, actions: Any) -> Step:
        """See `BatchedEnv`."""
        with blame("environment"):
            applied = np.array(actions)
            self._state, told = self._step(self._state, applied)
            values, causes = jax.tree.map(np.array, told)
            done = np.array(self._state.done) > 0
            ends = done, np.zeros_like(done)
            return Step(values, applied, *ends, causes, observations=self._state.obs)

    def render(self, row: int) -> Any:
        """See `BatchedEnv`."""
        return np.array(self._picture(self._env, jax.tree.map(lambda x: x[row], self._state)))


class _Rewarded(Wrapper):
    """Environments that reset themselves, with a reward that the host gives."""

    def __init__(self, env: Any, told: Callable[[Any], Any], begin: Any, reward: Any) -> None:
        super().__init__(env)
        self._told, self._begin, self._reward = told, begin, reward
        inner = env.env.step

        def before_resets(state: Any, action: Any) -> Any:
            self._reached = inner(state, action)
            return self._reached

        env.env.step = before_resets

    def reset(self, rng: Any) -> Any:
        """Reset all, which begins a training."""
        with blame("environment"):
            state = self.env.reset(rng)
            start, _ = self._told(state)
        io_callback(self._begin, None, start)
        return state

    def step(self, state: Any, action: Any) -> Any:
        """Step all."""
        with blame("environment"):
            state = self.env.step(state, action)
            reached = self._reached
            (values, causes), (start, _) = self._told(reached), self._told(state)
            late = reached.info["truncation"] > 0
            ends = (reached.done > 0) & ~late, late
        shape = jax.ShapeDtypeStruct(late.shape, jnp.float32)
        step = (values, action, *ends, causes, start)
        return state.replace(reward=io_callback(self._reward, shape, step))


class _Over(Exception):
    """A training has had its env steps, or was cancelled."""


class _Learner:
    """brax's PPO with its settings, its policy files and its states."""

    def __init__(self, job: Job, env: Any, settings: dict[str, Any]) -> None:
        self._job, self._env = job, env
        factory = settings.get("network_factory")
        if factory is not None and not callable(factory):  # sizes, in Playground's configurations
            settings["network_factory"] = partial(networks.make_ppo_networks, **factory)
        ours = {"num_envs": job.num_envs, "max_devices_per_host": 1, "run_evals": False}
        # a reset between updates would cut episodes without an end
        self.settings: dict[str, Any] = {**settings, **ours, "num_resets_per_eval": 0}
        with blame("trainer"):
            for name in ("num_timesteps", "num_evals", "seed"):
                self.settings.pop(name, None)
            bound = inspect.signature(ppo.train).bind(env, 0, **self.settings)
            bound.apply_defaults()
        size = bound.arguments["batch_size"] * bound.arguments["num_minibatches"]
        if size % job.num_envs or bound.arguments["action_repeat"] != 1:
            raise Fault(
                f"batch_size × num_minibatches is {size}, and action_repeat is "
                f"{bound.arguments['action_repeat']}, expected a multiple of {job.num_envs}, and 1",
                "change num_envs in command.yaml, or the hyperparameters",
            )
        self._steps_of_update = size * bound.arguments["unroll_length"]
        self.seen = jax.eval_shape(env.reset, jax.random.PRNGKey(0)).obs

    def _untrained(self) -> tuple[Callable[..., Any], Any]:
        """Maker of policies, and new parameters as its argument."""

        def reset(keys: Any) -> State:
            zeros = jnp.zeros(len(keys))
            seen = jax.tree.map(lambda x: jnp.zeros((len(keys), *x.shape)), self.seen)
            return State(None, seen, zeros, zeros)

        blank: Any = SimpleNamespace(reset=reset, action_size=self._env.action_size)
        settings = {**self.settings, "wrap_env": False}
        return ppo.train(blank, 0, **settings)[:2]

    def train(self, training: Training, told: Callable[[Any], Any]) -> None:
        """Train with the reward, from the beginning or from a state."""
        saved = load_arrays(training.state) if training.state else {}
        done = int(saved.pop("env_steps")) if saved else 0
        caught: list[Exception] = []

        def hosted(function: Callable[..., Any]) -> Callable[..., Any]:
            def call(*arguments: Any) -> Any:
                try:
                    return function(*jax.tree.map(np.array, arguments))
                except Exception as error:
                    caught.append(error)
                    raise

            return call

        def wrapped(env: Any, **settings: Any) -> Any:
            inner = self.settings.get("wrap_env_fn") or ppo.envs.training.wrap
            begin = hosted(lambda start: training.begin(start, done))
            reward = hosted(lambda step: training.step(Step(*step)).numpy())
            return _Rewarded(inner(env, **settings), told, begin, reward)

        def keep(_: int, __: Any, params: Any) -> None:
            self._params = params
            training.keep(
                lambda path: _save(path, params[:2]),
                lambda path: _save(path, params, env_steps=torch.tensor(training.env_steps)),
            )
            if training.over:
                raise _Over

        left = max(self._job.fields["env_steps"] - done, 1)
        settings = {**self.settings, "wrap_env_fn": wrapped, "policy_params_fn": keep}
        settings["seed"] = episode_seed("algorithm", training.seed, done)
        # parameters come out between what brax calls evaluations: one for each update
        settings["num_evals"] = math.ceil(left / self._steps_of_update) + 1
        with blame("trainer"):
            if saved:
                settings["restore_params"] = _filled(self._untrained()[1], saved)
            try:
                with contextlib.suppress(_Over):
                    ppo.train(self._env, left, **settings)
            except Exception as error:
                raise caught[0] if caught else error from None
            training.end(lambda path: _save(path, self._params[:2]))

    def policy(self, path: Path) -> Callable[[Any], Any]:
        """Policy of a file, which acts without noise."""
        make_policy, params = self._untrained()
        own = _filled(params[:2], load_arrays(path))
        policy = jax.jit(make_policy((*own, *params[2:]), deterministic=True))
        return lambda observations: policy(observations, jax.random.PRNGKey(0))[0]


def _leaves(tree: Any) -> tuple[list[tuple[str, Any]], Any]:
    found, structure = jax.tree_util.tree_flatten_with_path(tree)
    return [(jax.tree_util.keystr(path), leaf) for path, leaf in found], structure


def _save(path: Path, tree: Any, **more: torch.Tensor) -> None:
    leaves = {name: torch.from_numpy(np.array(leaf)) for name, leaf in _leaves(tree)[0]}
    save_arrays(path, {**leaves, **more})


def _filled(tree: Any, arrays: Mapping[str, torch.Tensor]) -> Any:
    """The tree with the leaves of a file."""
    leaves, structure = _leaves(tree)
    return jax.tree.unflatten(structure, [jnp.asarray(arrays[name].numpy()) for name, _ in leaves])


def _replicated(tree: Any, devices: Sequence[Any]) -> Any:
    """Copies on the devices, laid out as brax's `pmap` leaves them: else it compiles twice."""
    layout = NamedSharding(Mesh(np.array(devices), (ppo._PMAP_AXIS_NAME,)), PartitionSpec("i"))
    return jax.tree.map(lambda x: jax.device_put(jnp.stack([x] * len(devices)), layout), tree)


# brax 0.14.2 calls it, and jax 0.10 has it no more
jax.device_put_replicated = _replicated
