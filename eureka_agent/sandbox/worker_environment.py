"""Arguments and environment variables of workers, completed by each wall."""

from __future__ import annotations

import os
import site
from pathlib import Path

from eureka_agent.sandbox.readable import package_parent
from eureka_agent.sandbox.wall import Limits

MARK = "EUREKA_WORKER"
"""Variable in every process of one worker, in any session and with any parent."""

_PASSED_ON = (
    *("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "MUJOCO_GL", "PYOPENGL_PLATFORM"),
    *("LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "SYSTEMROOT"),
    "GLIBC_TUNABLES",
)
"""Variables passed on to a worker. An allow-list, so that a key under any name is not passed on."""

HUGE_PAGES = "glibc.malloc.hugetlb=1"
"""Value of GLIBC_TUNABLES for large pages: a batch of simulations has more small pages than a core
caches addresses of. Trainings are 5 to 10 % faster (benchmarks/LOG.md). Other C libraries ignore
it."""
SAME_PRODUCTS = "AUTO"
"""Value of MKL_CBWR with which a product of matrices is the same to the bit wherever they lie in
memory. Without it, MKL's products on AMD's cores depend on the alignment of a population's slot;
they take as long (benchmarks/LOG.md)."""
WORKER_VARIABLES = {
    "MKL_CBWR": SAME_PRODUCTS,
    "PYTHONUNBUFFERED": "1",
    # a reward's set of names has one order in every process
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}


def worker_arguments(scratch: str, limits: Limits, kernels: str) -> list[str]:
    """Arguments of Python for a worker. `scratch`, `kernels`: folders as the worker sees them."""
    return [
        *("-P", "-m", "eureka_agent.worker", "--scratch", scratch),
        *("--data-bytes", str(limits.memory_bytes), "--open-files", str(limits.open_files)),
        *("--file-bytes", str(limits.file_bytes)),
        *(("--cores", ",".join(map(str, limits.cores))) if limits.cores else ()),
        *(("--kernels", kernels) if limits.kernels is not None else ()),
    ]


def worker_environment(scratch: Path, mark: str, visible_gpu: str | None) -> dict[str, str]:
    """Environment of a worker on this machine's Python, without keys. `scratch`: its home, as the
    worker sees it; `mark`: unique value of `MARK`; `visible_gpu`: see `Limits`."""
    environment = {"GLIBC_TUNABLES": HUGE_PAGES}
    environment |= {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    if visible_gpu is not None:
        environment["CUDA_VISIBLE_DEVICES"] = visible_gpu
    paths = (str(package_parent()), os.environ.get("PYTHONPATH"))
    return {
        **environment,
        **WORKER_VARIABLES,
        MARK: mark,
        "HOME": str(scratch),
        "TMPDIR": str(scratch),
        # the worker imports whatever the driver can: this package if not installed, own modules
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "PYTHONUSERBASE": site.getuserbase(),
    }
