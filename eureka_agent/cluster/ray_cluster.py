"""The connection to a Ray cluster."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from eureka_agent.cluster.ray_wall import RayWall
from eureka_agent.errors import EurekaError
from eureka_agent.invocation import install_extra
from eureka_agent.sandbox.wall import Wall
from eureka_agent.wording import plural

PREFIX = "ray"


class ClusterError(EurekaError):
    """A cluster that cannot be had."""


class Cluster:
    """A connected cluster. Its resources are those of the moment at which it was opened."""

    def __init__(self, ray: Any, address: str, sandbox: str) -> None:
        """`sandbox`: name of the wall on its nodes."""
        resources = ray.cluster_resources()
        self.cores = int(resources.get("CPU", 0))
        self.gpus = int(resources.get("GPU", 0))
        nodes = sum(node["Alive"] for node in ray.nodes())
        self.name = f"the Ray cluster at {address} ({plural(nodes, 'node')})"
        self.wall: Wall = RayWall(ray, sandbox)

    def places(self, kind: str) -> int:
        """Workers that train at a time on `"cpu"` or `"cuda"`."""
        return max(1, self.gpus if kind == "cuda" else self.cores)


@contextmanager
def connected(setting: str, sandbox: str) -> Iterator[Cluster]:
    """Connect to the cluster that `--cluster` names, until the block ends. Raises ClusterError."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # it asks on the terminal
    try:
        import ray
    except ImportError as error:
        raise ClusterError(
            f"--cluster {setting} needs Ray, which is not installed: {error}",
            f"install it: {install_extra('ray')}",
        ) from None
    address = setting.partition(":")[2] or "auto"
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        ray.init(
            address=address,
            log_to_driver=False,
            logging_level=logging.CRITICAL,
        )
    except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
        raise ClusterError(
            f"there is no Ray cluster at {address!r} that this machine belongs to:"
            f" {str(error).splitlines()[0]}",
            "start one with `ray start --head`, join it on other machines with `ray start"
            " --address=<address>`, and give --cluster ray on one of them",
        ) from None
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    try:
        yield Cluster(ray, address, sandbox)
    finally:
        ray.shutdown()
