"""`python -m eureka_agent.worker`: the worker program. Commands on standard input, events on what
was standard output."""

from __future__ import annotations

import argparse
import gc
import os
import shutil
import sys
from pathlib import Path

from eureka_agent.worker.channel import Channel
from eureka_agent.worker.kernel_files import KERNELS_FOLDER
from eureka_agent.worker.limits import die_with, limit_resources, pin


def main() -> None:
    """Take the protocol's descriptors away from generated code, set the limits, serve until the
    driver closes its end."""
    parser = argparse.ArgumentParser(prog="python -m eureka_agent.worker")
    parser.add_argument(
        "--scratch", type=Path, required=True, help="the only folder that it may write to"
    )
    parser.add_argument(
        "--kernels", type=Path, help="compiled kernels, of which its cache gets a copy"
    )
    parser.add_argument("--parent", type=int, help="process id of the driver, to die with it")
    parser.add_argument("--data-bytes", type=int, help="RLIMIT_DATA")
    parser.add_argument("--cpu-seconds", type=int, help="RLIMIT_CPU")
    parser.add_argument("--open-files", type=int, help="RLIMIT_NOFILE")
    parser.add_argument("--file-bytes", type=int, help="RLIMIT_FSIZE")
    parser.add_argument(
        "--processes",
        type=int,
        help="RLIMIT_NPROC; where it counts those of its own namespace alone",
    )
    parser.add_argument("--cores", help="CPU cores to run on, comma-separated")
    arguments = parser.parse_args()

    if arguments.parent is not None:
        die_with(arguments.parent)
    if arguments.cores is not None:
        pin(
            {int(core) for core in arguments.cores.split(",")}
        )  # before torch looks how many cores there are
    limit_resources(
        data_bytes=arguments.data_bytes,
        cpu_seconds=arguments.cpu_seconds,
        open_files=arguments.open_files,
        file_bytes=arguments.file_bytes,
        processes=arguments.processes,
    )
    if arguments.kernels is not None:
        shutil.copytree(arguments.kernels, arguments.scratch / KERNELS_FOLDER)
    os.environ["WARP_CACHE_PATH"] = str(
        arguments.scratch / KERNELS_FOLDER
    )  # a folder of its own: what lies there is executed
    # what is printed goes to standard error and what is read finds nothing: neither touches the
    # protocol
    commands, events = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)

    # what an import makes is there to stay: to look for garbage among it takes a sixth of the time,
    # and later again and again
    gc.disable()
    from eureka_agent.worker.serve import (
        Worker,
    )  # torch comes with it: only after the limits are set

    gc.freeze()
    gc.enable()
    Worker(Channel(commands, events, arguments.scratch), arguments.scratch).run()
    # all that is to be kept has been sent or written; to take torch and the simulator down in order
    # would take a second
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
