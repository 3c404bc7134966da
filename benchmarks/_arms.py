"""Rewards of a task trained from the same seeds, and compared with its own rewards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from _common import subject
from reward_kinds import show, trained

from eureka_agent.report.comparison import compare

BASELINES = ("human", "sparse")


def arms(task: str, sources: Mapping[str, str], seeds: int) -> dict[str, dict[str, Any]]:
    """Fitness by seed of the task's human and sparse reward and of these sources, by name, with the
    difference from both and its 95 % interval (Welch)."""
    chosen = subject(task)
    own = {name: chosen.loaded.reward_source(chosen.task, name) for name in BASELINES}
    scores: dict[str, list[float]] = {}
    for name, source in {**own, **sources}.items():
        line = trained(chosen, "code", seeds, source or "")
        show(task, name, line)
        scores[name] = line["fitness"]
    return {name: {"fitness": each, **differences(each, scores)} for name, each in scores.items()}


def differences(
    ours: list[float], scores: Mapping[str, list[float]]
) -> dict[str, tuple[float, float, float]]:
    """Difference from each baseline, with the ends of its interval."""
    told = {}
    for name in BASELINES:
        found = compare(ours, scores[name])
        assert found is not None  # there are several seeds
        told[f"beyond {name}"] = found.difference, found.low, found.high
    return told
