"""setup.sh in a small checkout of its own, with a stand-in for Python that makes no real
environment and asks no index."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SYSTEM_PATH = "/usr/bin:/bin"

# `-m venv --clear DIR` copies itself to DIR/bin/python; pip is there once DIR/has-pip is
STAND_IN = """#!/bin/bash
echo "$*" >>"{log}"
venv=$(dirname "$(dirname "$0")")
case "$1 $2" in
    "-c import ensurepip"*) exit {ensurepip} ;;
    "-c "*) echo {new_enough} ;;
    "-m venv") rm -rf "$4"; mkdir -p "$4/bin"; cp "$0" "$4/bin/python"; touch "$4/has-pip" ;;
    "-m pip") [[ $3 != install ]] || cat "{said}" 2>/dev/null; [[ -e "$venv/has-pip" ]] ;;
esac
"""


class Checkout:
    """A copy of the set-up files, and the calls that the stand-in for Python got."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "my checkout"
        self.folder.mkdir()
        for name in ("setup.sh", "pyproject.toml"):
            shutil.copy(ROOT / name, self.folder / name)
        os.utime(self.folder / "pyproject.toml", (0, 0))
        self.log = folder / "calls.log"
        self.said = folder / "said by pip"
        self.programs = folder / "my programs"

    def python(self, name: str = "python3", *, new_enough: bool = True, ensurepip: int = 0) -> Path:
        """Put a stand-in into the search path; `ensurepip` is the exit status of importing it."""
        self.programs.mkdir(exist_ok=True)
        path = self.programs / name
        path.write_text(
            STAND_IN.format(
                log=self.log, said=self.said, new_enough=new_enough, ensurepip=ensurepip
            )
        )
        path.chmod(0o755)
        return path

    def __call__(
        self, *arguments: str, python: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        self.log.write_text("")
        variables = {"PATH": f"{self.programs}:{SYSTEM_PATH}"} | (
            {} if python is None else {"EUREKA_PYTHON": python}
        )
        command = [str(self.folder / "setup.sh"), *arguments]
        return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=30)

    def calls(self, beginning: str) -> list[str]:
        return [line for line in self.log.read_text().splitlines() if line.startswith(beginning)]


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


def test_the_first_start_installs_and_the_second_does_nothing(checkout: Checkout) -> None:
    checkout.python()
    first = checkout()
    assert first.returncode == 0, first.stderr
    assert len(checkout.calls("-m venv")) == 1
    assert checkout.calls("-m pip install")[0].endswith(f"-e {checkout.folder}")
    assert checkout().returncode == 0
    assert checkout.log.read_text() == ""


PIP = """Collecting torch>=2.9
  Downloading torch-2.9.0-cp311-cp311-manylinux_2_28_x86_64.whl.metadata (30 kB)
  Downloading https://an.index/torch-2.9.0-cp311-cp311-manylinux_2_28_x86_64.whl (184.5 MB)
  Downloading numpy-2.3.4-cp311-cp311-manylinux_2_28_x86_64.whl (9.8 MB)
Downloading nvidia_cudnn-9-py3-none-manylinux_2_28_x86_64.whl (1.2 GB)
Installing collected packages: numpy, nvidia-cudnn, torch
"""


def test_the_first_start_says_what_it_does_step_by_step(checkout: Checkout) -> None:
    checkout.python()
    checkout.said.write_text(PIP)
    head, *steps = checkout().stderr.splitlines()
    assert head.startswith("Setting up .venv, once: about 100 packages")
    assert steps[1:] == [
        "  making the virtual environment",
        "  finding out which packages are needed",
        "  downloading torch (184.5 MB)",
        "  downloading nvidia_cudnn (1.2 GB)",
        "  installing, packages: 3",
    ]
    assert (checkout.folder / ".venv" / "install.log").read_text() == PIP


def test_a_pip_that_fails_is_an_error_with_the_end_of_what_it_said(checkout: Checkout) -> None:
    stand_in = checkout.python()
    stand_in.write_text(stand_in.read_text().replace('[[ -e "$venv/has-pip" ]] ;;', "exit 1 ;;"))
    checkout.said.write_text(PIP)
    result = checkout()
    assert result.returncode == 2
    assert (
        "Installing collected packages: numpy, nvidia-cudnn, torch\nerror: pip could not install"
        in result.stderr
    )


def test_what_is_added_later_is_no_first_use(checkout: Checkout) -> None:
    checkout.python()
    checkout()
    assert checkout("export").stderr.startswith("Adding to .venv what 'export' needs\n")
    os.utime(checkout.folder / "pyproject.toml")  # a newer version of the checkout
    os.utime(checkout.folder / ".venv" / ".installed", (0, 0))
    assert checkout().stderr.startswith("Bringing .venv up to date with pyproject.toml\n")


