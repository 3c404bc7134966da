#!/usr/bin/env bash
# Gymnasium 1.4.0 (numpy 2.4.6): flatten() of a choice outside its space is silent, and may set the column of another entry.
#
# One would guess: an observation that its space does not contain is refused by spaces.flatten, as an index out of range is.
# What happens:
#   flatten(MultiDiscrete([2, 3]), [2, 0])   gives 0 0 1 0 0: of the two columns of the first entry none is set, and its 2 sets the first one of the
#                                            second. With [2, 1] two columns of the second entry are set.
#   flatten(Discrete(3), -1)                 gives 0 0 1, the last choice.
# Source: gymnasium/spaces/utils.py: the columns are indexed by the value plus an offset, without a look at the space.
# Why it matters here: an environment whose info or observation is off by one trains on states that never were, and no error names it.
# `eureka envs --check` compares each observation with its space before it is flattened (simulation/gymnasium_spaces.py), and names entry and value.
#
# Output seen: the lines after "expected" below. The script fails where they change.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check gymnasium==1.4.0 numpy==2.4.6
cat >"$folder/expected" <<'EOF'
[2, 0] of MultiDiscrete([2 3]): 0 0 1 0 0
[2, 1] of MultiDiscrete([2 3]): 0 0 1 1 0
-1 of Discrete(3): 0 0 1
EOF
"$folder/venv/bin/python" -W ignore - >"$folder/seen" <<'EOF'
import numpy as np
from gymnasium.spaces import Discrete, MultiDiscrete, flatten

several = MultiDiscrete([2, 3])
for value in ([2, 0], [2, 1]):
    print(f"{value} of {several}:", *flatten(several, np.array(value)))
print(f"-1 of {Discrete(3)}:", *flatten(Discrete(3), np.int64(-1)))
EOF
diff "$folder/expected" "$folder/seen" && cat "$folder/seen"
