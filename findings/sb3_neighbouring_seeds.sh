#!/usr/bin/env bash
# Stable-Baselines3 2.9.2 (Gymnasium 1.4.0): trainings from neighbouring seeds share all start states but one environment's.
#
# One would guess: PPO(..., seed=1) and PPO(..., seed=2) on four environments begin from eight independent start states, so that "seeds 1 to 5" are
# five independent trainings.
# What happens: environment i of a vectorised environment is reset with seed + i. The environments 1, 2 and 3 of seed 1 begin exactly where the
# environments 0, 1 and 2 of seed 2 begin, and go on with the same streams of random numbers.
# Source: stable_baselines3/common/vec_env/base_vec_env.py, VecEnv.seed, which the algorithms call with their own seed.
# Why it matters here: a score over neighbouring seeds has less noise between its trainings than independent seeds have, and intervals from it are too
# narrow. The adapter (adapters/eureka_adapter/gymnasium_sb3.py) gives every environment a seed that is a hash of the training's seed and its place.
#
# Output seen: the lines after "expected" below. The script fails where they change.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check torch==2.13.0
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check stable-baselines3==2.9.2 gymnasium==1.4.0 numpy==2.4.6
cat >"$folder/expected" <<'EOF'
start states that seeds 1 and 2 share: 3 of 4
start states that seeds 1 and 3 share: 2 of 4
start states that seeds 1 and 5 share: 0 of 4
EOF
"$folder/venv/bin/python" -W ignore - >"$folder/seen" <<'EOF'
import gymnasium
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv


def starts(seed):
    environments = DummyVecEnv([lambda: gymnasium.make("Pendulum-v1")] * 4)
    PPO("MlpPolicy", environments, seed=seed, device="cpu")
    return {tuple(row) for row in environments.reset().tolist()}


first = starts(1)
for seed in (2, 3, 5):
    print(f"start states that seeds 1 and {seed} share: {len(first & starts(seed))} of 4")
EOF
diff "$folder/expected" "$folder/seen" && cat "$folder/seen"
