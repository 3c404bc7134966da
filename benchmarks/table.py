"""The figures of the training engine, and of searches beside slow models, against their targets:
one table, read from `results/`.

A ratio is how far a figure is beyond its target: 1 meets it, 2 is twice as good. A figure that this
run did not measure shows the day on which it was measured; one that was never measured says so.
"""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parent / "results"
NOT_MEASURED = "not measured"
COLUMNS = 100
"""Widest line."""

OF_RAW = {"hopper/run": 0.60, "ant/run": 0.70}
TIMES_AS_MANY_CANDIDATES = {"hopper/run": 10.0, "ant/run": 6.0}
RIVALS = {
    "one_by_one": "16 runs of one member",
    "rsl_rl": "16 runs of rsl-rl",
    "stable_baselines3": "16 runs of stable-baselines3",
}
MOST_OUTSIDE = 0.05
OUTSIDE = ("environment", "policy", "reward", "rest", "saved states")
"""Parts of a training's time that are neither physics nor learning."""
TWO_CORES = 1.7
GPU = 10.0
MEMORY_GB = 1.5
IDLE = 0.05
DRIVER_MB = 300.0
BUILD_S = 60.0
DRY_RUN_MS = 50.0
IN_DOCKER = 1.03
IDLE_WORKER_MB = 400.0


@dataclass(frozen=True)
class Row:
    """A line of the table."""

    figure: str
    target: str
    value: str = NOT_MEASURED
    ratio: float | None = None
    """1 or more: the target is met."""
    met: bool | None = None
    note: str = ""
    measured: str = ""
    """Date of the measurement."""


def result(name: str, since: float) -> tuple[dict[str, Any], str]:
    """The stored figures of a benchmark and when they are from; nothing where there are none.
    `since`: when this run began (Unix time)."""
    path = RESULTS / f"{name}.json"
    try:
        found = json.loads(path.read_text())
    except FileNotFoundError:
        return {}, ""
    return found, "this run" if path.stat().st_mtime >= since else str(found.get("date", "before"))


def at_least(figure: str, target: float, value: float | None, shown: str, **more: Any) -> Row:
    """A figure that is to be no smaller than its target; `shown` formats both."""
    if value is None:
        return Row(figure, f"≥ {shown.format(target)}")
    return Row(
        figure,
        f"≥ {shown.format(target)}",
        shown.format(value),
        value / target,
        value >= target,
        **more,
    )


def at_most(figure: str, target: float, value: float | None, shown: str, **more: Any) -> Row:
    """A figure that is to be no larger than its target."""
    if value is None:
        return Row(figure, f"≤ {shown.format(target)}")
    ratio = target / value if value > 0.0 else None
    return Row(
        figure, f"≤ {shown.format(target)}", shown.format(value), ratio, value <= target, **more
    )


def rows(since: float = math.inf) -> list[Row]:
    """All lines, in the order of the targets."""
    return [
        *_speed(since),
        *_population(since),
        *_candidates(since),
        *_two_cores(since),
        *_gpu(since),
        *_memory(since),
        *_beside_models(since),
        *_walls(since),
    ]


def _speed(since: float) -> Iterator[Row]:
    found, when = result("training_speed", since)
    for task, target in OF_RAW.items():
        lines = found.get("tasks", {}).get(task, [])
        lines = (
            lines if isinstance(lines, list) else []
        )  # of a benchmark of this name that measured otherwise
        by_size: dict[int, list[dict[str, Any]]] = {}
        for line in lines:
            by_size.setdefault(line["num_envs"], []).append(line)
        own = found.get("num_envs", {}).get(task)
        mine = by_size.pop(own, [])
        if not mine:
            yield at_least(f"{task}, K=16: env steps/s, of raw physics", target, None, "{:.1%}")
            yield at_most(
                f"{task}, K=16: time outside physics and learning", MOST_OUTSIDE, None, "{:.1%}"
            )
            continue
        figure = f"{task}, K=16, N={own} (the task's)"
        slowest = min(mine, key=lambda line: line["of_raw"])
        note = (
            f"lowest phase, after {slowest['iteration']} iterations; after {mine[-1]['iteration']}:"
            f" {mine[-1]['of_raw']:.1%}"
        )
        for num_envs, others in sorted(by_size.items()):
            note += f"; N={num_envs}: {min(line['of_raw'] for line in others):.1%}"
        yield at_least(
            f"{figure}: env steps/s, of raw physics",
            target,
            slowest["of_raw"],
            "{:.1%}",
            note=note,
            measured=when,
        )
        highest = max(mine, key=lambda line: line["outside"])
        parts = {name: highest["shares"][name] for name in OUTSIDE}
        note = "highest phase: " + ", ".join(f"{name} {share:.1%}" for name, share in parts.items())
        note += f"; all but the environment {sum(parts.values()) - parts['environment']:.1%}"
        for num_envs, others in sorted(by_size.items()):
            note += f"; N={num_envs}: {max(line['outside'] for line in others):.1%}"
        yield at_most(
            f"{figure}: time outside physics and learning",
            MOST_OUTSIDE,
            highest["outside"],
            "{:.1%}",
            note=note,
            measured=when,
        )


def _population(since: float) -> Iterator[Row]:
    """Gain of 16 members in one process; there is no target."""
    found, when = result("population_gain", since)
    for task in found.get("tasks", {}) or ("cartpole", "hopper", "ant"):
        figures = found.get("tasks", {}).get(task, {})
        for key, rival in RIVALS.items():
            known = figures.get(f"{key}_ratio")
            figure = f"{task}: 16 trainings at once, against {rival}"
            yield (
                Row(figure, "")
                if known is None
                else Row(figure, "", f"{known:.1f} x", measured=when)
            )


