"""The environment variables of workers behind the process wall and the bubblewrap wall; those of a
container are in `docker/container.py`."""

from __future__ import annotations

import os
import site
from pathlib import Path

from eureka_agent.sandbox.readable import package_parent

MARK = "EUREKA_WORKER"
"""Variable whose value is found in every process of one worker, whatever session or parent it gave
itself."""

_PASSED_ON = (
    "PATH",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "MUJOCO_GL",
    "PYOPENGL_PLATFORM",
    "LD_LIBRARY_PATH",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "SYSTEMROOT",
    "GLIBC_TUNABLES",
)
"""Environment variables that a worker gets. A list of what is allowed: a key under a name nobody
thought of stays here too."""

_HUGE_PAGES = "glibc.malloc.hugetlb=1"
"""Asks for large pages of memory: a batch of simulations lies on tens of thousands of small ones,
more than a core keeps the addresses of. Trainings are 5 to 10 % faster (benchmarks/LOG.md). Another
C library does not know the word and takes no notice."""


def worker_environment(scratch: Path, mark: str, visible_gpu: str | None) -> dict[str, str]:
    """All variables of a worker that runs on this machine's own Python: few of the driver's, and
    none that holds a key.

    `scratch`: its home, as it sees it; `mark`: a value that no other worker has (`MARK`);
    `visible_gpu`: see `Limits`.
    """
    environment = {"GLIBC_TUNABLES": _HUGE_PAGES}
    environment |= {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    if visible_gpu is not None:
        environment["CUDA_VISIBLE_DEVICES"] = visible_gpu
    return {
        **environment,
        MARK: mark,
        "HOME": str(scratch),
        "TMPDIR": str(scratch),
        # what the driver imports the worker finds too: this package where it is not installed, a
        # person's own modules
        "PYTHONPATH": os.pathsep.join(
            filter(None, (str(package_parent()), os.environ.get("PYTHONPATH")))
        ),
        "PYTHONUSERBASE": site.getuserbase(),
        "PYTHONUNBUFFERED": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
