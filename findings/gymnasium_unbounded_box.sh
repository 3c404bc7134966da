#!/usr/bin/env bash
# Gymnasium 1.4.0 (numpy 2.4.6): neither `high` nor `bounded_above` alone tells whether a Box has a bound.
#
# One would guess: an entry has an upper bound where `bounded_above` says so, or where `high` is finite; the two agree.
# What happens:
#   Box(0, inf, dtype=int32)    keeps high = 2147483647, an ordinary number, and bounded_above = False. So `high` alone scales actions to 2e9.
#                               sample() takes the flag's word: an exponential variable cut to a whole number, 0 in about 63 of 100 draws.
#   Box(finfo.min, finfo.max)   is how many environments write "no bound". bounded_above = True, so sample() is uniform over ±3.4e38.
#                               With float64 the width is no number any more, and sample() raises OverflowError.
# Source: gymnasium/spaces/box.py (`__init__`, which replaces infinities of whole numbers after it has noted the flags, and `sample`).
# Why it matters here: a policy's −1 … 1 is scaled to the bounds. By `high` the first becomes billions, by the flag the second 1e38 or nan.
# simulation/action_conversion.py asks both: a bound is one that the flag names and that is below the largest number of the type.
#
# Output seen: the lines after "expected" below. The script fails where they change.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check gymnasium==1.4.0 numpy==2.4.6
cat >"$folder/expected" <<'EOF'
int32 with inf: high 2147483647, bounded_above False, zeros 0.6
float32 finfo: bounded_above True, largest of 1000 samples 1e+38
float64 finfo: bounded_above True, OverflowError
EOF
"$folder/venv/bin/python" -W ignore - >"$folder/seen" <<'EOF'
import numpy as np
from gymnasium.spaces import Box

def samples(space, count=1000):
    space.seed(0)
    return np.array([space.sample()[0] for _ in range(count)])

whole = Box(0, np.inf, (1,), np.int32)
zeros = (samples(whole) == 0).mean()
print(f"int32 with inf: high {whole.high[0]}, bounded_above {whole.bounded_above[0]}, zeros {zeros:.1f}")
single, double = np.finfo(np.float32), np.finfo(np.float64)
space = Box(single.min, single.max, (1,), np.float32)
largest = 10.0 ** np.floor(np.log10(samples(space).max()))
print(f"float32 finfo: bounded_above {space.bounded_above[0]}, largest of 1000 samples {largest:.0e}")
space = Box(double.min, double.max, (1,), np.float64)
try:
    space.sample()
    what = "a sample"
except OverflowError:
    what = "OverflowError"
print(f"float64 finfo: bounded_above {space.bounded_above[0]}, {what}")
EOF
diff "$folder/expected" "$folder/seen" && cat "$folder/seen"
