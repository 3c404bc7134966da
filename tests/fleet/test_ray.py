"""Trainings on a Ray cluster of two nodes on this machine, one of which is killed."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from command_line import CommandLine, wait_for
from pydantic import BaseModel

from eureka_agent import __version__
from eureka_agent.archive.snapshots import FOLDER
from eureka_agent.batch.file import BatchSettings
from eureka_agent.errors import SettingsError, WallError
from eureka_agent.fleet.ray_host import Host, pack, unpack
from eureka_agent.sandbox.wall import Limits
from eureka_agent.settings import THE_FLAGS, SearchSettings, parse_settings

SEARCH = (
    *("search", "--env", "cartpole", "--iterations", "1", "--samples", "4", "--confirm", "1"),
    *("--env-steps", "80000", "--snapshot-interval", "0.5", "--schedule", "generations"),
    *("--no-baselines", "--finalists", "1", "--final-seeds", "1", "--evaluation-episodes", "4"),
    *("--scoring-episodes", "4", "--no-video", "--sandbox", "process", "--slots", "2"),
)
NEEDED: dict[type[BaseModel], dict[str, str]] = {
    SearchSettings: {"env": "cartpole"},
    BatchSettings: {},
}


@dataclass
class Nodes:
    """Two nodes with a core each; the driver's own has none."""

    cluster: Any
    both: list[Any]

    @property
    def address(self) -> str:
        return f"ray:{self.cluster.address}"


@pytest.fixture
def nodes(monkeypatch: pytest.MonkeyPatch) -> Iterator[Nodes]:
    pytest.importorskip("ray", reason="needs the extra `ray`")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    from ray.cluster_utils import Cluster

    cluster = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False}
    )
    try:
        yield Nodes(cluster, [cluster.add_node(num_cpus=1) for _ in range(2)])
    finally:
        cluster.shutdown()


@pytest.mark.slow
def test_a_lost_nodes_trainings_go_on_elsewhere_from_their_saved_states(
    tmp_path: Path, nodes: Nodes
) -> None:
    here, there = (CommandLine(tmp_path / name) for name in ("here", "there"))
    for eureka in (here, there):
        eureka.folder.mkdir()
    process = there.popen(*SEARCH, "--cluster", nodes.address)

    def saved() -> bool:
        return len(list((there.folder / "runs").glob(f"*/{FOLDER}/*.safetensors"))) == 4

    wait_for(saved, process)
    nodes.cluster.remove_node(nodes.both[0], allow_graceful=False)
    output, errors = process.communicate(timeout=600)
    assert process.returncode == 0, errors
    assert "Traceback" not in errors
    assert "raylet" not in f"{output}{errors}"  # Ray's own lines
    assert "2 workers for its 2 cores" in output
    lost = [line for line in output.splitlines() if "a worker was lost" in line]
    assert len(lost) == 2  # both trainings of the node's worker
    assert output.count("goes on at") == 2
    # the same as without a cluster, to the bit, and every attempt once
    here(*SEARCH)
    assert there.found(there.run_folder()) == here.found(here.run_folder())


@pytest.mark.slow
def test_an_address_without_a_cluster_is_one_line(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="needs the extra `ray`")
    eureka = CommandLine(tmp_path)
    said = eureka(*SEARCH, "--cluster", "ray:127.0.0.1:9", status=2)
    assert "there is no Ray cluster at '127.0.0.1:9'" in said
    assert "ray start --head" in said
    assert not list((tmp_path / "runs").glob("2*"))


async def test_a_nodes_worker_reads_folders_that_came_through_the_driver(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    (mine / "tasks").mkdir(parents=True)
    (mine / "env.py").write_text("X = 1\n")
    (mine / "tasks" / "a.py").write_text("Y = 2\n")
    (mine / "__pycache__").mkdir()
    (shared := tmp_path / "_shared").mkdir()
    host = Host()
    folders = {str(each): pack(each, 1 << 20) for each in (mine, shared)}
    started = await host.start(__version__, "process", Limits(), folders)
    try:
        assert started.error == ""
        place = Path(started.places[str(mine)])
        assert place != mine
        assert Path(started.places[str(shared)]) == place.parent / "_shared", "side by side"
        files = {str(path.relative_to(place)) for path in place.rglob("*") if path.is_file()}
        assert files == {"env.py", "tasks/a.py"}
        assert await host.write(b"this is no command\n")
        async with asyncio.timeout(60):
            assert b"fault" in await host.read(1 << 16)
    finally:
        await host.kill()
    assert not place.exists()
    assert not await host.write(b"more\n")


async def test_another_version_on_a_node_is_refused() -> None:
    started = await Host().start("0.0.1", "process", Limits(), {})
    assert f"has version {__version__}" in started.error
    assert "0.0.1" in started.error


@pytest.mark.parametrize(
    "name",
    [
        "slurm",
        "ray:10.0.0.1",
        "ray:a:65536",
        "ray:ray://10.0.0.1:10001",
        "ray:a b:6379",
        "ray:[::1]",
    ],
)
@pytest.mark.parametrize("kind", [SearchSettings, BatchSettings])
def test_only_ray_is_a_cluster(name: str, kind: type[BaseModel]) -> None:
    for known in ("off", "ray", "ray:auto", "ray:10.0.0.1:6379", "ray:[fe80::1]:6379"):
        parse_settings(kind, {**NEEDED[kind], "cluster": known}, THE_FLAGS)
    with pytest.raises(SettingsError, match="expected off, ray or ray:<address>"):
        parse_settings(kind, {**NEEDED[kind], "cluster": name}, THE_FLAGS)


def test_a_large_folder_is_not_sent(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(os.urandom(2000))
    with pytest.raises(WallError, match="too large"):
        pack(tmp_path, 1000)
    unpack(pack(tmp_path, 3000), tmp_path / "copy")
    assert (tmp_path / "copy" / "data").read_bytes() == (tmp_path / "data").read_bytes()
