"""Description of a policy's inputs and outputs, column by column."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from eureka_agent.records import ChannelSpec, TaskDescription

FORMAT = "eureka-policy-1"
_CLIP = 10.0
"""Bound of the policy's normalised observations."""


@dataclass(frozen=True)
class Statistics:
    """Statistics of the policy's training observations, one number a column."""

    mean: Sequence[float]
    deviation: Sequence[float]


def policy_description(
    description: TaskDescription, statistics: Statistics, names: dict[str, str]
) -> dict[str, Any]:
    """Content of policy.json. `names`: run, attempt and task."""
    size, clip = len(statistics.mean), f"{_CLIP:g}"
    inputs = _fitting(description.observation_channels, size)
    outputs = _fitting(description.action_channels, description.num_actions)
    numbers = zip(statistics.mean, statistics.deviation, strict=True)
    observation = [
        {**column, "mean": mean, "deviation": deviation}
        for column, (mean, deviation) in zip(
            _columns(inputs, size, "observation"), numbers, strict=True
        )
    ]
    return {
        "format": FORMAT,
        **names,
        "control_dt_s": description.control_dt,
        "episode_steps": description.max_episode_length,
        "quaternion_order": description.quaternion_order,
        "observation": {
            "input": "observation",
            "shape": ["batch", size],
            "dtype": "float32",
            "value": "quantity * scale, in the column's unit and frame",
            "normalisation": (
                f"the policy itself computes clip((value - mean) / deviation, -{clip}, {clip})"
            ),
            "named": bool(inputs),
            "columns": observation,
        },
        **_outputs(description, outputs),
    }


def _fitting(channels: Sequence[ChannelSpec], size: int) -> Sequence[ChannelSpec]:
    """Channels of so many numbers; none where they do not fit, since a worker may send anything."""
    return channels if sum(len(each.entries) or 1 for each in channels) == size else ()


def _outputs(description: TaskDescription, channels: Sequence[ChannelSpec]) -> dict[str, Any]:
    """The policy's outputs by name: `action`, and `logits` for discrete actions."""
    count, choices = description.num_actions, description.action_choices
    columns = list(_columns(channels, count, "action"))
    ranges = [each.range for each in channels for _ in each.entries or ("",)] or [None] * count
    for index, (column, bounds) in enumerate(zip(columns, ranges, strict=True)):
        del column["scale"]
        column |= (
            {"choices": choices[index]}
            if choices
            else {"low": bounds and bounds[0], "high": bounds and bounds[1]}
        )
    if choices:
        form = {
            "shape": ["batch"] if count == 1 else ["batch", count],
            "dtype": "int64",
            "value": "index of the likeliest choice, from 0; each column has as many as it says",
        }
    else:
        form = {
            "shape": ["batch", count],
            "dtype": "float32",
            "value": (
                "-1 to 1; where a column has low and high: command = low + (value + 1) / 2 * (high"
                " - low)"
            ),
        }
    action = {"output": "action", **form, "named": bool(channels), "columns": columns}
    logits = {
        "output": "logits",
        "shape": ["batch", sum(choices)],
        "dtype": "float32",
        "value": (
            "logarithm of each choice's probability, but for a constant; the columns' choices one"
            " after the other"
        ),
    }
    return {"action": action, "logits": logits} if choices else {"action": action}


def as_json(description: dict[str, Any]) -> str:
    """Description as indented JSON."""
    return json.dumps(description, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _columns(
    channels: Sequence[ChannelSpec], count: int, fallback: str
) -> Iterator[dict[str, Any]]:
    """Columns of the channels; without channels columns without names."""
    if not channels:
        channels = tuple(
            ChannelSpec(name=f"{fallback}[{index}]", unit="?", frame="?") for index in range(count)
        )
    columns = [(channel, entry) for channel in channels for entry in channel.entries or ("",)]
    for index, (channel, entry) in enumerate(columns):
        yield {
            "index": index,
            "name": f"{channel.name}.{entry}" if entry else channel.name,
            "unit": channel.unit,
            "frame": channel.frame,
            "doc": channel.doc,
            "scale": channel.scale,
        }
