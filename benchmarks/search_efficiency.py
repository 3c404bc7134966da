"""Env steps to a reward as good as best-of-N's, and fitness at equal env steps: whole searches of
several arms on tasks whose reward matters, three seeds each.

    python benchmarks/search_efficiency.py [TASK …] [--arms ARM …] [--seeds N …] [--again]

Best-of-N draws fresh rewards alone, and is what each arm is compared with. After every generation
the best attempt so far, as the search ranks it, is trained again from scratch, from fresh seeds
that all arms and searches share; these trainings are not counted. An arm's curve on a task is the
mean of its searches' retrained fitness over the env steps that they had used. Printed are the env
steps from which on it has what best-of-N has at its end, as a part of those that best-of-N used
there (2 where it never has), and the difference of fitness there. Intervals are bootstrapped over
searches, within tasks (stratified, as Agarwal et al. 2021 recommend).

Searches run as `eureka search` runs them; trainings of winners run as in `reward_table.py`. What
was searched and trained is kept in `results/search_efficiency.json`, and not made again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from _results import RESULTS, write_result
from _searches import Watch, search
from reward_table import table

from eureka_agent.archive.run_folder import Run
from eureka_agent.journal.entries import IterationEnded

NAME = "search_efficiency"
BASELINE = "best-of-n"
SMALL = {"iterations": 6, "samples": 4}
DRAFTS = {"drafts": 8}
ARMS: dict[str, dict[str, Any]] = {
    BASELINE: {"strategy": "best-of-n", "iterations": 3, "samples": 8},
    "greedy": {"strategy": "greedy", "iterations": 3, "samples": 8},
    "best-of-n, drafts": {"strategy": "best-of-n", **SMALL, **DRAFTS},
    "greedy, drafts": {"strategy": "greedy", **SMALL, **DRAFTS},
}
"""Settings by arm. All train 24 candidates."""
COMMON = {
    "confirm": 0,
    "finalists": 0,
    "baselines": False,
    "video": False,
    "schedule": "generations",
}
TASKS = (
    *("quadcopter/hover", "quadcopter/approach", "cartpole/swingup", "ball_balance/roll_to"),
    *("craft/keep_off_lava", "hopper/back_flip", "metaworld/button_press", "quadruped/follow"),
)
SEEDS = (1, 2, 3)
RETRAINING_SEEDS = range(1001, 1006)
RESAMPLES = 2000


def key(source: str) -> str:
    """Name of a reward among the retrained ones."""
    return hashlib.sha256(source.encode()).hexdigest()[:16]


def read(run: Run, watch: Watch) -> list[dict[str, Any]]:
    """Env steps used, and the best attempt so far, after every generation."""
    attempts = run.archive.attempts()
    found = []
    for _, event in watch.events:
        if not isinstance(event, IterationEnded) or event.best is None:
            continue
        made = [each.outcome for each in attempts if each.iteration <= event.iteration]
        made += [
            repeat.outcome
            for each in attempts
            for repeat in each.repeats
            if repeat.iteration <= event.iteration
        ]
        best = run.archive.state.by_id[event.best]
        found.append(
            {
                "env_steps": sum(each.env_steps for each in made if each is not None),
                "source": best.proposal.reward.source,
                "believed": best.fitness,
            }
        )
    return found


def curve(
    searches: Sequence[Sequence[Mapping[str, Any]]],
    retrained: Mapping[str, float],
    grid: np.ndarray,
) -> np.ndarray:
    """Mean retrained fitness of the best attempt at each of these env steps, none before the first
    generation's end."""
    rows = []
    for points in searches:
        steps = np.array([point["env_steps"] for point in points])
        values = np.array([retrained[key(point["source"])] for point in points])
        places = np.searchsorted(steps, grid, side="right") - 1
        rows.append(values[places.clip(min=0)])
    return np.mean(rows, axis=0)


def efficiency(
    ours: Sequence[Sequence[Mapping[str, Any]]],
    theirs: Sequence[Sequence[Mapping[str, Any]]],
    retrained: Mapping[str, float],
) -> tuple[float, float]:
    """Env steps from which on an arm has what the other has at its end, as a part of those used
    there (2 where it never has), and its lead at equal env steps."""
    end = min(points[-1]["env_steps"] for points in [*ours, *theirs])
    goal = curve(theirs, retrained, np.array([end]))[0]
    begin = max(points[0]["env_steps"] for points in ours)
    steps = sorted({point["env_steps"] for points in ours for point in points})
    grid = np.array([each for each in steps if begin <= each <= end])
    # not where it is reached first: the more looks, the more luck
    below = np.flatnonzero(curve(ours, retrained, grid) < goal)
    first = 0 if not len(below) else below[-1] + 1
    share = float(grid[first] / end) if first < len(grid) else 2.0
    return share, float(curve(ours, retrained, np.array([end]))[0] - goal)


