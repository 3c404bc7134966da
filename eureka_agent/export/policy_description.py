"""A policy's inputs and outputs column by column, for whoever has the exported folder and nothing
else."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from eureka_agent.records import ChannelSpec, TaskDescription

FORMAT = "eureka-policy-1"
_CLIP = 10.0
"""Normalised observations are kept within ±this by the policy."""


@dataclass(frozen=True)
class Statistics:
    """Statistics of the observations that the policy was trained on, one number a column."""

    mean: Sequence[float]
    deviation: Sequence[float]


def policy_description(
    description: TaskDescription, statistics: Statistics, names: dict[str, str]
) -> dict[str, Any]:
    """The content of policy.json. `names`: what says which policy it is (run, attempt, task)."""
    sizes = len(statistics.mean), description.num_actions
    # an archive may hold whatever a worker sent: names that do not fit are none
    inputs, outputs = (
        channels if sum(len(each.entries) or 1 for each in channels) == size else ()
        for channels, size in zip(
            (description.observation_channels, description.action_channels), sizes, strict=True
        )
    )
    observation = [
        {**column, "mean": mean, "deviation": deviation}
        for column, mean, deviation in zip(
            _columns(inputs, sizes[0], "observation"),
            statistics.mean,
            statistics.deviation,
            strict=True,
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
            "shape": ["batch", sizes[0]],
            "dtype": "float32",
            "value": "quantity * scale, in the column's unit and frame",
            "normalisation": (
                f"the policy itself computes clip((value - mean) / deviation, -{_CLIP:g},"
                f" {_CLIP:g})"
            ),
            "named": bool(inputs),
            "columns": observation,
        },
        **_outputs(description, outputs),
    }


def _outputs(description: TaskDescription, channels: Sequence[ChannelSpec]) -> dict[str, Any]:
    """The policy's outputs by name: `action`, and of choices `logits`."""
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
    """Readable and machine-readable."""
    return json.dumps(description, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _columns(
    channels: Sequence[ChannelSpec], count: int, fallback: str
) -> Iterator[dict[str, Any]]:
    """One for each number: those of the channels, or without names where there are none."""
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
