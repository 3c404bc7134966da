"""Runs inside the build of the image, with nothing but Python: installs the wheels of a folder, and
compiles what workers import.

To compile all Python files of torch and sympy takes longer than the rest of the build. Importing
compiles what an import needs; what is missing then costs a worker moments. Packages that the person
asked for are compiled whole.
"""

import importlib
import os
import platform
import shutil
import subprocess
import sys
import sysconfig

PIP = [
    sys.executable,
    "/build/pip.whl/pip",
    "--no-cache-dir",
    "--disable-pip-version-check",
    "install",
]
OPTIONS = ["--no-index", "--no-warn-script-location", "--find-links", "/build/wheels"]
IMPORTED = (
    "torch",
    "numpy",
    "mujoco",
    "mujoco.batch",
    "gymnasium",
    "pydantic",
    "yaml",
    "safetensors.torch",
)
NOT_NEEDED = ("torch/include", "torch/share", "torch/test")
"""Headers and tests, thousands of files. torch does not import without
`torch/bin/torch_shm_manager` and `torchgen`."""
TESTS_OF = ("numpy", "sympy", "networkx", "mpmath")
OPEN = (("/tmp", 0o1777), ("/root", 0o755), ("/home", 0o755))
"""Folders of the host are mounted under their own paths, some of them under these, and the worker
is nobody."""


def main() -> None:
    """Install, then import. The builder shows a person the lines that begin with ERROR."""
    print("FOUND: Python", platform.python_version(), "and", c_library(), flush=True)
    with open("/build/python.txt") as file:
        wanted = file.read().strip()
    if "{}.{}".format(*sys.version_info) != wanted:
        sys.exit(
            f"ERROR: its `python` is Python {platform.python_version()}, and the packages are for"
            f" Python {wanted}"
        )
    print("INSTALLS: packages", flush=True)
    environment = dict(os.environ, PIP_ROOT_USER_ACTION="ignore", PIP_BREAK_SYSTEM_PACKAGES="1")
    run([*PIP, *OPTIONS, "--no-deps", "--no-compile", "-r", "/build/pins.txt"], environment)
    for site in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
        remove_what_no_worker_opens(site)
    if os.path.exists("/build/requirements.txt"):
        print("INSTALLS: requirements", flush=True)
        listed = ["-c", "/build/pins.txt", "-r", "/build/requirements.txt"]
        run([*PIP, *OPTIONS, *listed], environment)
    print("INSTALLS: imports", flush=True)
    # in a Python that has seen the new packages, and may write what it compiles
    run([sys.executable, __file__, *IMPORTED], dict(os.environ, MUJOCO_GL="disable"))
    for path, mode in OPEN:
        if os.path.isdir(path):
            os.chmod(path, mode)


def run(command: list[str], environment: dict[str, str]) -> None:
    """End with the command's own words, where it fails."""
    if subprocess.run(command, env=environment).returncode != 0:
        sys.exit(1)


def c_library() -> str:
    """Name and version: `sin` and `exp` are its own."""
    try:
        return os.confstr("CS_GNU_LIBC_VERSION") or "no glibc"
    except (ValueError, OSError):
        return "no glibc"


def import_all(names: list[str]) -> None:
    """A package that is not there is met again where it is needed; one that is there and lacks a
    library of the system is an error now."""
    for name in names:
        try:
            importlib.import_module(name)
        except (ImportError, OSError) as error:
            missing = getattr(error, "name", None)
            if (
                isinstance(error, ModuleNotFoundError)
                and missing
                and f"{name}.".startswith(f"{missing}.")
            ):
                print(error)
                continue
            # numpy puts a page of advice around the reason
            reason: BaseException = error
            while reason.__cause__ or reason.__context__:
                reason = reason.__cause__ or reason.__context__ or reason
            sys.exit(f"ERROR: cannot import {name}: {' '.join(str(reason).split())[:300]}")


def remove_what_no_worker_opens(site: str) -> None:
    """The image becomes smaller by a tenth, and is ready the sooner."""
    found = [os.path.join(site, name) for name in NOT_NEEDED]
    for package in TESTS_OF:
        for folder, folders, _ in os.walk(os.path.join(site, package)):
            if "tests" in folders:
                folders.remove("tests")
                found.append(os.path.join(folder, "tests"))
    for folder in found:
        shutil.rmtree(folder, ignore_errors=True)
    programs = os.path.join(site, "torch", "bin")
    for name in os.listdir(programs) if os.path.isdir(programs) else ():
        if name.startswith(("test_", "protoc")):
            os.remove(os.path.join(programs, name))


if __name__ == "__main__":
    import_all(sys.argv[1:]) if sys.argv[1:] else main()
