"""Standstill: the policy without noise waits, or goes round in a circle, to the end of an episode.
With exploration noise it gets free, so that no curve tells of it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from eureka_agent.analysis.curves import number
from eureka_agent.analysis.events import Episode, as_columns, is_whole, length_of
from eureka_agent.array_files import failed
from eureka_agent.records import DiagnosisFinding, TaskDescription

LONGEST_CIRCLE = 8
"""Most steps of a circle."""
UNCHANGED = 1e-3
"""Change of a number, relative to its range over the episodes, that counts as none."""
DRIFT = 0.02
"""Change of a number over the whole standstill, relative to its range, that counts as none."""
MOST_CHANGING = 0.2
"""Share of the numbers that may change meanwhile, as a clock or hunger does."""
LEAST_STILL = 0.25
"""Least part of the longest episode that it stands still for."""
LITTLE = 0.1
"""Fitness a step meanwhile, above the lowest and relative to the best episode's mean, up to which
nothing is gained."""
_ENDS = ("terminated", "succeeded")


def standing_still(
    episodes: Mapping[str, Episode], description: TaskDescription
) -> list[DiagnosisFinding]:
    """The worst episode stands still to its end, and gains nothing by it."""
    worst, best = episodes.get("worst"), episodes.get("best")
    if worst is None or best is None or failed(worst):
        return []
    steps = length_of(worst)
    traces = [each["fitness"].astype(np.float64) for each in (worst, best) if "fitness" in each]
    if len(traces) < 2 or not all(np.isfinite(each).all() for each in traces):
        return []
    names, numbers = _numbers(worst, best, description)
    begun, circle, changes = _last_standstill(numbers)
    lasts = steps - begun
    if lasts < LEAST_STILL * description.max_episode_length or not names:
        return []
    if changes.mean() > MOST_CHANGING:  # slow, but under way
        return []
    lowest = min(0.0, *(float(each.min()) for each in traces))  # a cost is lost, not gained
    gained, most = float(traces[0][begun:].mean()), float(traces[1].mean())
    if not gained - lowest <= LITTLE * (most - lowest):
        return []
    what = "nothing" if circle == 1 else f"nothing but a circle of {circle} steps"
    changing = list(dict.fromkeys(name for name, each in zip(names, changes, strict=True) if each))
    but = f", apart from {', '.join(changing)}" if changing else ""
    message = (
        f"In the worst episode, without exploration noise, {what} happens from"
        f" {number(begun * description.control_dt)} s to its end at"
        f" {number(steps * description.control_dt)} s{but}, and no fitness is gained."
    )
    advice = (
        "let a step out of there pay more than waiting, and look at what the policy observes: the"
        " same observations give the same actions for ever"
    )
    part = lasts / description.max_episode_length
    return [DiagnosisFinding(code="standstill", message=message, advice=advice, value=part)]


def _numbers(
    worst: Episode, best: Episode, description: TaskDescription
) -> tuple[list[str], npt.NDArray[np.float64]]:
    """The worst episode's numbers that change in one of the two, in parts of their range, and the
    variable of each. Shape: (steps, numbers)."""
    names, found = list[str](), []
    steps = length_of(worst)
    for variable in description.public_variables():
        name = variable.name
        both = [each.get(name) for each in (worst, best)]
        if name in _ENDS or not is_whole(both[0], steps) or not is_whole(both[1], length_of(best)):
            continue
        columns = [as_columns(each, len(each)) for each in both]  # type: ignore[arg-type]
        if columns[0].shape[1] != columns[1].shape[1]:
            continue
        ranges = np.ptp(np.vstack(columns), axis=0)
        moving = np.flatnonzero(ranges > 0)
        names += [name] * len(moving)
        found.append(columns[0][:, moving] / ranges[moving])
    return names, np.hstack(found) if found else np.zeros((steps, 0))


def _last_standstill(
    numbers: npt.NDArray[np.float64],
) -> tuple[int, int, npt.NDArray[np.bool_]]:
    """First step of the standstill at the end, the steps of its circle, and the numbers that change
    nevertheless. The shortest circle of equally long ones counts."""
    steps = len(numbers)
    begun, circle = steps, 1
    for period in range(1, min(LONGEST_CIRCLE, steps - 1) + 1):
        still = np.abs(numbers[period:] - numbers[:-period]) <= UNCHANGED
        few = (~still).mean(axis=1) <= MOST_CHANGING
        broken = np.flatnonzero(~few)
        first = int(broken[-1]) + 1 if len(broken) else 0
        if first < begun - period and first < len(few):
            begun, circle = first, period
    phases = [numbers[begun + each :: circle] for each in range(min(circle, steps - begun))]
    drifts = [np.ptp(each, axis=0) for each in phases] or [np.zeros(numbers.shape[1])]
    changes: npt.NDArray[np.bool_] = np.max(drifts, axis=0) > DRIFT
    return begun, circle, changes
