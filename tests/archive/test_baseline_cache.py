from __future__ import annotations

from pathlib import Path

import pytest

from eureka_agent.archive.cache import BaselineCache
from eureka_agent.records import CheckpointRecord, Outcome, TaskDescription
from eureka_agent.rewards import baseline
from eureka_agent.settings import SearchSettings

REWARD = baseline("source")
OUTCOME = Outcome(
    env_steps=10,
    seconds=1.0,
    checkpoints=(
        CheckpointRecord(
            env_steps=10,
            fitness=1.0,
            episode_length=5.0,
            episodes=2,
            reward=0.5,
            components={"a": 0.5},
        ),
    ),
    best_checkpoint=0,
    training_fitness=1.0,
    fitness=1.5,
)


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "policy.safetensors"
    path.write_bytes(b"weights")
    return path


def test_a_baseline_is_found_again_with_its_policy(
    tmp_path: Path, description: TaskDescription, policy: Path
) -> None:
    BaselineCache(tmp_path, description, SearchSettings()).put(REWARD, 3, OUTCOME, policy)
    found = BaselineCache(tmp_path, description, SearchSettings()).find(REWARD, 3)
    assert found is not None
    assert found[0] == OUTCOME
    assert found[1].read_bytes() == b"weights"


@pytest.mark.parametrize(
    "change",
    ["source", "seed", "environment", "settings", "episodes", "scoring", "device", "design"],
)
def test_anything_that_it_depends_on_makes_it_another_entry(
    tmp_path: Path, description: TaskDescription, policy: Path, change: str
) -> None:
    BaselineCache(tmp_path, description, SearchSettings()).put(REWARD, 3, OUTCOME, policy)
    changed = (
        description.model_copy(update={"fingerprint": "1" * 64})
        if change == "environment"
        else description
    )
    others: dict[str, dict[str, int | str]] = {
        "settings": {"env_steps": 5},
        "episodes": {"evaluation_episodes": 16},
        "scoring": {"scoring_episodes": 4},
        "design": {"design": "observation"},
    }
    settings = SearchSettings().model_copy(update=others.get(change, {}))
    cache = BaselineCache(tmp_path, changed, settings, "cuda" if change == "device" else "cpu")
    reward = baseline("other") if change == "source" else REWARD
    assert cache.find(reward, 4 if change == "seed" else 3) is None


def test_an_entry_that_was_cut_off_is_no_entry(
    tmp_path: Path, description: TaskDescription, policy: Path
) -> None:
    cache = BaselineCache(tmp_path, description, SearchSettings())
    cache.put(REWARD, 3, OUTCOME, policy)
    (outcome,) = tmp_path.rglob("outcome.json")
    outcome.write_text(outcome.read_text()[:40])
    assert cache.find(REWARD, 3) is None
