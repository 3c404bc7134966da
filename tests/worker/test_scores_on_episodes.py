"""Rewards on stored episodes, by a real worker on the cart-pole: figures by hand, and what cannot
be scored."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio

from eureka_agent.designer.interface import given_reward
from eureka_agent.fleet.dry_runner import DryRunner
from eureka_agent.fleet.jobs import Problem
from eureka_agent.sandbox.process_wall import ProcessWall
from eureka_agent.training.evaluation import trajectories_bytes

pytestmark = pytest.mark.asyncio(loop_scope="module")

TIMEOUT_S = 1.5


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("dry")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def dry_runner(scratch: Path) -> AsyncIterator[DryRunner]:
    dry_runner = DryRunner(ProcessWall(), Problem("cartpole", "balance"), scratch, TIMEOUT_S)
    await dry_runner.start()
    yield dry_runner
    await dry_runner.close()


def episodes_file(path: Path, worst: list[float], best: list[float]) -> Path:
    """Two episodes with these values of `pole_upright`, and actions of the step's number."""
    episodes = {
        name: {
            "pole_upright": np.array(values, dtype=np.float32),
            "actions": np.arange(len(values), dtype=np.float32).reshape(-1, 1),
            "fitness": np.array(values, dtype=np.float32),
        }
        for name, values in (("worst", worst), ("best", best))
    }
    path.write_bytes(trajectories_bytes(episodes))
    return path


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    return episodes_file(tmp_path / "trajectories.npz", [0.5, 0.25, -1.0], [1.0, 0.75, 0.5])


def reward(total: str, arguments: str = "pole_upright") -> str:
    return (
        f"import torch\ndef compute_reward({arguments}):\n    total = {total}\n    return total,"
        " {'a': total}\n"
    )


async def test_returns_are_sums(dry_runner: DryRunner, stored: Path) -> None:
    scored = await dry_runner.score(given_reward(reward("2 * pole_upright")), {"sums": stored})
    assert scored.reason == ""
    assert scored.returns == (
        {"worst": -0.5, "best": 4.5},
    )  # 2 · (0.5 + 0.25 − 1), 2 · (1 + 0.75 + 0.5)


async def test_previous_values_do_not_come_from_another_episode(
    dry_runner: DryRunner, stored: Path
) -> None:
    difference = reward(
        "pole_upright - previous_pole_upright", "pole_upright, previous_pole_upright"
    )
    scored = await dry_runner.score(given_reward(difference), {"differences": stored})
    # a first step's previous value is its own
    assert scored.returns == ({"worst": -1.5, "best": -0.5},)


async def test_the_agreement_with_the_fitness_is_told_where_it_is_asked_for(
    dry_runner: DryRunner, tmp_path: Path
) -> None:
    random = np.random.default_rng(0)
    fitness, observations = random.normal(size=50), random.normal(size=(50, 4))
    episode = {
        "pole_upright": fitness.astype(np.float32),
        "fitness": fitness.astype(np.float32),
        "observations": observations.astype(np.float32),
    }
    path = tmp_path / "practice.npz"
    path.write_bytes(trajectories_bytes({"best": episode}))
    against = given_reward(reward("-3 * pole_upright"))
    (credit,) = await dry_runner.credits([against], {"practice": path})
    assert credit is not None
    assert credit.alignment == pytest.approx(-1.0)


def practice_file(path: Path) -> Path:
    """An episode of 50 steps that pays `pole_upright`."""
    random = np.random.default_rng(0)
    paid = random.normal(size=50).astype(np.float32)
    episode = {
        "pole_upright": paid,
        "fitness": paid,
        "observations": random.normal(size=(50, 4)).astype(np.float32),
    }
    path.write_bytes(trajectories_bytes({"best": episode}))
    return path


