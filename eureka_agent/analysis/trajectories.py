"""The worst and the best evaluated episode: read from their file, and described, with the fitness
lost by a late start, an early end, and a lower rate in between."""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from eureka_agent.analysis.curves import number
from eureka_agent.analysis.episode_table import LEGEND, trajectory_tables
from eureka_agent.analysis.events import (
    Episode,
    events_of,
    length_of,
    parts_between,
    quarter_means,
)
from eureka_agent.archive.safe_files import open_plain
from eureka_agent.array_files import check_arrays, failed, read_episodes, succeeded
from eureka_agent.errors import RunFolderError
from eureka_agent.records import EpisodeSummary, Evaluation, TaskDescription

Trace = npt.NDArray[np.float64]
"""Fitness of each step of an episode. Shape: (steps,)."""

WINDOW_SHARE = 0.1
"""Window of a rate, relative to the longest episode: a single good step is no rate."""
ARRIVAL = 0.8
"""Part of the way from lowest to highest rate from which a policy does the task."""
RUN_UP_S = 2.0
"""Seconds before a failure without a rate: nobody can hold a pace that ends in a fall."""
RUN_UP_SHARE = 0.25
"""Bound on these seconds, relative to the longest episode."""
SINGLE = 0.5
"""Part of an episode's fitness that is paid at once if a step has so much of it."""
ROUNDING = 1e-9
ADDITIVE = ("sum", "mean")


@dataclass(frozen=True)
class Losses:
    """An episode's loss against the highest rate held for the longest episode, in three parts."""

    late: float
    """Loss before the policy comes near the highest rate."""
    early_end: float
    """Loss by missing steps."""
    low_rate: float
    """Loss in between."""
    arrival: int | None
    """Steps before it comes near the highest rate; None where it never does."""


def window_of(longest: int) -> int:
    """Window of a rate in steps, for episodes of at most `longest` steps."""
    return max(1, round(WINDOW_SHARE * longest))


def rates(trace: Trace, window: int) -> Trace:
    """Mean fitness a step over each window. Shape: (steps - window + 1,)."""
    window = min(window, len(trace))
    sums = np.concatenate(([0.0], np.cumsum(trace)))
    return (sums[window:] - sums[:-window]) / window


def losses(trace: Trace, highest: float, lowest: float, longest: int, reduction: str) -> Losses:
    """Losses against the highest rate of all episodes; `lowest`: the rate of doing nothing."""
    held = rates(trace, window_of(longest))
    bar = lowest + ARRIVAL * (highest - lowest)
    reached = np.flatnonzero(held >= bar - ROUNDING * abs(bar))
    arrival = int(reached[0]) if len(reached) else None
    missing = np.where(np.abs(highest - trace) > ROUNDING * highest, highest - trace, 0.0)
    before = len(trace) if arrival is None else arrival
    # under a mean an early end costs nothing, and a step counts by its share of the episode
    scale = 1.0 / len(trace) if reduction == "mean" else 1.0
    absent = 0 if reduction == "mean" else longest - len(trace)
    return Losses(
        late=scale * float(missing[:before].sum()),
        early_end=highest * absent,
        low_rate=scale * float(missing[before:].sum()),
        arrival=arrival,
    )


def losses_text(
    traces: Mapping[str, Trace],
    description: TaskDescription,
    failures: Collection[str] = (),
    jumps: Mapping[str, Sequence[int]] | None = None,
) -> str:
    """A line per episode; empty where steps do not add up to the fitness, or nothing is gained.
    `failures`: episodes that ended by failure, whose last seconds give no rate. `jumps`: steps of
    their events, between which the task begins anew."""
    traces = {
        name: trace for name, trace in traces.items() if len(trace) and np.isfinite(trace).all()
    }
    if description.fitness_reduction not in ADDITIVE or not traces:
        return ""
    longest, control_dt = description.max_episode_length, description.control_dt
    if paid := _single_payments(traces, control_dt):
        return paid
    run_up = round(min(RUN_UP_S / control_dt, RUN_UP_SHARE * longest))
    window = window_of(longest)
    held = {
        name: rates(trace[: len(trace) - run_up] if name in failures else trace, window)
        for name, trace in traces.items()
        if name not in failures or len(trace) >= run_up + window
    }
    if not held:
        return ""
    highest = max(float(each.max()) for each in held.values())
    lowest = min(0.0, *(float(each.min()) for each in held.values()))
    if highest <= 0.0:
        return ""
    summed = description.fitness_reduction == "sum"
    whole = highest * longest if summed else highest
    bar = (1.0 - ROUNDING) * highest
    reached = {name: np.flatnonzero(each >= bar) for name, each in held.items()}
    fastest, begin = next((name, int(places[0])) for name, places in reached.items() if len(places))
    window = min(window, len(traces[fastest]))
    lines = [
        "Where fitness is lost. The highest rate of these two episodes, held for"
        f" {number(window * control_dt)} s, is {_rate(highest, description)} ({fastest} episode,"
        f" from {number(begin * control_dt)} to {number((begin + window) * control_dt)} s); held"
        f" for {'all ' + str(longest) + ' steps' if summed else 'a whole episode'} it would be"
        f" {number(whole)}."
    ]
    for name, trace in traces.items():
        lost = losses(trace, highest, lowest, longest, description.fitness_reduction)
        gained = number(whole - (lost.late + lost.early_end + lost.low_rate))
        words = _words(lost, trace, description, (jumps or {}).get(name, ()))
        lines.append(f"- {name} episode, {gained}: {words}")
    return "\n".join(lines)


