"""Runs inside the build of the image, with nothing but Python: installs the wheels below a folder, and compiles what workers import.

To compile all Python files of torch and sympy takes longer than the rest of the build. Importing compiles what an import needs; what is missing
then costs a worker moments. Packages that the person asked for are compiled whole.
"""

import importlib
import os
import subprocess
import sys
import sysconfig

ROOT = "/packages"
PIP = [sys.executable, "/build/pip.whl/pip", "--no-cache-dir", "--disable-pip-version-check", "install", "--root", ROOT]
OPTIONS = ["--no-index", "--no-warn-script-location", "--find-links", "/build/wheels"]
IMPORTED = ("torch", "numpy", "mujoco", "mujoco.batch", "gymnasium", "pydantic", "yaml", "safetensors.torch")


def main() -> None:
    """Install, then import. A package that is not there, or cannot be imported here, is met again where it is needed."""
    environment = dict(os.environ, PIP_ROOT_USER_ACTION="ignore", PIP_BREAK_SYSTEM_PACKAGES="1")
    subprocess.run([*PIP, *OPTIONS, "--no-deps", "--no-compile", "-r", "/build/pins.txt"], check=True, env=environment)
    sites = list(dict.fromkeys(ROOT + sysconfig.get_path(kind) for kind in ("purelib", "platlib")))
    if os.path.exists("/build/requirements.txt"):
        # installed after the pins, which are found where they were put
        environment["PYTHONPATH"] = os.pathsep.join(sites)
        subprocess.run(
            [*PIP, *OPTIONS, "-c", "/build/pins.txt", "-r", "/build/requirements.txt"], check=True, env=environment
        )
    sys.path[:0] = sites
    sys.dont_write_bytecode = False
    os.environ["MUJOCO_GL"] = "disable"
    for name in IMPORTED:
        try:
            importlib.import_module(name)
        except ImportError as error:
            print(f"{name}: {error}")


if __name__ == "__main__":
    main()
