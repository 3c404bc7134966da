"""Env steps to a reward as good as best-of-N's, and fitness at equal env steps: whole searches of
several arms on tasks whose reward matters, three seeds each.

    python benchmarks/search_efficiency.py [TASK …] [--arms ARM …] [--seeds N …] [--again]

Best-of-N draws fresh rewards alone, and is what each arm is compared with. After 8, 12, 16 and 24
candidates the three best so far, as the search ranks them, are trained again from scratch, from
seven fresh seeds that all arms and searches share. By two of these and its score in the search the
winner is chosen, as by a search's final trainings; the other five say what it is worth (the mean
over all choices of the two). These trainings are the same for all arms, and are not counted. An
arm's curve on a task is the mean worth of its searches' winners over the env steps that they had
used, on straight lines between these. Printed are the env steps from which on it has what best-of-N
has at its end, as a part of those that best-of-N used there (2 where it never has), and the
difference of fitness there. Intervals are bootstrapped over searches, within tasks (stratified, as
Agarwal et al. 2021 recommend).

Searches run as `eureka search` runs them; trainings of winners run as in `reward_table.py`. What
was searched and trained is kept in `results/search_efficiency.json`, and not made again.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from _results import RESULTS, write_result
from _searches import Watch, search
from reward_table import table

from eureka_agent.archive.run_folder import Run
from eureka_agent.journal.entries import IterationEnded
from eureka_agent.ranking import ranked

NAME = "search_efficiency"
BASELINE = "best-of-n"
LARGE = {"iterations": 3, "samples": 8, "drafts": 1}
SMALL = {"iterations": 6, "samples": 4, "drafts": 32}
ARMS: dict[str, dict[str, Any]] = {
    BASELINE: {"strategy": "best-of-n", **LARGE},
    "greedy": {"strategy": "greedy", **LARGE},
    "best-of-n, drafts": {"strategy": "best-of-n", **SMALL},
    "greedy, drafts": {"strategy": "greedy", **SMALL},
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
    *("craft/keep_off_lava", "craft/hunt_cow", "hopper/back_flip", "metaworld/door_unlock"),
)
SEEDS = (1, 2, 3)
EVALUATED = 8, 12, 16, 24
"""Candidates after which a search's winner is valued."""
FINALISTS, CHOOSING = 3, 2
RETRAINING_SEEDS = range(1001, 1008)
RESAMPLES = 2000


def key(source: str) -> str:
    """Name of a reward among the retrained ones."""
    return hashlib.sha256(source.encode()).hexdigest()[:16]


def read(run: Run, watch: Watch) -> list[dict[str, Any]]:
    """Env steps used, the best attempts so far with their fitness, best first, and of all attempts
    the operator, the fitness and the improvement that was expected."""
    attempts = run.archive.attempts()
    found = []
    for _, event in watch.events:
        if not isinstance(event, IterationEnded) or event.best is None:
            continue
        made = [each for each in attempts if each.iteration <= event.iteration]
        if (event.iteration + 1) * run.settings.samples in EVALUATED:
            best = ranked(made)[:FINALISTS]
            outcomes = [each.outcome for each in made]
            found.append(
                {
                    "env_steps": sum(each.env_steps for each in outcomes if each is not None),
                    "finalists": [[each.proposal.reward.source, each.fitness] for each in best],
                    "made": [
                        [
                            each.proposal.operator.value,
                            each.fitness,
                            max((gain for gain in each.proposal.drafts if gain), default=None),
                        ]
                        for each in made
                    ],
                }
            )
    return found


def worth(point: Mapping[str, Any], retrained: Mapping[str, Sequence[float]]) -> float:
    """Mean fitness of the winner of these finalists, over the seeds that did not choose it."""
    values = np.array([retrained[key(source)] for source, _ in point["finalists"]])
    believed = np.array([fitness for _, fitness in point["finalists"]])
    found = []
    for choosing in itertools.combinations(range(values.shape[1]), CHOOSING):
        winner = (believed + values[:, choosing].sum(axis=1)).argmax()
        found.append(np.delete(values[winner], choosing).mean())
    return float(np.mean(found))


def curve(
    searches: Sequence[Sequence[Mapping[str, Any]]],
    grid: np.ndarray,
) -> np.ndarray:
    """Mean worth of the winner at each of these env steps, on straight lines between the points:
    with stairs a refused candidate, which costs nothing, would end the comparison before the
    others' last generation counts."""
    rows = []
    for points in searches:
        steps = [point["env_steps"] for point in points]
        rows.append(np.interp(grid, steps, [point["worth"] for point in points]))
    return np.mean(rows, axis=0)


def efficiency(
    ours: Sequence[Sequence[Mapping[str, Any]]],
    theirs: Sequence[Sequence[Mapping[str, Any]]],
) -> tuple[float, float]:
    """Env steps from which on an arm has what the other has at its end, as a part of those used
    there (2 where it never has), and its lead at equal env steps."""
    end = min(points[-1]["env_steps"] for points in [*ours, *theirs])
    goal = curve(theirs, np.array([end]))[0]
    begin = max(points[0]["env_steps"] for points in ours)
    steps = sorted({point["env_steps"] for points in ours for point in points})
    grid = np.array([each for each in steps if begin <= each <= end])
    # not where it is reached first: the more looks, the more luck
    below = np.flatnonzero(curve(ours, grid) < goal)
    first = 0 if not len(below) else below[-1] + 1
    share = float(grid[first] / end) if first < len(grid) else 2.0
    return share, float(curve(ours, np.array([end]))[0] - goal)


def bootstrapped(ours: Sequence[Any], theirs: Sequence[Any]) -> np.ndarray:
    """Resampled `efficiency`. Shape: (RESAMPLES, 2)."""
    random = np.random.default_rng(0)

    def drawn(searches: Sequence[Any]) -> list[Any]:
        return [searches[place] for place in random.integers(len(searches), size=len(searches))]

    return np.array([efficiency(drawn(ours), drawn(theirs)) for _ in range(RESAMPLES)])


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
            if sources_of([*ours, *theirs]).keys() - known["retrained"].keys():
                continue  # searched, and not trained again yet
            ours, theirs = (valued(each, known["retrained"]) for each in (ours, theirs))
            share, lead = efficiency(ours, theirs)
            drawn = bootstrapped(ours, theirs)
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


def sources_of(searches: Iterable[Sequence[Mapping[str, Any]]]) -> dict[str, str]:
    """Sources of all finalists by their key."""
    points = itertools.chain.from_iterable(searches)
    return {key(source): source for point in points for source, _ in point["finalists"]}


def valued(
    searches: Sequence[Sequence[Mapping[str, Any]]], retrained: Mapping[str, Sequence[float]]
) -> list[list[dict[str, Any]]]:
    """The searches' points with what their winners are worth."""
    return [[{**point, "worth": worth(point, retrained)} for point in each] for each in searches]


def retrain(task: str, known: dict[str, Any], processes: int) -> None:
    """Train the finalists that were not trained yet."""
    sources = sources_of(
        points for seeds in known["searches"].values() for points in seeds.values()
    )
    missing = {name: each for name, each in sources.items() if name not in known["retrained"]}
    if not missing:
        return
    trained = table(task, missing, RETRAINING_SEEDS, processes, None, baselines=False)
    for name in missing:
        values = [each["fitness"] for each in trained["trainings"] if each["reward"] == name]
        lowest = min(value for value in values if value is not None)
        known["retrained"][name] = [lowest if value is None else value for value in values]


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
