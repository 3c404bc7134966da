#!/usr/bin/env bash
# Makes .venv and installs the package into it; does nothing when that is done and pyproject.toml has not changed since.
#   setup.sh          what `eureka` needs
#   setup.sh dev      what the tests and checks need as well
#   setup.sh export   what `eureka export` needs for ONNX as well
#   setup.sh gpu      what MuJoCo environments need on a GPU as well
#   setup.sh gymnasium  what the MuJoCo environments of Gymnasium itself need as well
#   setup.sh mcp      what `eureka mcp` needs as well
#   setup.sh metaworld  what the MetaWorld environments need as well: models of robot and objects, 37 MB
#   setup.sh mlflow   what --log mlflow needs as well
#   setup.sh notify   what notifications of batches need as well
#   setup.sh trainers what adapters and benchmarks need as well: other PPO libraries
#   setup.sh ray      what trainings on other machines need as well
#   setup.sh trackio  what --log trackio needs as well
#   setup.sh wandb    what --log wandb needs as well
# EUREKA_PYTHON names the Python to use.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
extras=${1:-}
venv="$here/.venv"
stamp="$venv/.installed${extras:+-$extras}"

fail() {
    echo "error: $1" >&2
    echo " hint: $2" >&2
    exit 2
}

tell() {
    echo "$1" >&2
}

# the large downloads and the installation, of all that pip says
tell_steps() {
    local line names
    while IFS= read -r line; do
        if [[ $line =~ ^\ *Downloading\ ([^ ]+)\ \(([0-9]+)(\.[0-9]+)?\ (MB|GB)\) ]]; then
            if [[ ${BASH_REMATCH[4]} == GB ]] || ((BASH_REMATCH[2] >= 10)); then
                names=${BASH_REMATCH[1]##*/}
                tell "  downloading ${names%%-*} (${BASH_REMATCH[2]}${BASH_REMATCH[3]} ${BASH_REMATCH[4]})"
            fi
        elif [[ $line == "Installing collected packages: "* ]]; then
            names=${line//[^,]/}
            tell "  installing, packages: $((${#names} + 1))"
        fi
    done
}

# a stamp holds the checkout's path: the scripts in .venv name it, so they break when the checkout moves
is_installed() {
    [[ -f "$stamp" && "$stamp" -nt "$here/pyproject.toml" && $(<"$stamp") == "$here" ]]
}

was_moved() {
    local found
    for found in "$venv"/.installed*; do
        if [[ -f "$found" && $(<"$found") != "$here" ]]; then return 0; fi
    done
    return 1
}

is_new_enough() {
    [[ $("$1" -c 'import sys; print(sys.version_info >= (3, 11))' 2>/dev/null) == True ]]
}

find_python() {
    local candidate
    if [[ -n "${EUREKA_PYTHON:-}" ]]; then
        is_new_enough "$EUREKA_PYTHON" || fail "EUREKA_PYTHON is '$EUREKA_PYTHON', which is no Python 3.11 or newer" \
            "name one that is, or unset it to let one be found"
        python=$EUREKA_PYTHON
        return
    fi
    for candidate in python3 python3.13 python3.12 python3.11; do
        if is_new_enough "$candidate"; then
            python=$candidate
            return
        fi
    done
    fail "no Python 3.11 or newer was found" "install one, or name it: EUREKA_PYTHON=/path/to/python3.12 ./eureka"
}

make_venv() {
    find_python
    "$python" -c 'import ensurepip, venv' 2>/dev/null || fail "$python cannot make a virtual environment: it has no ensurepip" \
        "install it (Debian, Ubuntu: apt install python3-venv), or name another Python: EUREKA_PYTHON=/path/to/python3.12 ./eureka"
    "$python" -m venv --clear "$venv" >&2 || fail "$python could not make the virtual environment $venv" "see the lines above"
}

if is_installed; then exit 0; fi
if [[ -L "$venv" ]]; then
    fail ".venv is a link to $(readlink "$venv"), whose packages would be replaced by those of this checkout" \
        "remove the link, and .venv is made here: rm '$venv'"
fi
if ! touch "$here/.setup.lock" 2>/dev/null; then
    fail "nothing can be written in $here, and .venv is not set up there" \
        "copy the checkout to a folder of yours, or install it into an environment of your own: pip install $here"
fi
# two first uses at once must not install into one folder together
exec 9>"$here/.setup.lock"
if command -v flock >/dev/null; then flock 9; fi
if is_installed; then exit 0; fi

# made anew when there is none, when making it was interrupted before pip was in it, and when the checkout has moved
if was_moved || ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    tell "Setting up .venv, once: about 100 packages, which take 1.6 GB on the disk, or several times that where pip"
    tell "chooses torch for GPUs. That takes a few minutes where pip has not downloaded them before."
    tell "  making the virtual environment"
    make_venv
elif [[ -n "$extras" ]]; then
    tell "Adding to .venv what '$extras' needs"
else
    tell "Bringing .venv up to date with pyproject.toml"
fi
log="$venv/install.log"
# the wheel's models alone are used: its Python code wants another MuJoCo, so pip must not look at what it requires
install_metaworld() {
    "$venv/bin/python" -m pip install --disable-pip-version-check --progress-bar off --no-deps metaworld==3.1.1 >>"$log" 2>&1 ||
        fail "pip could not install metaworld==3.1.1" "the whole log is in .venv/install.log; the next start tries again"
}
if [[ $extras == metaworld ]]; then
    : >"$log"
    install_metaworld
    printf '%s\n' "$here" >"$stamp"
    exit 0
fi
tell "  finding out which packages are needed"
if ! PYTHONUNBUFFERED=1 "$venv/bin/python" -m pip install --disable-pip-version-check --progress-bar off \
    -e "$here${extras:+[$extras]}" 2>&1 | tee "$log" | tell_steps; then
    tail -n 15 "$log" >&2
    fail "pip could not install the package" "the whole log is in .venv/install.log; the next start tries again"
fi
if [[ $extras == dev ]]; then install_metaworld; fi
printf '%s\n' "$here" >"$stamp"
