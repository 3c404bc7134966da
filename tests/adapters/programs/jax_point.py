"""Points on a plane, as an environment of brax, with its PPO."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
from brax.envs.base import Env, State
from brax.training.agents.ppo import train as ppo
from eureka_adapter import Step, Training, Variable, brax_envs, episode_seed
from jax import numpy as jnp

VARIABLES = [
    Variable("place", (2,), "m", doc="the episode ends beyond 1.5"),
    Variable("distance", (), "m", doc="from the middle"),
]

SETTINGS: dict[str, Any] = {
    "episode_length": 20,
    "normalize_observations": True,
    "batch_size": 16,
    "num_minibatches": 2,
    "unroll_length": 5,
    "learning_rate": 1e-3,
}


class Points(Env):
    """A point that actions push."""

    observation_size, action_size, dt, backend = 2, 2, 0.1, "none"

    def __init__(self, broken: bool) -> None:
        self._broken = broken

    def reset(self, rng: Any) -> State:
        place = jax.random.uniform(rng, (2,), minval=-1.0)
        return State(place, place, jnp.zeros(()), jnp.zeros(()))

    def step(self, state: State, action: Any) -> State:
        if self._broken:
            raise ValueError("the simulator is broken")
        place = state.pipeline_state + 0.2 * action
        left = jnp.linalg.norm(place) > 1.5
        reward = -jnp.abs(place).sum()
        return state.replace(
            pipeline_state=place, obs=place, reward=reward, done=left.astype(float)
        )


def record(folder: Path) -> None:
    """Keep what each step of the training gives to the reward, and its totals."""
    step_of, steps = Training.step, []

    def step(training: Training, given: Step) -> Any:
        total = step_of(training, given)
        ends = {"terminated": given.terminated, "truncated": given.truncated}
        start = {f"start_{name}": each for name, each in given.start.items()}
        left = given.causes["left"]
        steps.append({**given.values, **start, **ends, "left": left, "actions": given.actions})
        steps[-1]["total"] = total.numpy()
        arrays = {name: np.stack([each[name] for each in steps]) for name in steps[0]}
        np.savez(folder / "steps.npz", **arrays)
        return total

    Training.step = step


def train_by_brax_alone(folder: Path) -> None:
    """Train with the environment's own reward, without the adapter."""
    job = json.loads((folder / "job.json").read_text())
    seed = episode_seed("algorithm", job["trainings"][0]["seed"], 0)
    own = {"num_envs": job["num_envs"], "seed": seed, "run_evals": False}
    own["num_evals"] = 1 + job["env_steps"] // 160  # as many draws of keys
    # brax 0.14.2 calls what jax 0.10 has no more
    jax.device_put_replicated = lambda tree, _: jax.tree.map(lambda x: jnp.stack([x]), tree)
    params = ppo.train(Points(False), job["env_steps"], **SETTINGS, **own)[1]
    brax_envs._save(params[:2], folder / "alone.npz")


def main(what: str, folder: Path) -> None:
    if what == "alone":
        train_by_brax_alone(folder)
        return
    if what == "record":
        record(folder)
    brax_envs.main(
        lambda job: Points(what == "environment"),
        VARIABLES,
        lambda state: {
            "place": state.pipeline_state,
            "distance": jnp.linalg.norm(state.pipeline_state, axis=-1),
        },
        {**SETTINGS, "learning_rat": 1.0} if what == "trainer" else SETTINGS,
        causes=lambda state: {"left": state.done > 0},
        ends={"left": "beyond 1.5 m"},
    )


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
