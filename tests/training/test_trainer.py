"""The trainer's events: outcomes, curve points, failures by code, queueing."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import pytest
from torch import Tensor
from training_environments import PointMass, run

from eureka_agent.training import members
from eureka_agent.training.reward import RewardFunction
from eureka_agent.training.trainer import MemberFailed, MemberFinished, MemberProgress, Trainer

MakeTrainer = Callable[..., Trainer]
LoadReward = Callable[..., RewardFunction]


def test_a_training_ends_with_its_checkpoints_and_the_best_policy(
    make_trainer: MakeTrainer, point_reward: LoadReward
) -> None:
    trainer = make_trainer(1, env_steps=1000, checkpoints=4)
    assert not trainer.busy
    assert trainer.iterate() == []
    trainer.submit("job", point_reward(), 0)
    assert trainer.busy
    events = run(trainer)["job"]
    finished = events[-1]
    assert isinstance(finished, MemberFinished)
    # iterations of 8 steps × 16 environments = 128: 8 of them reach 1000
    assert [event.point.env_steps for event in events if isinstance(event, MemberProgress)] == list(
        range(128, 1025, 128)
    )
    outcome = finished.outcome
    assert outcome.env_steps == 1024
    assert [record.env_steps for record in outcome.checkpoints] == [256, 512, 768, 1024]
    known = [record.fitness for record in outcome.checkpoints if record.fitness is not None]
    assert outcome.training_fitness == max(known)
    assert outcome.checkpoints[outcome.best_checkpoint].fitness == max(known)
    assert finished.policy["policy.0.weight"].shape == (4, 16)


def test_a_curve_point_sums_up_one_member_s_iteration(
    make_trainer: MakeTrainer, point_reward: LoadReward
) -> None:
    trainer = make_trainer(2)
    source = (
        "def compute_reward(actions, speed):\n    sign = torch.where(speed >= 0.0, 3.0, 0.0)\n   "
        " flip = torch.ones_like(speed)\n    flip[::2] = -1.0\n    return sign + flip, {'constant':"
        " sign, 'flip': flip}\n"
    )
    trainer.submit("plain", point_reward(), 0)
    trainer.submit("job", point_reward(source), 0)
    _, event = trainer.iterate()
    assert isinstance(event, MemberProgress)
    point = event.point
    # 'flip' is −1 and 1 in turn: mean 0, magnitude 1, deviation 1; 'constant' is 3
    assert point.components == {"constant": 3.0, "flip": 0.0}
    assert point.component_magnitudes == {"constant": 3.0, "flip": 1.0}
    assert point.component_deviations == {"constant": 0.0, "flip": 1.0}
    assert point.reward == 3.0
    # exploration with a standard deviation of 1 around 0 is beyond ±0.99 in about 32 % of the draws
    assert 0.2 < point.action_saturation < 0.45
    assert point.action_std == pytest.approx(1.0, abs=0.1)


def test_full_episodes_are_counted_with_the_cause_of_their_end(
    make_trainer: MakeTrainer, point_reward: LoadReward
) -> None:
    trainer = make_trainer(1, env_steps=128 * 12)
    trainer.submit("job", point_reward(), 0)
    points = [event.point for event in run(trainer)["job"] if isinstance(event, MemberProgress)]
    for point in points:
        assert sum(point.terminations.values()) == point.episodes
        assert (point.fitness is None) == (point.episodes == 0)
        assert (
            point.episode_length is None
            or 1 <= point.episode_length <= PointMass.max_episode_length
        )
    assert {cause for point in points for cause in point.terminations} == {"fell_off", "time_out"}
    # 96 steps of 16 environments, episodes of at most 24 steps: at least 3 full ones in each
    assert sum(point.episodes for point in points) >= 3 * 16


@pytest.mark.parametrize(
    ("source", "code", "reason"),
    [
        ("def compute_reward(speed):\n    return speed / 0.0, {}", "not-a-number", "the total"),
        ("def compute_reward(speed):\n    return speed, {'gap': torch.log(-1.0 - speed)}", "not-a-number", "'gap' is NaN"),
        ("def compute_reward(speed):\n    return 1e38 * speed, {}", "not-a-number", "total reaches"),
        ("def compute_reward(speed):\n    return speed, {'gap': 3e38 * torch.ones_like(speed)}", "not-a-number", "component 'gap' reaches 3e+38, expected less than 1e+13"),
        ("def compute_reward(speed):\n    return speed[:, 0], {}", "raised", "line 2: IndexError"),
        ("def compute_reward(speed):\n    return speed.mean(), {}", "contract", "line 2: the total has shape ()"),
        ("def compute_reward(speed):\n    while True: pass", "timeout", "took longer than 0.5 s"),
        ("def compute_reward(speed):\n    while True:\n        try:\n            while True: pass\n        except Exception: pass", "timeout", "took longer than 0.5 s"),
    ],
)  # fmt: skip
def test_a_faulty_reward_fails_alone_and_says_why(
    make_trainer: MakeTrainer, point_reward: LoadReward, source: str, code: str, reason: str
) -> None:
    trainer = make_trainer(2)
    trainer.submit("sound", point_reward(), 0)
    trainer.submit("faulty", point_reward(source), 0)
    events = run(trainer)
    (failed,) = events["faulty"]
    assert isinstance(failed, MemberFailed)
    assert failed.code == code
    assert reason in failed.reason
    assert failed.env_steps == 128
    assert isinstance(events["sound"][-1], MemberFinished)


def test_returns_beyond_float32_are_told_with_the_rewards_size(
    make_trainer: MakeTrainer, point_reward: LoadReward, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(members, "LARGEST_REWARD", 1e18)
    # returns add up a hundred such rewards, and their square is beyond 3.4e38
    source = "def compute_reward(speed):\n    return 9.9e17 * (2.0 * (speed > 0.5) - 1.0), {}"
    trainer = make_trainer(2)
    trainer.submit("huge", point_reward(source), 0)
    failed = run(trainer)["huge"][-1]
    assert isinstance(failed, MemberFailed)
    assert "the largest reward of the iteration was 9.9e+17" in failed.reason


class Slow:
    """A reward that keeps its trainer waiting, just under the limit of a call."""

    def __init__(self, reward: RewardFunction, seconds: float) -> None:
        self.arguments = reward.arguments
        self.observation = None
        self._reward = reward
        self._seconds = seconds

    def begin(
        self, values: Mapping[str, Tensor], timeout_s: float
    ) -> Callable[[], tuple[Tensor, dict[str, Tensor]]]:
        def wait() -> tuple[Tensor, dict[str, Tensor]]:
            end = time.perf_counter() + self._seconds
            while time.perf_counter() < end:
                pass
            return self._reward.begin(values, timeout_s)()

        return wait


def test_one_that_keeps_the_others_waiting_again_and_again_fails(
    make_trainer: MakeTrainer, point_reward: LoadReward, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(members, "REWARD_GRACE", 0.35)
    monkeypatch.setattr(members, "REWARD_SHARE", 0.0)
    trainer = make_trainer(2)
    # the quick one is waited for as well, and its share of the waiting is its own
    trainer.submit("slow", Slow(point_reward(), 0.1), 0)
    trainer.submit("quick", Slow(point_reward(), 0.0), 0)
    events = run(trainer)
    *before, failed = events["slow"]
    assert isinstance(failed, MemberFailed)
    assert len(before) <= 3  # of the fourth call at the latest it is too late
    assert failed.code == "timeout"
    assert "beside" in failed.reason
    assert isinstance(events["quick"][-1], MemberFinished)
