"""Strategies at the same budget: the reward that each finds, trained again from fresh seeds. Real
searches, same tasks, same seeds.

    python benchmarks/strategies.py [TASK …] [--quick] [--seeds N …] [--arms ARM …]
    [--iterations N] [--samples N] [--final-seeds N]
                                    [--env-steps N] [--as-usual] [--again] [--model MODEL …]
                                    [--base-url URL]

An arm is a strategy. All arms make as many candidates, and repeats are off, so they have the same
env steps. `--as-usual` leaves repeats on, as `eureka search` has them; what each arm used is then
its own affair, and printed. After every search its best attempt is trained again from fresh
seeds, the same for all: what is compared is the mean of these, not the fitness by which it was
chosen, which flatters the arm that chose from the more lucky ones. These trainings are not part of
the budget.

Printed are, for each task and arm, the median over seeds with the lowest and the highest, what the
search itself believed (mean), and for each two arms the mean difference with its 95 % interval
(Student's t, paired by seed; zero within it: equal within noise) and who was ahead how often.

Every search is written to results/strategies.json at once, beside those that are there from the
same settings, and is not made again unless `--again` says so: so this can be run in parts. The
default is over two hours on two cores. Two to ten seeds; 1 to 5 unless others are given.

`--model` takes what `eureka search` takes, and asks an LLM: keys come from the environment, tokens
are counted. `--model replay:RUN` plays a run's replies back, which answers the arm, the seed and
the settings that it was recorded with, and no others. Replies of an LLM differ from call to call,
so seeds are then repetitions.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from _common import subject
from _intervals import interval
from _results import RESULTS, commit, write_result
from _searches import Watch, search

from eureka_agent.archive.run_folder import Run
from eureka_agent.journal.entries import FinalStarted
from eureka_agent.records import Stage
from eureka_agent.search.strategies import STRATEGIES, last_revisions
from eureka_agent.search.summary import best_attempt, run_report

NAME = "strategies"
TASKS = ("cartpole/swingup", "hopper/run")
ARMS = ("best-of-n", "greedy", "islands")
PLAIN = {"confirm": 0, "schedule": "generations"}
"""Settings under which all arms use the same env steps."""
QUICK = {"iterations": 2, "samples": 4, "env_steps": 2_048, "final_seeds": 2}


def read(run: Run, watch: Watch) -> dict[str, Any]:
    """One search in figures."""
    seconds = next(
        (seconds for seconds, event in watch.events if isinstance(event, FinalStarted)),
        watch.seconds(),
    )
    report, best = run_report(run), best_attempt(run)
    attempts = last_revisions(report.attempts)
    outcomes = [attempt.outcome for attempt in attempts]
    outcomes += [repeat.outcome for attempt in attempts for repeat in attempt.repeats]
    scores = [score for score in report.scores if best is not None and score.name == best.id]
    return {
        "fitness": scores[0].mean if scores else None,
        "per_seed": scores[0].fitness if scores else (),
        "believed": None if best is None else best.fitness,
        "best": None if best is None else {"id": best.id, "operator": best.proposal.operator.value},
        "candidates": len(attempts),
        "trained": sum(attempt.stage is Stage.TRAINED for attempt in attempts),
        "env_steps": sum(outcome.env_steps for outcome in outcomes if outcome is not None),
        "tokens": report.cost.prompt_tokens + report.cost.completion_tokens,
        "dollars": None if report.cost.money is None else str(report.cost.money),
        "seconds": seconds,
    }


def summarize(searches: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """A task's searches, by arm and seed, in figures. Seeds that an arm has no fitness for are left
    out of its figures."""
    fitness = {
        arm: {seed: each["fitness"] for seed, each in seeds.items() if each["fitness"] is not None}
        for arm, seeds in searches.items()
    }
    arms = {
        arm: {
            "median": statistics.median(values.values()),
            "lowest": min(values.values()),
            "highest": max(values.values()),
            "believed": statistics.fmean(searches[arm][seed]["believed"] for seed in values),
            "env_steps": statistics.fmean(searches[arm][seed]["env_steps"] for seed in values),
            "seeds": len(values),
        }
        for arm, values in fitness.items()
        if values
    }
    pairs = {}
    for first, second in itertools.combinations(arms, 2):
        differences = [
            fitness[second][seed] - value
            for seed, value in fitness[first].items()
            if seed in fitness[second]
        ]
        if not differences:
            continue
        pair: dict[str, Any] = {
            "difference": statistics.fmean(differences),
            "seeds": len(differences),
        }
        pair["ahead"] = sum(difference > 0 for difference in differences)
        pair["median_difference"] = statistics.median(differences)
        if len(differences) > 1:
            pair["half_width"] = interval(differences)[1]
        pairs[f"{second} - {first}"] = pair
    return {"arms": arms, "pairs": pairs}


def show(task: str, searches: dict[str, dict[str, Any]], figures: dict[str, Any]) -> None:
    """Print a task."""
    print(f"\n{task}: fitness of each search's best, trained again")
    print(
        f"  {'arm':18} {'median':>8} {'lowest':>8} {'highest':>8} {'believed':>9}"
        f" {'M env steps':>12}  per seed"
    )
    for arm, found in figures["arms"].items():
        each = " ".join(
            f"{seed}: {'none' if one['fitness'] is None else format(one['fitness'], '.4g')}"
            for seed, one in searches[arm].items()
        )
        print(
            f"  {arm:18} {found['median']:8.4g} {found['lowest']:8.4g} {found['highest']:8.4g}"
            f" {found['believed']:9.4g} {found['env_steps'] / 1e6:12.3g}  {each}"
        )
    for name, pair in figures["pairs"].items():
        half = pair.get("half_width")
        noise = "one seed says nothing of noise" if half is None else f"± {half:.3g}"
        print(
            f"  {name:32} {pair['difference']:+8.3g} ({noise}; median"
            f" {pair['median_difference']:+.3g}), ahead in {pair['ahead']} of {pair['seeds']}"
        )
    print(end="", flush=True)


def stored(settings: dict[str, Any]) -> dict[str, Any]:
    """Searches of earlier runs with the same settings, by task, arm and seed."""
    path = RESULTS / f"{NAME}.json"
    if not path.is_file():
        return {}
    record = json.loads(path.read_text())
    return dict(record["searches"]) if record.get("settings") == settings else {}


def model_name(given: str) -> str:
    """A model's name for the settings. A replayed run's folder becomes absolute, since each search
    here has its own runs folder."""
    folder = Path(given.removeprefix("replay:"))
    return (
        f"replay:{folder.resolve()}" if given.startswith("replay:") and folder.is_dir() else given
    )


def parsed() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    known = list(STRATEGIES)
    parser.add_argument("tasks", nargs="*", default=list(TASKS), metavar="TASK")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5], metavar="N")
    parser.add_argument(
        "--arms", nargs="+", default=list(ARMS), choices=known, metavar="ARM", help=", ".join(known)
    )
    parser.add_argument("--iterations", type=int, default=5, metavar="N")
    parser.add_argument("--samples", type=int, default=8, metavar="N")
    parser.add_argument("--final-seeds", type=int, default=5, metavar="N")
    parser.add_argument(
        "--env-steps", type=int, metavar="N", help="of one training; default: the task's own"
    )
    parser.add_argument("--as-usual", action="store_true", help="with repeats")
    parser.add_argument(
        "--again", action="store_true", help="also make the searches that are stored"
    )
    parser.add_argument("--model", nargs="+", default=["offline"], metavar="MODEL")
    parser.add_argument("--base-url", metavar="URL")
    parser.add_argument(
        "--quick", action="store_true", help="tiny searches of one seed: show only that it runs"
    )
    arguments = parser.parse_args()
    if not 1 <= len(set(arguments.seeds)) <= 10:
        parser.error(f"--seeds names {len(set(arguments.seeds))} seeds, expected one to ten")
    arguments.arms = list(dict.fromkeys(arguments.arms))
    return arguments


def main() -> dict[str, Any]:
    """Search, print, store."""
    arguments = parsed()
    settings: dict[str, Any] = {
        "iterations": arguments.iterations,
        "samples": arguments.samples,
        "final_seeds": arguments.final_seeds,
        **({} if arguments.env_steps is None else {"env_steps": arguments.env_steps}),
        **({} if arguments.as_usual else PLAIN),
        "model": [model_name(model) for model in arguments.model],
        **(QUICK if arguments.quick else {}),
    }
    searches = {} if arguments.quick else stored(settings)
    figures: dict[str, Any] = {task: summarize(arms) for task, arms in searches.items()}
    given = {**settings, "base_url": arguments.base_url, "finalists": 1, "baselines": False}
    for reference in arguments.tasks[: 1 if arguments.quick else None]:
        task = subject(reference).name
        environment, _, task_name = task.partition("/")
        mine: dict[str, Any] = searches.setdefault(task, {})
        for number, seed in enumerate(arguments.seeds[: 1 if arguments.quick else None]):
            turn = number % len(
                arguments.arms
            )  # no arm is always the one that the machine is slow for
            for arm in arguments.arms[turn:] + arguments.arms[:turn]:
                if str(seed) in mine.get(arm, {}) and not arguments.again:
                    continue
                values = {
                    **given,
                    "strategy": arm,
                    "env": environment,
                    "task": task_name,
                    "seed": seed,
                }
                found = search(values, read)
                found |= {"date": datetime.now(UTC).date().isoformat(), "commit": commit()}
                mine.setdefault(arm, {})[str(seed)] = found
                figures[task] = summarize(mine)
                if not arguments.quick:
                    write_result(
                        NAME, {"settings": settings, "tasks": figures, "searches": searches}
                    )
        show(task, mine, figures[task])
    return figures


if __name__ == "__main__":
    main()