def test_extras_are_installed_into_the_same_environment(checkout: Checkout) -> None:
    checkout.python()
    checkout()
    checkout("dev")
    assert checkout.calls("-m venv") == []
    assert checkout.calls("-m pip install")[0].endswith("[dev]")


def test_a_set_up_that_was_interrupted_before_pip_is_made_anew(checkout: Checkout) -> None:
    stand_in = checkout.python()
    (checkout.folder / ".venv" / "bin").mkdir(parents=True)
    shutil.copy(stand_in, checkout.folder / ".venv" / "bin" / "python")
    result = checkout()
    assert result.returncode == 0, result.stderr
    assert checkout.calls("-m venv") == [f"-m venv --clear {checkout.folder / '.venv'}"]


def test_a_moved_checkout_is_set_up_anew(checkout: Checkout) -> None:
    checkout.python()
    checkout()
    checkout.folder = checkout.folder.rename(checkout.folder.with_name("elsewhere"))
    assert checkout().returncode == 0
    assert len(checkout.calls("-m venv --clear")) == 1
    assert checkout.calls("-m pip install")[0].endswith("/elsewhere")
    assert checkout().returncode == 0
    assert checkout.log.read_text() == ""


def test_the_environment_of_another_checkout_is_left_alone(checkout: Checkout) -> None:
    checkout.python()
    other = checkout.folder.parent / "other"
    (other / "bin").mkdir(parents=True)
    (other / ".installed").write_text("/another/checkout\n")
    (checkout.folder / ".venv").symlink_to(other)
    done = checkout()
    assert done.returncode == 2
    assert f".venv is a link to {other}" in done.stderr
    assert "rm '" in done.stderr
    assert (other / ".installed").read_text() == "/another/checkout\n"
    assert not checkout.calls("-m venv")


def test_a_python_without_ensurepip_is_a_clear_error(checkout: Checkout) -> None:
    checkout.python(ensurepip=1)
    result = checkout()
    assert result.returncode == 2
    assert "has no ensurepip" in result.stderr
    assert "apt install python3-venv" in result.stderr
    assert not (checkout.folder / ".venv").exists()


def test_the_named_python_is_used_alone_even_with_spaces_in_its_path(checkout: Checkout) -> None:
    checkout.python(new_enough=False)
    named = checkout.python("my python")
    assert checkout(python=str(named)).returncode == 0
    assert len(checkout.calls("-m venv")) == 1


@pytest.mark.parametrize("name", ["old", "none", "true"])
def test_a_named_python_that_will_not_do_is_an_error_though_another_would(
    checkout: Checkout, name: str
) -> None:
    checkout.python()
    checkout.python("old", new_enough=False)
    named = Path("/bin/true") if name == "true" else checkout.programs / name
    result = checkout(python=str(named))
    assert result.returncode == 2
    assert f"EUREKA_PYTHON is '{named}', which is no Python 3.11 or newer" in result.stderr
    assert checkout.calls("-m venv") == []


@pytest.fixture
def unwritable() -> Iterator[Checkout]:
    """A checkout that another person, who may not write there, can reach."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        checkout = Checkout(Path(folder))
        checkout.folder.chmod(0o555)
        yield checkout
        checkout.folder.chmod(0o755)


def test_a_checkout_that_cannot_be_written_is_an_error_of_our_own(unwritable: Checkout) -> None:
    other = 65534 if os.geteuid() == 0 else None  # nothing is read-only to root
    command = [str(unwritable.folder / "setup.sh")]
    result = subprocess.run(
        command, user=other, env={"PATH": SYSTEM_PATH}, capture_output=True, text=True, timeout=30
    )
    assert result.returncode == 2
    assert f"nothing can be written in {unwritable.folder}" in result.stderr
    assert "Permission denied" not in result.stderr


def test_every_extra_that_is_asked_for_exists() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        extras = set(tomllib.load(file)["project"]["optional-dependencies"])
    asked = set(re.findall(r"setup\.sh ([a-z]+)", (ROOT / "Makefile").read_text(encoding="utf-8")))
    described = set(
        re.findall(
            r"^#   setup\.sh ([a-z]+)",
            (ROOT / "setup.sh").read_text(encoding="utf-8"),
            re.MULTILINE,
        )
    )
    # metaworld is installed without its dependencies, which no extra can say
    assert asked <= described == {*extras, "metaworld"}
    assert {"dev", "trainers"} <= asked
