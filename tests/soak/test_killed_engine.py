"""A Docker engine of its own that is killed under a batch, and started again."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import CommandLine, Told, wait_for

from eureka_agent.batch.queue import Queue

SCRIPT = Path(__file__).parents[2] / ".ci/engine"
NIGHT = """\
sandbox: docker
retries: 0
defaults: {iterations: 2, samples: 3, env_steps: 30000, finalists: 1, final_seeds: 1, \
evaluation_episodes: 2, scoring_episodes: 2, confirm: 1, schedule: generations, video: false}
matrix: {env: [cartpole], seed: [0, 1]}
"""
pytestmark = [
    pytest.mark.slow,
    pytest.mark.in_turns(1),
    pytest.mark.docker,
    pytest.mark.skipif(
        os.geteuid() != 0 or shutil.which("dockerd") is None,
        reason="needs an engine of its own, which only root can start",
    ),
]


class OwnEngine:
    """An engine in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.host = f"unix://{folder}/docker.sock"
        self._environment = {
            **os.environ, "EUREKA_ENGINE_FOLDER": str(folder), "DOCKER_HOST": self.host
        }  # fmt: skip

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
        subprocess.Popen(
            [*command, "--storage-driver", "overlay2"],
            stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip

    def containers(self) -> str:
        """Names of its containers."""
        listed = subprocess.run(
            ["docker", "--host", self.host, "ps", "--all", "--format", "{{.Names}}"],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        return listed.stdout


@pytest.fixture
def engine() -> Iterator[OwnEngine]:
    # not below pytest's folder: a socket's path has at most 107 characters
    own = OwnEngine(Path(f"/var/tmp/eureka-own-{os.getpid()}"))
    own.call("start")
    yield own
    own.call("stop")


def test_a_batch_waits_for_a_killed_engine_and_loses_nothing(
    tmp_path: Path, engine: OwnEngine
) -> None:
    eureka = CommandLine(tmp_path)
    (tmp_path / "unbroken.yaml").write_text(NIGHT.replace("docker", "process"))
    eureka("batch", "unbroken.yaml")
    eureka.environment["DOCKER_HOST"] = engine.host
    eureka("sandbox", "build")
    (tmp_path / "night.yaml").write_text(NIGHT)
    process = eureka.popen("batch", "night.yaml")
    told = Told(process)
    runs = tmp_path / "runs"
    for _ in range(2):
        seen = len(told.lines)
        # states that a training has saved
        wait_for(lambda: any(runs.glob("night/*/.snapshots/*")), process)
        time.sleep(1.0)
        engine.kill()
        wait_for(lambda seen=seen: told.says("everything waits for it", seen), process)
        engine.start_again()
        wait_for(lambda seen=seen: told.says("searches go on after", seen), process)
    assert told.end() == 0, told.lines
    queue = Queue(runs / "night", reading=True)
    entries = queue.entries()
    queue.close()
    assert [(each.state.value, each.tries) for each in entries] == [("finished", 0)] * 2
    for entry in entries:
        assert eureka.found(runs / "night" / entry.name) == eureka.found(
            runs / "unbroken" / entry.name
        )
    assert engine.containers() == ""
