"""Records episodes of MetaWorld itself for `tests/envs/test_metaworld.py`.

It runs in an environment of its own, because MetaWorld wants another MuJoCo than this project:

    python -m venv metaworld-venv
    metaworld-venv/bin/pip install metaworld==3.1.1 packaging
    metaworld-venv/bin/python benchmarks/_metaworld_recordings.py tests/envs/data/metaworld.npz

Each of the ten tasks is played for three episodes of 100 steps at places of its own: by MetaWorld's
scripted policy, by that policy with noise, and by slowly changing random actions. All are float32:
`place` (of the object), `start` (qpos), `actions`, `qpos`, `hand`, `tips`, `object`, `reward`, and
`success`, by task and with the episode first.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

TASKS = (
    *("drawer-open", "drawer-close", "window-open", "window-close", "button-press"),
    *("door-unlock", "door-close", "sweep-into", "handle-press", "handle-press-side"),
)
STEPS = 100
EPISODES = 3


def play(environment: Any, policy: Any, episode: int, random: np.random.Generator) -> dict:
    """One episode; the place of the object is drawn, and rounded to float32."""
    box = environment._random_reset_space
    place = random.uniform(box.low, box.high).astype(np.float32).astype(np.float64)
    while "Sweep" in type(environment).__name__ and np.linalg.norm(place[:2] - (0, 0.84)) < 0.15:
        place = random.uniform(box.low, box.high).astype(np.float32).astype(np.float64)
    environment._last_rand_vec = place
    environment._freeze_rand_vec = True
    observation, _ = environment.reset()
    found: dict[str, list] = {
        name: [] for name in ("actions", "qpos", "hand", "tips", "object", "reward", "success")
    }
    start = environment.data.qpos.copy()
    drift = np.zeros(4)
    for _ in range(STEPS):
        action = np.clip(policy.get_action(observation), -1.0, 1.0)
        if episode == 1:
            action = action + random.normal(0.0, 0.3, 4)
        if episode == 2:
            drift = 0.9 * drift + random.normal(0.0, 0.4, 4)
            action = drift
        action = np.clip(action, -1.0, 1.0).astype(np.float32)
        observation, reward, _, _, info = environment.step(action)
        found["actions"].append(action)
        found["qpos"].append(environment.data.qpos.copy())
        found["hand"].append(environment.get_endeff_pos().copy())
        found["tips"].append(environment.tcp_center)
        found["object"].append(observation[4:7])
        found["reward"].append(reward)
        found["success"].append(info["success"])
    return {"place": place[:3], "start": start, **found}


def main(target: Path) -> None:
    """Write all recordings into `target`."""
    # of another environment, in which this project is not
    from metaworld.env_dict import ALL_V3_ENVIRONMENTS
    from metaworld.policies import ENV_POLICY_MAP

    arrays: dict[str, np.ndarray] = {}
    for number, task in enumerate(TASKS):
        environment = ALL_V3_ENVIRONMENTS[f"{task}-v3"]()
        # scripted policies read the goal, to whose bounds the observation is clipped
        environment._partially_observable = False
        environment.__dict__.pop("sawyer_observation_space", None)
        environment._set_task_called = True
        random = np.random.default_rng(number)
        policy = ENV_POLICY_MAP[f"{task}-v3"]()
        episodes = [play(environment, policy, each, random) for each in range(EPISODES)]
        for name in episodes[0]:
            arrays[f"{task}/{name}"] = np.asarray([each[name] for each in episodes], np.float32)
        done = arrays[f"{task}/success"].max(axis=1)
        print(task, "success by episode", done.tolist())
    np.savez_compressed(target, **arrays)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
