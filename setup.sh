#!/usr/bin/env bash
# Makes .venv and installs the package into it; does nothing when that is done and pyproject.toml has not changed since.
#   setup.sh          what `eureka` needs
#   setup.sh dev      what the tests and checks need as well
#   setup.sh bench    what the benchmarks need as well
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
extras=${1:-}
venv="$here/.venv"
stamp="$venv/.installed${extras:+-$extras}"
if [[ -f "$stamp" && "$stamp" -nt "$here/pyproject.toml" ]]; then
    exit 0
fi

python=""
for candidate in ${EUREKA_PYTHON:-} python3 python3.13 python3.12 python3.11; do
    if command -v "$candidate" >/dev/null && "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        python=$candidate
        break
    fi
done
if [[ -z "$python" ]]; then
    echo "error: no Python 3.11 or newer was found" >&2
    echo " hint: install one, or name it: EUREKA_PYTHON=/path/to/python3.12 ./eureka" >&2
    exit 2
fi
# two first uses at once must not install into one folder together
exec 9>"$here/.setup.lock"
if command -v flock >/dev/null; then flock 9; fi
if [[ -f "$stamp" && "$stamp" -nt "$here/pyproject.toml" ]]; then
    exit 0
fi
echo "Setting up .venv (first use; a few minutes without pip's cache) ..." >&2
[[ -x "$venv/bin/python" ]] || "$python" -m venv "$venv"
log="$here/.venv/install.log"
if ! "$venv/bin/python" -m pip install --disable-pip-version-check --progress-bar off \
    -e "$here${extras:+[$extras]}" >"$log" 2>&1; then
    tail -n 15 "$log" >&2
    echo "error: pip could not install the package; the whole log is in .venv/install.log" >&2
    exit 2
fi
touch "$stamp"
