"""The soak test, for some minutes (`make soak` runs an hour of it), and a Docker engine of its own
that is killed under a batch, and started again."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import CommandLine, Told, states_and_tries, wait_for
from own_engine import OwnEngine, has_engine, own_engine
from proofs import table
from soak import soak

NIGHT = """\
sandbox: docker
retries: 0
defaults: {iterations: 2, samples: 3, env_steps: 30000, finalists: 1, final_seeds: 1, \
evaluation_episodes: 2, scoring_episodes: 2, confirm: 1, schedule: generations, video: false}
matrix: {env: [cartpole], seed: [0, 1]}
"""


@pytest.fixture
def engine() -> Iterator[OwnEngine]:
    with own_engine() as engine:
        yield engine


@pytest.mark.slow
@pytest.mark.docker
@pytest.mark.skipif(
    not has_engine(), reason="needs an engine of its own, which only root can start"
)
def test_a_batch_waits_for_a_killed_engine_and_loses_nothing(
    tmp_path: Path, engine: OwnEngine
) -> None:
    eureka = CommandLine(tmp_path)
    (tmp_path / "unbroken.yaml").write_text(NIGHT.replace("docker", "process"))
    eureka("batch", "unbroken.yaml")
    eureka.environment["DOCKER_HOST"] = engine.host
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
    assert states_and_tries(runs / "night") == [("finished", 0)] * 2
    for name in ("cartpole-seed0", "cartpole-seed1"):
        assert eureka.found(runs / "night" / name) == eureka.found(runs / "unbroken" / name)
    assert engine.containers() == []


@pytest.mark.slow
def test_a_batch_under_faults_loses_and_repeats_nothing(tmp_path: Path) -> None:
    found, happened, one = soak(tmp_path, minutes=1.0, seed=0)
    said = table(found, happened, one.lives)
    print(said)
    assert {"kill_driver", "kill_worker", "set_clock"} <= happened.counts.keys(), said
    assert all(proof.holds for proof in found), f"{said}\n{one.log()[-4000:]}"
    assert "Traceback" not in one.log(), one.log()[-4000:]
