"""Rewards that are learned or blended: what they find, and that a training's own steps alone decide,
in any company and after any pause."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from training_environments import saved

from eureka_agent.records import LearnedBlend
from eureka_agent.rewards import RewardKind
from eureka_agent.training.fitness import EpisodeTracker
from eureka_agent.training.latent import LatentReward
from eureka_agent.training.learned import Lived
from eureka_agent.training.reward import RewardFunction
from eureka_agent.training.trainer import MemberFailed, MemberFinished, Trainer

STEPS, ROWS, LONGEST = 25, 8, 50

FACTORS = """
def compute_reward(position, speed, actions):
    near, slow = -position.square().sum(-1), -speed.square()
    return near, {"near": near, "slow": slow, "effort": -actions.square().sum(-1)}
"""


def steps(total: Tensor, components: dict[str, Tensor], ended: Tensor, fitness: Tensor) -> Lived:
    """Steps of which no action is known."""
    nothing = torch.zeros(0)
    return Lived(total, components, ended, fitness, nothing, nothing, nothing)


def lived(
    iterations: int, credit: Callable[[Tensor], Tensor], guess: Callable[[Tensor], Tensor]
) -> tuple[LatentReward, Tensor, Tensor]:
    """A reward after so many iterations of episodes that end at random, whose fitness is the sum of
    their steps' credit; with factors and its pay of one more iteration."""
    generator = torch.Generator().manual_seed(3)
    latent, value = LatentReward(5, LONGEST), torch.zeros(ROWS)
    for _ in range(iterations + 1):
        factors = torch.randn(STEPS, ROWS, 3, generator=generator) * torch.tensor([1.0, 20.0, 0.1])
        names = dict(zip(("a", "b", "c"), factors.unbind(-1), strict=True))
        ended = torch.rand(STEPS, ROWS, generator=generator) < 0.04
        fitness = torch.empty(STEPS, ROWS)
        for step in range(STEPS):
            value = value + credit(factors[step])
            fitness[step] = value
            value = value * ~ended[step]
        paid = latent.pay(steps(guess(factors), names, ended, fitness))
    return latent, factors, paid


def correlation(one: Tensor, other: Tensor) -> float:
    return float(np.corrcoef(one.flatten().numpy(), other.flatten().numpy())[0, 1])


def test_it_finds_the_credit_of_steps_from_sums_over_episodes() -> None:
    def credit(factors: Tensor) -> Tensor:
        return 0.5 * factors[..., 0] - 0.1 * factors[..., 1]

    latent, factors, paid = lived(800, credit, lambda factors: factors[..., 2])
    assert correlation(paid, credit(factors)) > 0.98
    learned = latent.learned()
    assert learned.explained > 0.95
    # sizes 1, 20 and 0.1: the credit of one size is 0.5, −2 and 0
    a, b, c = learned.slopes.values()
    assert a / b == pytest.approx(0.5 / -2.0, abs=0.05)
    assert abs(c + learned.guess) < 0.05 * abs(b)
    assert learned.episodes == pytest.approx(801 * STEPS * ROWS * 0.04, rel=0.1)


def test_it_finds_credit_that_is_not_linear_in_the_factors() -> None:
    def credit(factors: Tensor) -> Tensor:
        return (factors[..., 0].abs() < 0.5).float()  # inside a band

    _, factors, paid = lived(400, credit, lambda factors: factors[..., 2])
    assert correlation(paid, credit(factors)) > 0.3
    assert abs(correlation(factors[..., 0], credit(factors))) < 0.1  # no line tells


def test_a_guess_of_the_wrong_sign_is_turned_around() -> None:
    def credit(factors: Tensor) -> Tensor:
        return factors[..., 0]

    _, factors, paid = lived(0, credit, lambda factors: -factors[..., 0])
    assert correlation(paid, -factors[..., 0]) == pytest.approx(1.0)  # nothing is known yet
    _, factors, paid = lived(50, credit, lambda factors: -factors[..., 0])
    assert correlation(paid, factors[..., 0]) > 0.98


def test_where_all_episodes_are_worth_the_same_the_guess_is_paid() -> None:
    latent, factors, paid = lived(
        50, lambda factors: torch.zeros(ROWS), lambda factors: factors[..., 1]
    )
    assert correlation(paid, factors[..., 1]) == pytest.approx(1.0)
    assert latent.learned().explained == 0.0


def test_constant_and_equal_factors_do_no_harm() -> None:
    generator, latent = torch.Generator().manual_seed(0), LatentReward(1, LONGEST)
    for _ in range(20):
        factor = torch.randn(STEPS, ROWS, generator=generator)
        names = {"one": factor, "same": factor, "none": torch.zeros_like(factor)}
        ended = torch.zeros(STEPS, ROWS, dtype=torch.bool)
        ended[-1] = True
        paid = latent.pay(steps(torch.zeros_like(factor), names, ended, factor.cumsum(dim=0)))
    assert correlation(paid, factor) > 0.95
    assert all(map(np.isfinite, latent.learned().slopes.values()))


