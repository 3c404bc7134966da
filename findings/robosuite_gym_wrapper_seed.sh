#!/usr/bin/env bash
# robosuite 1.5.2 (mujoco 3.9.0): GymWrapper.reset(seed=...) does not seed an episode, and tells its time limit as a failure.
#
# One would guess: as in Gymnasium, resets from one seed give one start state, and an episode that runs out of time is `truncated`.
# What happens: the wrapper seeds numpy's global generator, and the task draws from the generator that the environment got when it was made: three
# resets from seed 5 give three start states. The step at the horizon has terminated=True and truncated=False.
# Source: robosuite/wrappers/gym_wrapper.py, GymWrapper.reset and GymWrapper.step.
# Why it matters here: policies are compared from equal start states, and what ended an episode decides whether a value is added behind its last step:
# one that learned to reach the horizon is taught that it failed. The example (examples/commands/robosuite_lift) sets the environment's own generator
# and leaves the time limit to Gymnasium's wrapper.
#
# Output seen: the lines after "expected" below. The script fails where they change.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check robosuite==1.5.2 mujoco==3.9.0 gymnasium==1.4.0 numpy==1.26.4 h5py==3.14.0
cat >"$folder/expected" <<'EOF'
different start states of three resets from seed 5: 3
the step at the horizon: terminated True, truncated False
EOF
"$folder/venv/bin/python" -W ignore - 2>/dev/null >"$folder/seen" <<'EOF'
import numpy as np
import robosuite
from robosuite.wrappers import GymWrapper

off = {"has_renderer": False, "has_offscreen_renderer": False, "use_camera_obs": False}
lift = robosuite.make("Lift", robots="Panda", horizon=5, hard_reset=False, **off)
environment = GymWrapper(lift, keys=["cube_pos"])
starts = {tuple(environment.reset(seed=5)[0].tolist()) for _ in range(3)}
print("different start states of three resets from seed 5:", len(starts))
for _ in range(5):
    _, _, terminated, truncated, _ = environment.step(np.zeros(environment.action_dim))
print(f"the step at the horizon: terminated {terminated}, truncated {truncated}")
EOF
diff "$folder/expected" "$folder/seen" && cat "$folder/seen"
