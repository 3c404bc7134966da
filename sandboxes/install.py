"""Runs inside the build of the image, with nothing but Python: installs the wheels of a folder, and compiles what workers import.

To compile all Python files of torch and sympy takes longer than the rest of the build. Importing compiles what an import needs; what is missing
then costs a worker moments. Packages that the person asked for are compiled whole.
"""

import os
import shutil
import subprocess
import sys
import sysconfig

PIP = [sys.executable, "/build/pip.whl/pip", "--no-cache-dir", "--disable-pip-version-check", "install"]
OPTIONS = ["--no-index", "--no-warn-script-location", "--find-links", "/build/wheels"]
IMPORTED = ("torch", "numpy", "mujoco", "mujoco.batch", "gymnasium", "pydantic", "yaml", "safetensors.torch")
NOT_NEEDED = ("torch/include", "torch/share", "torch/test")
"""Headers and tests, thousands of files. torch does not import without `torch/bin/torch_shm_manager` and `torchgen`."""
TESTS_OF = ("numpy", "sympy", "networkx", "mpmath")
OPEN = (("/tmp", 0o1777), ("/root", 0o755), ("/home", 0o755))
"""Folders of the host are mounted under their own paths, some of them under these, and the worker is nobody."""


def main() -> None:
    """Install, then import. A package that is not there, or cannot be imported here, is met again where it is needed."""
    environment = dict(os.environ, PIP_ROOT_USER_ACTION="ignore", PIP_BREAK_SYSTEM_PACKAGES="1")
    subprocess.run([*PIP, *OPTIONS, "--no-deps", "--no-compile", "-r", "/build/pins.txt"], check=True, env=environment)
    for site in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
        remove_what_no_worker_opens(site)
    if os.path.exists("/build/requirements.txt"):
        listed = ["-c", "/build/pins.txt", "-r", "/build/requirements.txt"]
        subprocess.run([*PIP, *OPTIONS, *listed], check=True, env=environment)
    imports = f"import importlib\nfor name in {IMPORTED!r}:\n    try: importlib.import_module(name)\n    except ImportError as error: print(error)"
    # in a Python that has seen the new packages, and may write what it compiles
    subprocess.run([sys.executable, "-c", imports], check=True, env=dict(os.environ, MUJOCO_GL="disable"))
    for path, mode in OPEN:
        if os.path.isdir(path):
            os.chmod(path, mode)


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
    main()