def _single_payments(traces: Mapping[str, Trace], control_dt: float) -> str:
    """Moments at which the fitness is paid, if half of an episode's or more comes in one step; else
    empty."""
    if not any(0 < trace.max() >= SINGLE * trace.clip(min=0).sum() for trace in traces.values()):
        return ""
    told = (
        f"{name} episode "
        + (
            f"{number(trace.max())} at {number((trace.argmax() + 1) * control_dt)} s"
            if trace.max() > 0
            else "nothing"
        )
        for name, trace in traces.items()
    )
    return f"Fitness is paid in single steps, so that no rate is lost: {'; '.join(told)}."


def _parts_text(trace: Trace, jumps: Sequence[int]) -> str:
    """Mean fitness by quarters of the parts between jumps, if there are such parts; else empty."""
    parts = parts_between(jumps, len(trace))
    if len(parts) < 2:
        return ""
    *first, last = map(number, quarter_means(trace, parts))
    return (
        f"in the {len(parts)} parts between its jumps the mean fitness a step is"
        f" {', '.join(first)} and {last} from the first to the last quarter of a part"
    )


def _rate(highest: float, description: TaskDescription) -> str:
    if description.fitness_reduction == "mean":
        return f"{number(highest)} a step"
    return f"{number(highest)} a step, or {number(highest / description.control_dt)} a second"


def _words(lost: Losses, trace: Trace, description: TaskDescription, jumps: Sequence[int]) -> str:
    between = _parts_text(trace, jumps)  # what begins anew has no one arrival
    before, after = ([between], []) if between else _around_arrival(lost, description.control_dt)
    early = []
    if len(trace) < description.max_episode_length and description.fitness_reduction == "sum":
        end = number(len(trace) * description.control_dt)
        early.append(f"{number(lost.early_end)} by ending at {end} s")
    return "; ".join((*before, *early, *after))


def _around_arrival(lost: Losses, control_dt: float) -> tuple[list[str], list[str]]:
    """Losses before an episode comes near the highest rate, and after it."""
    near = f"{ARRIVAL:.0%} of that rate"
    if lost.arrival is None:
        return [f"{number(lost.late)} by never coming to {near}"], []
    at = f"{number(lost.arrival * control_dt)} s"
    before = [f"{number(lost.late)} before it comes to {near}, at {at}"] if lost.arrival else []
    after = f"{number(lost.low_rate)} by a lower rate after that"
    if lost.low_rate < 0:
        gained = number(-lost.low_rate)
        after = f"{gained} gained by a higher rate after that, which is not held or ends in the"
        after += " failure"
    return before, [after]


RECORDED = ("worst", "best")


def read_trajectories(
    path: Path, variables: Collection[str] | None = None
) -> dict[str, dict[str, npt.NDArray[np.generic]]]:
    """Read episodes by name ("worst", "best"): arrays of shape (steps, …). Nothing is unpickled.
    Raises RunFolderError for a file that is not an npz of `<episode>/<variable>`."""
    try:
        check_arrays(path)
        with os.fdopen(open_plain(path), "rb") as file:
            return read_episodes(file, variables)
    except (OSError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        raise RunFolderError(
            f"cannot read the trajectories {str(path)!r}: {error}",
            "train or evaluate the attempt again",
        ) from None


def episodes_text(
    episodes: Mapping[str, Episode],
    evaluation: Evaluation | None,
    description: TaskDescription,
    reads: Collection[str] = (),
) -> tuple[str, str]:
    """Losses of fitness of both episodes; then end and table of each, worst first. `reads`:
    variables that the reward reads."""
    shown = {name: episodes[name] for name in RECORDED if name in episodes}
    traces = {
        name: episode["fitness"].astype(np.float64)
        for name, episode in shown.items()
        if "fitness" in episode
        and episode["fitness"].ndim == 1
        and episode["fitness"].dtype.kind == "f"
    }
    tables, left_out = trajectory_tables(shown, description, reads)
    if tables.get("worst") == tables.get("best"):
        tables["best"] = "as the worst one"
    failures = [name for name, episode in shown.items() if failed(episode)]
    public = description.public_variables()
    jumps = {name: [each.step for each in events_of(it, public)] for name, it in shown.items()}
    parts = [
        LEGEND if shown else "",
        *(
            f"{name.capitalize()}"
            f" episode{_ending(name, shown[name], evaluation, description)}:\n{tables[name]}"
            for name in shown
        ),
        f"In both episodes {left_out}" if left_out else "",
    ]
    shown_tables = "\n\n".join(part for part in parts if part)
    return losses_text(traces, description, failures, jumps), shown_tables


def _ending(
    name: str, episode: Episode, evaluation: Evaluation | None, description: TaskDescription
) -> str:
    if evaluation is None or not evaluation.episodes:
        if "terminated" not in episode:
            return ""
        end = "a failure" if failed(episode) else "a success" if succeeded(episode) else "its time"
        return f" (ended by {end} after {length_of(episode)} steps)"
    pick = min if name == "worst" else max
    summary: EpisodeSummary = pick(evaluation.episodes, key=lambda episode: episode.fitness)
    good = ", a success," if summary.ended_by in description.success_causes else ""
    return (
        f" (fitness {number(summary.fitness)}, ended by {summary.ended_by}{good} after"
        f" {summary.length} steps)"
    )
