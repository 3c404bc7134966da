"""A Docker engine of the tests' own, which they may kill."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / ".ci/engine"


def has_engine() -> bool:
    """True where an engine can be started: it is installed, and this is root."""
    return os.geteuid() == 0 and shutil.which("dockerd") is not None


class OwnEngine:
    """An engine in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.host = f"unix://{folder}/docker.sock"
        places = {"EUREKA_ENGINE_FOLDER": str(folder), "DOCKER_HOST": self.host}
        self._environment = {**os.environ, **places}

    def call(self, action: str) -> None:
        subprocess.run([SCRIPT, action], env=self._environment, check=True, timeout=120.0)

    def kill(self) -> None:
        """Kill the engine, and what its containers' processes hang on."""
        os.kill(int((self.folder / "pid").read_text()), signal.SIGKILL)

    def start_again(self) -> None:
        """Start it on the data that it has kept."""
        (self.folder / "pid").unlink(missing_ok=True)
        # containerd died with it; where nobody reaps its process, its number still looks alive
        (self.folder / "exec/containerd/containerd.pid").unlink(missing_ok=True)
        log = (self.folder / "log").open("ab")
        options = ["--bridge=none", "--iptables=false", "--ip6tables=false", "--ip-forward=false"]
        places = {"pidfile": "pid", "data-root": "data", "exec-root": "exec"}
        command = ["dockerd", "--log-level", "warn", "--host", self.host, *options]
        command += [f"--{name}={self.folder / place}" for name, place in places.items()]
        command += ["--storage-driver", "overlay2"]
        nothing = subprocess.DEVNULL
        subprocess.Popen(command, stdout=log, stderr=log, stdin=nothing, start_new_session=True)

    def containers(self) -> list[str]:
        """Names of its containers."""
        command = ["docker", "--host", self.host, "ps", "--all", "--format", "{{.Names}}"]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()

    def kill_container(self, name: str) -> None:
        """Kill a container's processes; one that has ended meanwhile stays as it is."""
        subprocess.run(["docker", "--host", self.host, "kill", name], capture_output=True)


@contextmanager
def own_engine() -> Iterator[OwnEngine]:
    """An engine, until the block ends."""
    # not below pytest's folder: a socket's path has at most 107 characters
    engine = OwnEngine(Path(f"/var/tmp/eureka-own-{os.getpid()}"))
    engine.call("start")
    try:
        yield engine
    finally:
        engine.call("stop")