async def test_rewards_that_share_a_process_have_the_credit_that_each_has_alone(
    dry_runner: DryRunner, tmp_path: Path
) -> None:
    """More than one process takes, and one among them that draws numbers and writes into its
    arguments, which the critic would refuse."""
    episodes = {"practice": practice_file(tmp_path / "practice.npz")}
    meddling = "pole_upright.mul_(-1) + torch.rand_like(pole_upright)"
    totals = [*(f"pole_upright ** {power}" for power in range(1, 20)), meddling]
    rewards = [given_reward(reward(total)) for total in [*totals, *totals]]
    together = await dry_runner.credits(rewards, episodes)
    alone = [(await dry_runner.credits([each], episodes))[0] for each in rewards]
    assert together == alone
    assert together[0] is not None
    assert together[0].step == pytest.approx(1.0)


async def test_a_reward_that_ends_its_process_costs_no_other_its_credit(
    dry_runner: DryRunner, tmp_path: Path
) -> None:
    episodes = {"practice": practice_file(tmp_path / "practice.npz")}
    sound = given_reward(reward("pole_upright"))
    endless = given_reward(
        "def compute_reward(pole_upright):\n    while True:\n        pass\n"
        "    return pole_upright, {}\n"
    )
    not_finite = given_reward(reward("pole_upright / 0"))
    without = given_reward(reward("cart_position", "cart_position"))
    found = await dry_runner.credits([sound, endless, not_finite, without, sound], episodes)
    assert [each is None for each in found] == [False, True, True, True, False]


async def test_episodes_without_observations_tell_no_agreement(
    dry_runner: DryRunner, stored: Path
) -> None:
    asked = given_reward(reward("pole_upright"))
    assert await dry_runner.credits([asked], {"plain": stored}) == [None]
    assert (await dry_runner.score(asked, {"plain": stored})).returns


async def test_a_worker_keeps_the_files_of_the_last_score_alone(
    dry_runner: DryRunner, scratch: Path, stored: Path, tmp_path: Path
) -> None:
    """Over a long search they would fill its scratch folder. Episodes that are asked for again are
    sent again, also after a score that failed. Those of the last credit stay."""
    await dry_runner.credits([given_reward(reward("pole_upright"))], {"plain": stored})
    files = {
        name: episodes_file(tmp_path / name, [value], [value])
        for name, value in (("a", 0.25), ("b", 0.5))
    }
    files["broken"] = tmp_path / "broken"
    files["broken"].write_bytes(b"PK")
    sent = {**files, "gone": tmp_path / "gone"}
    for names in (
        ("a", "b"),
        ("b",),
        ("a",),
        ("b", "broken"),
        ("a", "b"),
        ("a", "gone"),
        ("b",),
        ("b", "a"),
    ):
        scored = await dry_runner.score(
            given_reward(reward("pole_upright")), {name: sent[name] for name in names}
        )
        if {"broken", "gone"} & {*names}:
            assert scored.reason != ""
            continue
        assert [returns["best"] for returns in scored.returns] == [
            {"a": 0.25, "b": 0.5}[name] for name in names
        ]
        assert {path.name for path in scratch.rglob("*.npz")} == {
            f"episodes-{name}.npz" for name in (*names, "plain")
        }


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (reward("cart_velocity", "cart_velocity"), "'cart_velocity' is not stored"),
        (reward("1 / 0"), "ZeroDivisionError"),
        ("import os\n" + reward("os._exit(3)"), "status 3"),
        ("import time\n" + reward("time.sleep(60)"), "1.5 s"),
        (reward("pole_upright", "zebra"), "zebra"),
    ],
)
async def test_what_has_no_values_says_why_and_the_worker_lives_on(
    dry_runner: DryRunner, stored: Path, source: str, said: str
) -> None:
    scored = await dry_runner.score(given_reward(source), {"alive": stored})
    assert said in scored.reason
    assert scored.returns == ()
    assert (
        await dry_runner.score(given_reward(reward("pole_upright")), {"alive": stored})
    ).reason == ""
