"""The connection to a Ray cluster."""

from __future__ import annotations

import logging
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from eureka_agent.cluster.ray_wall import RayWall
from eureka_agent.errors import EurekaError
from eureka_agent.invocation import install_extra
from eureka_agent.wording import plural

CONNECT_S = 10.0


class ClusterError(EurekaError):
    """A cluster that cannot be had."""


class Cluster:
    """A connected cluster."""

    def __init__(self, ray: Any, address: str, sandbox: str) -> None:
        """`sandbox`: name of the wall on its nodes."""
        nodes = sum(node["Alive"] for node in ray.nodes())
        self.name = f"the Ray cluster at {address} ({plural(nodes, 'node')})"
        self.wall = RayWall(ray, sandbox)
        self.gpus = self.wall.places("cuda")
        """Number of GPUs when it was opened."""

    def places(self, kind: str) -> int:
        """Workers that train at a time on `"cpu"` or `"cuda"`."""
        return max(1, self.wall.places(kind))


@contextmanager
def connected(setting: str, sandbox: str) -> Iterator[Cluster | None]:
    """Connect to the cluster that `--cluster` names until the block ends; None for `off`. Raises
    ClusterError."""
    if setting == "off":
        yield None
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # it asks on the terminal
    try:
        import ray
    except ImportError as error:
        raise ClusterError(
            f"--cluster {setting} needs Ray, which is not installed: {error}",
            f"install it: {install_extra('ray')}",
        ) from None
    address = setting.partition(":")[2] or os.environ.get("RAY_ADDRESS") or "auto"
    _check_reachable(address)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        ray.init(
            address=address,
            log_to_driver=False,
            logging_level=logging.CRITICAL,
        )
        # else the deaths of nodes, which are told in the search's own words, come with Ray's logs
        ray._private.worker._worker_logs_enabled = False
    except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
        raise _no_cluster(address, str(error).splitlines()[0]) from None
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    try:
        yield Cluster(ray, address, sandbox)
    finally:
        ray.shutdown()


def _check_reachable(address: str) -> None:
    """Raise ClusterError where nothing listens at `<host>:<port>`, for which Ray waits minutes."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        return
    try:
        socket.create_connection((host, int(port)), CONNECT_S).close()
    except (OSError, OverflowError) as error:
        raise _no_cluster(address, str(error)) from None


def _no_cluster(address: str, reason: str) -> ClusterError:
    return ClusterError(
        f"there is no Ray cluster at {address!r} that this machine belongs to: {reason}",
        "start one with `ray start --head`, join it on other machines with `ray start"
        " --address=<address>`, and give --cluster ray on one of them",
    )
