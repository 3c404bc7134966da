#!/usr/bin/env bash
# MuJoCo Playground 0.2.0: the settings tuned for PendulumSwingup are never given to it.
#
# One would guess: dm_control_suite_params.brax_ppo_config(name) returns the PPO settings that were tuned for a task of the registry; for the pendulum
# these repeat each action four times and make four passes over a batch.
# What happens: the registry knows the task as "PendulumSwingup", and the tuned values stand under "PendulumSwingUp". The task gets the general ones
# (action_repeat 1, 16 passes), without a word, and under the other spelling there is no task.
# Source: mujoco_playground/config/dm_control_suite_params.py, brax_ppo_config, against mujoco_playground/_src/dm_control_suite/__init__.py.
# Why it matters here: a search compares rewards under the trainer's own settings. With these a pendulum learns little in a short training, and that is
# no fault of a reward. The example (examples/commands/playground_pendulum) gives numbers of its own.
#
# Output seen: the lines after "expected" below. The script fails where they change.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check playground==0.2.0 brax==0.14.2 jax==0.10.2 mujoco==4.0.0 mujoco-core==4.0.0 \
    mujoco-studio==4.0.0 mujoco-mjx==3.17.0
cat >"$folder/expected" <<'EOF'
PendulumSwingup: action_repeat 1, num_updates_per_batch 16
PendulumSwingUp in the registry: False
EOF
JAX_PLATFORMS=cpu "$folder/venv/bin/python" -W ignore - 2>/dev/null >"$folder/seen" <<'EOF'
from mujoco_playground import registry
from mujoco_playground.config import dm_control_suite_params

found = dm_control_suite_params.brax_ppo_config("PendulumSwingup")
print(f"PendulumSwingup: action_repeat {found.action_repeat}, num_updates_per_batch {found.num_updates_per_batch}")
print("PendulumSwingUp in the registry:", "PendulumSwingUp" in registry.dm_control_suite.ALL_ENVS)
EOF
diff "$folder/expected" "$folder/seen" && cat "$folder/seen"
