"""rsl-rl and Stable-Baselines3 on the same simulator and reward, with PPO settings as close as each
allows."""

from __future__ import annotations

import time

from _common import Subject
from _rewarded import RewardedEnvironment

from eureka_agent.settings import TrainingSettings
from eureka_agent.training.policy import Policy

try:
    import _rsl as rsl
    import _sb3 as sb3
except ImportError as error:
    raise SystemExit(
        f"error: {error.name!r}, which this compares with, is not here; run ./setup.sh trainers"
    ) from None


def _rewarded(subject: Subject, num_envs: int, seed: int) -> RewardedEnvironment:
    reward = subject.reward()
    environment = subject.make(num_envs, seed)
    return RewardedEnvironment(environment, reward.arguments, lambda values: reward(values)[0])


def rsl_rl(
    subject: Subject, settings: TrainingSettings, seed: int, iterations: int
) -> tuple[float, Policy]:
    """Processor seconds of one rsl-rl training (without its set-up) and its last policy."""
    runner = rsl.made(
        _rewarded(subject, settings.num_envs, seed),
        settings,
        seed,
        num_learning_epochs=settings.epochs,
        num_mini_batches=settings.minibatches,
        clip_param=settings.clip,
        lam=settings.gae_lambda,
        value_loss_coef=settings.value_coefficient,
        entropy_coef=settings.entropy_coefficient,
        learning_rate=settings.learning_rate,
        max_grad_norm=settings.max_gradient_norm,
        use_clipped_value_loss=settings.clip_value_loss,
        schedule="adaptive" if settings.desired_kl > 0 else "fixed",
        desired_kl=settings.desired_kl,
    )
    began = time.process_time()
    rsl.learn(runner, iterations)
    seconds = time.process_time() - began
    return seconds, Policy(rsl.policy_of(runner), settings.activation, {})


def stable_baselines3(
    subject: Subject, settings: TrainingSettings, seed: int, iterations: int
) -> float:
    """Processor seconds of one Stable-Baselines3 training, without its set-up."""
    rewarded = _rewarded(subject, settings.num_envs, seed)
    rows = settings.horizon * settings.num_envs
    model = sb3.made(
        rewarded,
        settings,
        seed,
        n_steps=settings.horizon,
        batch_size=rows // settings.minibatches,
        n_epochs=settings.epochs,
        learning_rate=3e-4,
    )
    began = time.process_time()
    model.learn(iterations * rows)
    return time.process_time() - began
