"""The worker program: commands on standard input, events on what was standard output."""

from __future__ import annotations

import argparse
import gc
import os
import shutil
import sys
from pathlib import Path

from eureka_agent.boundary import landlock
from eureka_agent.worker import limits
from eureka_agent.worker.channel import DriverChannel


def main() -> None:
    """Reserve the protocol's descriptors, set the limits, serve until the driver closes its end."""
    parser = argparse.ArgumentParser(prog="python -m eureka_agent.worker")
    add = parser.add_argument
    add("--scratch", type=Path, required=True, help="the only folder that it may write to")
    add("--kernels", type=Path, help="compiled kernels to copy into its cache")
    add("--parent", type=int, help="process id of the driver, to die with it")
    add("--data-bytes", type=int, help="RLIMIT_DATA")
    add("--cpu-seconds", type=int, help="RLIMIT_CPU")
    add("--open-files", type=int, help="RLIMIT_NOFILE")
    add("--file-bytes", type=int, help="RLIMIT_FSIZE")
    add("--processes", type=int, help="RLIMIT_NPROC; only where it counts its own namespace alone")
    add("--writable", type=Path, nargs="+", help="the kernel lets it write in these folders alone")
    add("--cores", help="CPU cores to run on, comma-separated")
    arguments = parser.parse_args()

    if arguments.parent is not None:
        limits.die_with(arguments.parent)
    if arguments.cores is not None:
        # before torch counts the cores
        limits.pin_to_cores({int(core) for core in arguments.cores.split(",")})
    limits.limit_resources(**{name: getattr(arguments, name, None) for name in limits.LIMITED})
    kernels = arguments.scratch / "kernels"  # a folder of its own, as its content is executed
    if arguments.kernels is not None:
        shutil.copytree(arguments.kernels, kernels)
    os.environ[limits.KERNELS_VARIABLE] = str(kernels)
    if arguments.writable:
        landlock.write_only_in(arguments.writable)
    # prints go to standard error and reads find nothing, so that neither touches the protocol
    commands, events = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)

    # imported objects stay: without this every collection would scan them, a sixth of the import
    gc.disable()
    # imports torch, so only after the limits are set
    from eureka_agent.worker.serve import Worker

    gc.freeze()
    gc.enable()
    Worker(DriverChannel(commands, events, arguments.scratch), arguments.scratch).run()
    # everything is sent or written; an orderly end of torch and the simulator takes a second
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