def bootstrapped(
    ours: Sequence[Any], theirs: Sequence[Any], retrained: Mapping[str, float]
) -> np.ndarray:
    """Resampled `efficiency`. Shape: (RESAMPLES, 2)."""
    random = np.random.default_rng(0)

    def drawn(searches: Sequence[Any]) -> list[Any]:
        return [searches[place] for place in random.integers(len(searches), size=len(searches))]

    return np.array([efficiency(drawn(ours), drawn(theirs), retrained) for _ in range(RESAMPLES)])


def summarize(tasks: Mapping[str, Any]) -> dict[str, Any]:
    """Figures of every arm: by task, and the median of the tasks' shares with its 90 % interval."""
    figures: dict[str, Any] = {}
    for arm in ARMS:
        by_task, samples = {}, []
        for task, known in tasks.items():
            theirs = list(known["searches"].get(BASELINE, {}).values())
            ours = list(known["searches"].get(arm, {}).values())
            if arm == BASELINE or not ours or not theirs:
                continue
            if any(
                key(point["source"]) not in known["retrained"]
                for points in [*ours, *theirs]
                for point in points
            ):
                continue  # searched, and not trained again yet
            share, lead = efficiency(ours, theirs, known["retrained"])
            drawn = bootstrapped(ours, theirs, known["retrained"])
            samples.append(drawn[:, 0])
            low, high = np.quantile(drawn[:, 1], [0.05, 0.95])
            by_task[task] = {"share": share, "lead": lead, "low": low, "high": high}
        if by_task:
            medians = np.median(samples, axis=0)
            figures[arm] = {
                "tasks": by_task,
                "share": float(np.median([each["share"] for each in by_task.values()])),
                "share_low": float(np.quantile(medians, 0.05)),
                "share_high": float(np.quantile(medians, 0.95)),
            }
    return figures


def show(figures: Mapping[str, Any]) -> None:
    """Print every arm."""
    for arm, found in figures.items():
        print(
            f"\n{arm}: {found['share']:.2f} of best-of-N's env steps"
            f" ({found['share_low']:.2f} to {found['share_high']:.2f})"
        )
        for task, each in found["tasks"].items():
            print(
                f"  {task:26} share {each['share']:.2f}, at equal env steps {each['lead']:+.3g}"
                f" ({each['low']:+.3g} to {each['high']:+.3g})",
                flush=True,
            )


def retrain(task: str, known: dict[str, Any], processes: int) -> None:
    """Train the best attempts that were not trained yet."""
    sources = {
        key(point["source"]): point["source"]
        for seeds in known["searches"].values()
        for points in seeds.values()
        for point in points
    }
    missing = {name: each for name, each in sources.items() if name not in known["retrained"]}
    if not missing:
        return
    trained = table(task, missing, RETRAINING_SEEDS, processes, None, baselines=False)
    for name in missing:
        values = [each["fitness"] for each in trained["trainings"] if each["reward"] == name]
        lowest = min(value for value in values if value is not None)
        known["retrained"][name] = float(
            np.mean([lowest if value is None else value for value in values])
        )


def main() -> dict[str, Any]:
    """Search, train, print, store."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tasks", nargs="*", default=list(TASKS), metavar="TASK")
    parser.add_argument("--arms", nargs="+", default=list(ARMS), choices=list(ARMS), metavar="ARM")
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS), metavar="N")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--again", action="store_true", help="forget what is stored")
    arguments = parser.parse_args()
    path = RESULTS / f"{NAME}.json"
    stored = path.is_file() and not arguments.again
    tasks: dict[str, Any] = json.loads(path.read_text())["tasks"] if stored else {}
    figures: dict[str, Any] = {}
    for task in arguments.tasks:
        environment, _, name = task.partition("/")
        known = tasks.setdefault(task, {"searches": {}, "retrained": {}})
        for arm in dict.fromkeys([BASELINE, *arguments.arms]):
            mine = known["searches"].setdefault(arm, {})
            for seed in arguments.seeds:
                if str(seed) not in mine:
                    values = {**COMMON, **ARMS[arm], "env": environment, "task": name, "seed": seed}
                    mine[str(seed)] = search(values, read)
                    write_result(NAME, {"figures": figures, "tasks": tasks})
        retrain(task, known, arguments.processes)
        figures = summarize(tasks)
        write_result(NAME, {"figures": figures, "tasks": tasks})
        show(figures)
    return figures


if __name__ == "__main__":
    main()
