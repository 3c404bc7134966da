"""The Docker engine of this machine: its address, its suitability, and its errors in words."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import docker
import requests
from docker.errors import APIError, DockerException

# raised by the SDK where it reads an answer line by line
from urllib3.exceptions import HTTPError

from eureka_agent.errors import OTHER_WALL, WallAwayError, WallError

HOST_VARIABLE = "DOCKER_HOST"
CALL_SECONDS = 20.0
_OLDEST_API = (1, 40)
"""API of Docker 19.03: non-recursive bind mounts."""
_SYSTEM_SOCKET = "/var/run/docker.sock"
_START_HINT = (
    "start Docker (sudo systemctl start docker; without root: systemctl --user start docker)"
)

T = TypeVar("T")


class Engine:
    """A connection to the engine, whose blocking calls `run` makes in threads of its own."""

    def __init__(self, client: docker.DockerClient, host: str, info: Mapping[str, Any]) -> None:
        """See `connect`. `info`: the engine's description of itself."""
        self.client = client
        self.host = host
        """Address in the form of DOCKER_HOST."""
        self.info = info
        self._threads = ThreadPoolExecutor(8, thread_name_prefix="docker")

    @property
    def cores(self) -> int | None:
        """Cores for containers; None where it cannot limit processor time (often without root)."""
        if any(self.info.get(key) is False for key in ("CpuCfsQuota", "CpuCfsPeriod")):
            return None
        return int(self.info.get("NCPU") or 1)

    async def run(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call a function in a thread. Raises WallError for the engine's errors, and its own."""

        def call() -> T:
            with engine_errors(self.host):
                return function(*arguments)

        return await asyncio.get_running_loop().run_in_executor(self._threads, call)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        self.client.close()


def connect(variables: Mapping[str, str] | None = None, timeout_s: float = CALL_SECONDS) -> Engine:
    """Connect to the engine in DOCKER_HOST or at the usual place. Raises WallError."""
    variables = os.environ if variables is None else variables
    host = _host(variables)
    path = host.removeprefix("unix://")
    _knock(path, timeout_s)
    with engine_errors(host):
        client = docker.DockerClient(base_url=host, version="auto", timeout=timeout_s)
        try:
            version = str(client.api._version)
            if tuple(int(part) for part in version.split(".")[:2]) < _OLDEST_API:
                raise WallError(
                    f"the Docker engine at {host!r} speaks API {version}, expected 1.40 or newer",
                    "update Docker to 19.03 or newer" + OTHER_WALL,
                )
            info = client.info()
            _check(info, host)
        except BaseException:
            client.close()
            raise
    return Engine(client, host, info)


@contextmanager
def engine_errors(host: str) -> Iterator[None]:
    """Turn the SDK's errors into WallError, with a next step; WallAwayError for no answer."""
    gone = f"the Docker engine at {host!r} gives no answer"
    try:
        yield
    except APIError as error:
        words = " ".join(str(error.explanation or error).split())
        raise WallError(f"the Docker engine refused: {words}", _refusal_hint(words)) from None
    except (requests.exceptions.Timeout, TimeoutError):
        raise WallAwayError(gone, "restart it" + OTHER_WALL) from None
    except (requests.exceptions.RequestException, HTTPError, DockerException, OSError) as error:
        # a timeout within an answer has the type of a broken connection
        if "timed out" in str(error).lower():
            raise WallAwayError(gone, "restart it" + OTHER_WALL) from None
        words = " ".join(str(error).split())[:300]
        away = f"the Docker engine at {host!r} went away: {words}"
        raise WallAwayError(away, _START_HINT + OTHER_WALL) from None


def _host(variables: Mapping[str, str]) -> str:
    given = variables.get(HOST_VARIABLE, "")
    if given:
        if not given.startswith("unix:///"):
            elsewhere = given.startswith(("tcp://", "ssh://", "http://", "https://"))
            reason = "the worker needs this machine's files, so its engine must be on this machine"
            raise WallError(
                f"{HOST_VARIABLE} is {given!r}:"
                f" {reason if elsewhere else 'that is no address of a socket'}",
                "expected unix:///path/to/docker.sock; unset it to use the usual one",
            )
        return given
    places = [_SYSTEM_SOCKET]
    if variables.get("XDG_RUNTIME_DIR"):  # the user's own engine, without root
        places.append(os.path.join(variables["XDG_RUNTIME_DIR"], "docker.sock"))
    sockets = [place for place in places if _is_socket(place)]
    # beside a forbidden engine there may be the user's own
    usable = [place for place in sockets if os.access(place, os.W_OK)]
    return "unix://" + (usable or sockets or [_SYSTEM_SOCKET])[0]


def _is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(Path(path).stat().st_mode)
    except OSError:
        return False


def _knock(path: str, timeout_s: float) -> None:
    """Raise WallError with the reason where a socket cannot be used, which the SDK hides."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as knocker:
        knocker.settimeout(timeout_s)
        try:
            knocker.connect(path)
            return
        except FileNotFoundError:
            what = f"no Docker engine runs here: there is no socket {path!r}"
            hint = f"install or start Docker, or name its socket in {HOST_VARIABLE}=unix:///path"
        except PermissionError:
            what = f"you may not use the Docker engine at {path!r}"
            hint = "add yourself to its group (sudo usermod -aG docker $USER, then log in again)"
        except OSError as error:
            what = f"no Docker engine answers at {path!r}: {error.strerror or error}"
            hint = _START_HINT
    raise WallError(what, hint + OTHER_WALL)


def _check(info: Mapping[str, Any], host: str) -> None:
    """Raise WallError for an engine whose containers cannot be a wall."""
    own = os.uname().release
    if (kernel := info.get("KernelVersion", own)) != own:
        raise WallError(
            f"the Docker engine at {host!r} runs in a machine of its own (kernel {kernel!r}, here"
            f" {own!r}), and a worker needs this machine's files",
            "use an engine on this machine itself, not Docker Desktop" + OTHER_WALL,
        )
    limits = (("memory", "MemoryLimit"), ("processes", "PidsLimit"))
    missing = [what for what, key in limits if info.get(key) is False]
    if missing:
        raise WallError(
            f"the Docker engine at {host!r} cannot limit {' and '.join(missing)}",
            "give it control groups (rootless Docker: cgroup v2 with delegation)" + OTHER_WALL,
        )


def _refusal_hint(words: str) -> str:
    lowered = words.lower()
    if "no space left" in lowered:
        return "free disk space where Docker keeps its data (docker system prune)" + OTHER_WALL
    if "bind source path does not exist" in lowered:
        return (
            "the engine must see this machine's files under the same paths (it may run in another"
            " container)"
        )
    return "see the engine's log (journalctl -u docker)" + OTHER_WALL
