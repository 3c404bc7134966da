"""Curve points of an iteration, for all members with one transfer from the device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from pydantic import ValidationError
from torch import Tensor

from eureka_agent.records import CurvePoint
from eureka_agent.training.fitness import EndedEpisodes
from eureka_agent.training.population import LearningReport
from eureka_agent.training.rollout import Rollout


def curve_points(
    env_steps: Mapping[int, int],
    rollout: Rollout,
    rewards: Tensor,
    components: Mapping[int, Mapping[str, Tensor]],
    episodes: EndedEpisodes,
    report: LearningReport,
) -> tuple[dict[int, CurvePoint], dict[int, str]]:
    """Points of the members, and by member the name of a number that is not finite. `env_steps`:
    each member's; `rewards`: shape (members, steps, num_envs); `components`: shape (rows,) each."""
    nothing = torch.zeros_like(report.entropy)
    numbers = torch.stack(
        (
            episodes.count,
            episodes.fitness_sum,
            episodes.length_sum,
            rewards.flatten(1).mean(dim=1),
            nothing if report.action_saturation is None else report.action_saturation,
            nothing if report.action_std is None else report.action_std,
            report.learning_rate,
            report.kl,
            report.entropy,
            report.value_loss,
            report.policy_loss,
            report.explained_variance,
        ),
        dim=1,
    ).tolist()
    causes = list(rollout.causes)
    ended = torch.stack(
        [(rollout.causes[cause] & episodes.counted).flatten(1).sum(dim=1) for cause in causes],
        dim=1,
    ).tolist()
    moments = _component_moments([components[member] for member in env_steps])
    points, faults = {}, {}
    for (member, steps), (means, magnitudes, deviations) in zip(
        env_steps.items(), moments, strict=True
    ):
        counts = zip(causes, ended[member], strict=True)
        count, fitness, length, reward, saturation, std, *learning = numbers[member]
        rate, kl, entropy, value_loss, policy_loss, explained = learning
        try:
            points[member] = CurvePoint(
                env_steps=steps,
                fitness=fitness / count if count else None,
                episode_length=length / count if count else None,
                episodes=round(count),
                reward=reward,
                components=means,
                component_magnitudes=magnitudes,
                component_deviations=deviations,
                terminations={cause: each for cause, each in counts if each},
                action_saturation=None if report.action_saturation is None else saturation,
                action_std=None if report.action_std is None else std,
                learning_rate=rate,
                kl=kl,
                entropy=entropy,
                value_loss=value_loss,
                policy_loss=policy_loss,
                explained_variance=explained,
            )
        except ValidationError as error:  # a sum or square of finite values can overflow
            faults[member] = ".".join(str(part) for part in error.errors()[0]["loc"])
    return points, faults


def _component_moments(
    members: Sequence[Mapping[str, Tensor]],
) -> list[tuple[dict[str, float], dict[str, float], dict[str, float]]]:
    """Mean, mean magnitude and deviation of components, by member for equal rounding."""
    tables = [torch.stack(list(components.values())) for components in members if components]
    moments = [
        torch.stack((each.mean(1), each.abs().mean(1), each.std(dim=1, correction=0)), dim=1)
        for each in tables
    ]
    columns = iter(torch.cat(moments).tolist() if moments else ())
    result = []
    for components in members:
        own = {name: next(columns) for name in components}
        means, magnitudes, deviations = (
            {name: values[index] for name, values in own.items()} for index in range(3)
        )
        result.append((means, magnitudes, deviations))
    return result