def test_a_factor_that_is_huge_once_breaks_no_training_but_its_own(
    make_trainer: Callable[..., Trainer], point_reward: Callable[..., RewardFunction]
) -> None:
    """Its squares are beyond what the fit can hold beside the other factors."""
    far = FACTORS.replace(
        "-actions.square().sum(-1)", "1e-9 * speed + 9e12 * (position.amax(-1) > 1.4)"
    )
    trainer = make_trainer(3, env_steps=40 * 128)
    for kind in ("latent", "blend", "code"):
        trainer.submit(kind, point_reward(far if kind != "code" else FACTORS), 7, kind=kind)  # type: ignore[arg-type]
    ends = {}
    while trainer.busy:
        for event in trainer.iterate():
            if isinstance(event, MemberFinished | MemberFailed):
                ends[event.job] = event
    assert isinstance(ends["code"], MemberFinished)
    for kind in ("latent", "blend"):
        end = ends[kind]
        assert isinstance(end, MemberFinished) or end.code == "not-a-number"


def train(trainer: Trainer, job: str) -> MemberFinished:
    while trainer.busy:
        for event in trainer.iterate():
            assert not isinstance(event, MemberFailed), event
            if isinstance(event, MemberFinished) and event.job == job:
                return event
    raise AssertionError("it did not finish")


def same(one: MemberFinished, other: MemberFinished) -> bool:
    """Equal to the bit, but for the seconds."""
    kept = one.policies.keys() == other.policies.keys() and all(
        torch.equal(tensor, other.policies[index][name])
        for index, policy in one.policies.items()
        for name, tensor in policy.items()
    )
    drop = {"seconds"}
    return kept and one.outcome.model_dump(exclude=drop) == other.outcome.model_dump(exclude=drop)


@pytest.mark.parametrize("kind", ["latent", "blend"])
def test_neighbours_and_a_pause_change_no_bit_of_it(
    make_trainer: Callable[..., Trainer],
    point_reward: Callable[..., RewardFunction],
    tmp_path: Path,
    kind: RewardKind,
) -> None:
    budget = {"env_steps": 40 * 128, "kept_policies": 2}
    alone = make_trainer(1, **budget)
    alone.submit("it", point_reward(FACTORS), 7, kind=kind)
    reference = train(alone, "it")
    assert reference.outcome.learned is not None
    assert {"reward.weights"} <= reference.policy.keys()

    crowd = make_trainer(3, **budget)
    crowd.submit("code", point_reward(), 1)
    crowd.submit("it", point_reward(FACTORS), 7, kind=kind)
    crowd.submit("other", point_reward(FACTORS), 8, kind=kind)
    assert same(train(crowd, "it"), reference)

    before, after = make_trainer(2, **budget), make_trainer(2, **budget)
    before.submit("it", point_reward(FACTORS), 7, kind=kind)
    for _ in range(17):
        before.iterate()
    snapshot = saved(before, "it", tmp_path / "snapshot")
    after.submit("other", point_reward(FACTORS), 8, kind=kind)
    after.submit("it", point_reward(FACTORS), 7, snapshot, kind=kind)
    assert same(train(after, "it"), reference)


@pytest.mark.parametrize(
    ("sign", "least", "most"),
    [("-", 0.9, 1.0), ("", 0.0, 0.1)],
    ids=["as the fitness", "against it"],
)
def test_a_blend_keeps_what_pulls_as_the_fitness_does(
    make_trainer: Callable[..., Trainer],
    point_reward: Callable[..., RewardFunction],
    sign: str,
    least: float,
    most: float,
) -> None:
    source = FACTORS.replace("near, slow = -position", f"near, slow = {sign}position")
    trainer = make_trainer(1, env_steps=40 * 128)
    trainer.submit("it", point_reward(source), 7, kind="blend")
    learned = train(trainer, "it").outcome.learned
    assert isinstance(learned, LearnedBlend)
    assert least <= learned.weight <= most
    assert all(0.0 <= each <= 1.0 for each in learned.regions)


def test_each_step_is_paid_what_it_adds_to_the_fitness() -> None:
    """Sums and maxima are gained step by step, a last value by its changes."""
    fitness = torch.tensor([2.0, 1.0, 3.0, 5.0]).view(1, 4, 1)
    ended = torch.tensor([False, False, True, False]).view(1, 4, 1)
    gained = {
        "sum": [2.0, 1.0, 3.0, 5.0],
        "mean": [2.0, 1.0, 3.0, 5.0],
        "max": [2.0, 0.0, 1.0, 5.0],
        "last": [2.0, -1.0, 2.0, 5.0],
    }
    for reduction, expected in gained.items():
        tracker = EpisodeTracker(1, 1, reduction, "cpu")  # type: ignore[arg-type]
        found = tracker.update(fitness, ended).gained.flatten().tolist()
        assert found == pytest.approx(expected), reduction


def test_a_factor_that_is_not_finite_ends_the_training(
    make_trainer: Callable[..., Trainer], point_reward: Callable[..., RewardFunction]
) -> None:
    trainer = make_trainer(1)
    source = FACTORS.replace("-actions.square().sum(-1)", "(position[:, 0] - 0.001).log()")
    trainer.submit("it", point_reward(source), 7, kind="latent")
    events = trainer.iterate()
    assert [type(each) for each in events] == [MemberFailed]
    assert "component 'effort' is NaN" in events[0].reason  # type: ignore[union-attr]