def _candidates(since: float) -> Iterator[Row]:
    found, when = result("candidates_per_hour", since)
    for task, target in TIMES_AS_MANY_CANDIDATES.items():
        arms = found.get("tasks", {}).get(task)
        figure = f"{task}: candidates an hour, 2 cores, against Gymnasium + SB3"
        if arms is None:
            yield at_least(figure, target, None, "{:.1f} x")
            continue
        theirs, same = arms["gymnasium"], arms["same_physics"]
        note = (
            f"at the task's budget; as measured at {arms['env_steps']:,} steps with start-up"
            f" {theirs['ratio']:.1f} x; on the same physics {same['ratio_at_budget']:.1f} x"
        )
        yield at_least(
            figure, target, theirs["ratio_at_budget"], "{:.1f} x", note=note, measured=when
        )


def _two_cores(since: float) -> Iterator[Row]:
    found, when = result("two_cores", since)
    note = ""
    if found:
        note = (
            f"{found['ratio_without_startup']:.2f} x without start-up; raw physics alone"
            f" {found['ceiling']:.2f} x"
        )
    figure = f"{found.get('task', 'hopper/run')}: training pool, two cores against one"
    yield at_least(figure, TWO_CORES, found.get("ratio"), "{:.2f} x", note=note, measured=when)


def _gpu(since: float) -> Iterator[Row]:
    found, when = result("gpu_population", since)
    tasks = found.get("tasks", {})
    if not tasks:
        yield at_least(
            "GPU, torch environments: K=16 against 16 runs of K=1", GPU, None, "{:.1f} x"
        )
    for task, figures in tasks.items():
        figure = f"{task} on a GPU: K=16 against 16 runs of K=1"
        yield at_least(
            figure, GPU, figures["ratio"], "{:.1f} x", note=found.get("device", ""), measured=when
        )


def _memory(since: float) -> Iterator[Row]:
    found, when = result("worker_memory", since)
    note = ""
    if found and not found["starts_within_limit"]:
        note = "measured without the worker's limit of memory, within which it does not start"
    peak = found["peak_bytes"] / 1e9 if found else None
    figure = "ant/run, K=16, N=64: peak memory of a worker"
    yield at_most(figure, MEMORY_GB, peak, "{:.2f} GB", note=note, measured=when)


def _beside_models(since: float) -> Iterator[Row]:
    for name, whom in (
        ("model_latency", "designer and reviewer"),
        ("model_latency_analyst", "with an analyst too"),
    ):
        found, when = result(name, since)
        figure = f"slots idle beside models that take 20 s, {whom}"
        if not found:
            yield at_most(figure, IDLE, None, "{:.1%}")
            continue
        each = ", ".join(f"{share:.1%}" for share in found["idle_share_of_each_worker"])
        note = (
            f"workers {each}; trainings of {found['median_training_s']:.0f} s,"
            f" {found['watched_s']:.0f} s watched"
        )
        yield at_most(figure, IDLE, found["idle_share"], "{:.1%}", note=note, measured=when)
    found, when = result("model_latency", since)
    peak = found.get("driver_peak_mb")
    yield at_most(
        "peak memory of the driver", DRIVER_MB, peak, "{:.0f} MB", measured=when if found else ""
    )


def _walls(since: float) -> Iterator[Row]:
    found, when = result("sandbox", since)
    ratios = found.get("training_ratios", [])
    spread = f"{len(ratios)} pairs, {min(ratios):.3f} to {max(ratios):.3f}" if ratios else ""

    def scaled(name: str, factor: float) -> float | None:
        value = found.get(name)
        return None if value is None else factor * float(value)

    yield at_most(
        "Docker: first use, image included",
        BUILD_S,
        scaled("build_s", 1.0),
        "{:.0f} s",
        measured=when,
    )
    yield at_most(
        "Docker: a dry run in a warm worker",
        DRY_RUN_MS,
        scaled("dry_run_s", 1e3),
        "{:.0f} ms",
        measured=when,
    )
    share = scaled("training_ratio", 1.0)
    yield at_most(
        "Docker: a training, of its time in a process",
        IN_DOCKER,
        share,
        "{:.3f}",
        note=spread,
        measured=when,
    )
    yield at_most(
        "Docker: an idle worker",
        IDLE_WORKER_MB,
        scaled("idle_bytes", 1e-6),
        "{:.0f} MB",
        measured=when,
    )


def render(lines: Sequence[Row]) -> str:
    """The table as text."""
    words = {True: "met", False: "missed", None: ""}
    cells = [
        [
            row.figure,
            row.target,
            row.value,
            "" if row.ratio is None else f"{row.ratio:.2f}",
            words[row.met],
            row.measured,
        ]
        for row in lines
    ]
    header = ["figure", "target", "measured", "ratio", "", "when"]
    widths = [max(len(each[column]) for each in (header, *cells)) for column in range(len(header))]
    widths[0] = min(widths[0], COLUMNS - sum(widths[1:]) - 2 * (len(widths) - 1))

    def padded(line: Sequence[str]) -> list[str]:
        first, *more = textwrap.wrap(line[0], widths[0], subsequent_indent="  ")
        cells = zip((first, *line[1:]), widths, strict=True)
        return ["  ".join(cell.ljust(width) for cell, width in cells).rstrip(), *more]

    text = [*padded(header), *padded(["─" * width for width in widths])]
    for row, line in zip(lines, cells, strict=True):
        text += padded(line)
        text += textwrap.wrap(row.note, COLUMNS, initial_indent="    ", subsequent_indent="    ")
    text.append("ratio: how far a figure is beyond its target; 1 meets it, 2 is twice as good")
    return "\n".join(text)
