"""The connection to a Ray cluster."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from eureka_agent import __version__
from eureka_agent.errors import EurekaError, NoRoomError, WallError, WorkerDiedError
from eureka_agent.fleet.ray_host import Host, Started, pack
from eureka_agent.invocation import install_extra
from eureka_agent.sandbox.wall import LOST, Limits, WorkerHandle
from eureka_agent.wording import plural

START_S = 300.0
CHECK_S = 2.0
KILL_S = 30.0
MOST_FOLDER_BYTES = 64 << 20


class RayHandle:
    """A worker on a node. See `WorkerHandle`."""

    def __init__(
        self, actor: Any, started: Started, is_lost: Callable[[BaseException], bool]
    ) -> None:
        """`is_lost`: true for an error that says that the actor is gone."""
        self.actor = actor
        self.node = started.node
        self.places: Mapping[Path, Path] = {
            Path(name): Path(place) for name, place in started.places.items()
        }
        self._is_lost = is_lost
        self.returncode: int | None = None
        self._words = ""
        self.killed = False
        self.killing = asyncio.Lock()
        self._ended = asyncio.create_task(self._watch())

    async def write(self, data: bytes) -> None:
        """Raises ConnectionError for a worker that is gone."""
        if not await self._unless_lost(self.actor.write.remote(data), False):
            raise ConnectionError(f"the worker on {self.node!r} reads nothing any more")

    async def read(self, most: int) -> bytes:
        """Empty at the end, and where the node was lost."""
        return await self._unless_lost(self.actor.read.remote(most), b"")

    async def wait(self) -> int:
        await asyncio.shield(self._ended)
        assert self.returncode is not None
        return self.returncode

    def last_words(self) -> str:
        return self._words

    async def kill(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(KILL_S):
                await self._unless_lost(self.actor.kill.remote(), None)
                await asyncio.shield(self._ended)
        if self.returncode is None:
            self._lose()
        self._ended.cancel()

    async def _watch(self) -> None:
        ended = await self._unless_lost(self.actor.wait.remote(), None)
        if ended is None:
            self._lose()
        else:
            self.returncode, self._words = ended.returncode, ended.last_words

    def _lose(self) -> None:
        self.returncode = LOST
        self._words = f"the node {self.node!r} does not answer any more"

    async def _unless_lost(self, reply: Awaitable[Any], otherwise: Any) -> Any:
        try:
            return await reply
        except Exception as error:
            if not self._is_lost(error):
                raise
            return otherwise


class RayWall:
    """Starts workers in actors. See `Wall`."""

    covers: tuple[str, ...] = ("what the wall of each node covers",)
    does_not_cover: tuple[str, ...] = ("what the wall of a node does not cover",)

    def __init__(self, ray: Any, inner: str) -> None:
        """`ray`: the module, connected to a cluster; `inner`: name of the wall on the nodes."""
        self._ray = ray
        self._inner = inner
        self.name = f"{inner} on the nodes of a Ray cluster"
        self._running = 0

    def places(self, kind: str) -> int:
        """Cores (`"cpu"`) or GPUs (`"cuda"`) that the cluster has now."""
        return int(self._ray.cluster_resources().get("GPU" if kind == "cuda" else "CPU", 0))

    async def start(self, folder: Path, limits: Limits) -> WorkerHandle:
        """Start a worker where Ray finds a free core or GPU. Raises WallError, or WorkerDiedError
        for a node that is lost meanwhile."""
        packed = {
            str(path): await asyncio.to_thread(pack, path, MOST_FOLDER_BYTES)
            for path in limits.readable
        }
        kind = "cpu" if limits.visible_gpu is None else "cuda"
        places = self.places(kind)
        if self._running >= places:  # a node was lost; Ray would wait for another one
            raise NoRoomError(
                f"the cluster has room for no more than {plural(places, 'worker')} now"
            )
        needs = {"num_cpus": 1, "num_gpus": int(kind == "cuda"), "max_restarts": 0}
        actor = self._ray.remote(Host).options(scheduling_strategy="SPREAD", **needs).remote()
        self._running += 1
        try:
            starting = asyncio.ensure_future(
                actor.start.remote(__version__, self._inner, limits, packed)
            )
            started = await self._once_there_is_room(starting, kind)
        except BaseException as error:
            self._end(actor)
            if self._is_lost(error):
                raise WorkerDiedError("a node was lost while a worker started there") from None
            raise
        if started.error:
            self._end(actor)
            raise WallError(started.error, started.hint)
        return RayHandle(actor, started, self._is_lost)

    async def _once_there_is_room(self, starting: asyncio.Future[Started], kind: str) -> Started:
        """Wait for a start. Raises NoRoomError once Ray would wait for a lost node."""
        # one that is given up ends with an error that nobody waits for
        starting.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        deadline = time.monotonic() + START_S
        while not (await asyncio.wait({starting}, timeout=CHECK_S))[0]:
            if self._running > self.places(kind):
                raise NoRoomError("the cluster has lost a node")
            if time.monotonic() > deadline:
                what = "a GPU" if kind == "cuda" else "a core"
                raise WallError(
                    f"no node of the cluster had {what} free within {START_S:g} s",
                    "look at `ray status`, or use fewer --workers",
                )
        return starting.result()

    async def kill(self, handle: WorkerHandle) -> None:
        assert isinstance(handle, RayHandle)
        async with handle.killing:
            if not handle.killed:
                handle.killed = True
                try:
                    await handle.kill()
                finally:
                    self._end(handle.actor)

    def _end(self, actor: Any) -> None:
        self._running -= 1
        with suppress(Exception):  # it is gone already, in one of many ways
            self._ray.kill(actor)

    def _is_lost(self, error: BaseException) -> bool:
        errors = self._ray.exceptions
        return isinstance(
            error, errors.RayActorError | errors.NodeDiedError | errors.ObjectLostError
        )


CONNECT_S = 10.0


class ClusterError(EurekaError):
    """A cluster that cannot be had."""


class Cluster:
    def __init__(self, ray: Any, address: str, sandbox: str) -> None:
        """`sandbox`: name of the wall on its nodes."""
        nodes = sum(node["Alive"] for node in ray.nodes())
        self.name = f"the Ray cluster at {address} ({plural(nodes, 'node')})"
        self.wall = RayWall(ray, sandbox)
        self.gpus = self.wall.places("cuda")

    def places(self, kind: str) -> int:
        """Workers that train at a time on `"cpu"` or `"cuda"`."""
        return max(1, self.wall.places(kind))


@contextmanager
def connected(setting: str, sandbox: str) -> Iterator[Cluster | None]:
    """Connect to the `--cluster` until the block ends; None for `off`. Raises ClusterError."""
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
        ray.init(address=address, log_to_driver=False, logging_level=logging.CRITICAL)
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
