"""Worth of tools to a model that designs: searches of twelve proposals, at equal env steps.

    python benchmarks/designer_tools.py --model openai/<name> [--base-url URL] [--seeds 0 1 2]
    [--written] [TASK …]
    python benchmarks/designer_tools.py --runs "two with tools=FOLDER" …

Three arms: one generation of 12; two of 6 without tools, planned as places come free; two of 6 with
tools, each planned when the last one has ended. The best attempt of each search is trained again
from eight fresh seeds, and these means are compared. Beside them: the best first score of each
generation, after how many proposals the best was there, and tokens. With `--runs` stored runs of
these arms are counted, and no model is asked.
"""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path
from typing import Any

from _results import write_result
from _searches import search

from eureka_agent.archive.run_folder import Run, find_run, open_run
from eureka_agent.search.summary import run_report

TASKS = (
    "ball_balance/roll_to",
    "craft/keep_off_lava",
    "metaworld/door_unlock",
    "hopper/back_flip",
    "quadcopter/approach",
)
ARMS: dict[str, dict[str, Any]] = {
    "one generation": {"iterations": 1, "samples": 12, "designer_tools": "off"},
    "two": {"iterations": 2, "samples": 6, "designer_tools": "off", "schedule": "steady"},
    "two with tools": {"iterations": 2, "samples": 6},
}
SHARED = {"confirm": 0, "finalists": 1, "final_seeds": 8, "baselines": False, "video": False}


def counted(arm: str, run: Run) -> dict[str, Any]:
    """Figures of one search."""
    report = run_report(run)
    attempts = [each for each in run.archive.attempts() if each.fitness is not None]
    generations: dict[int, list[float]] = {}
    for each in attempts:
        generations.setdefault(each.iteration, []).append(each.fitness_per_seed[0])
    best = max(attempts, key=lambda each: each.fitness_per_seed[0])
    (final,) = report.finalists
    asked = [each for each in run.archive.messages() if each.role in ("designer", "analyst")]
    return {
        "task": f"{run.settings.env}/{run.description.task}",
        "arm": arm,
        "seed": run.settings.seed,
        "fresh": [each for each in final.fitness if each is not None],
        "mean": final.mean,
        "std": final.std,
        "first_scores": [[round(it, 3) for it in each] for _, each in sorted(generations.items())],
        "best_at": 1 + attempts.index(best),
        "tools": len(run.archive.state.answers),
        "requests": len(asked),
        "tokens": sum(
            (each.cost.prompt_tokens or 0) + (each.cost.completion_tokens or 0) for each in asked
        ),
    }


def show(lines: list[dict[str, Any]]) -> None:
    """Print the searches as a table."""
    print(f"{'task':24} {'arm':15} seed  fresh seeds      best at  tools  tokens")
    for each in sorted(lines, key=lambda it: (it["task"], it["seed"], it["arm"])):
        fresh = f"{each['mean']:.2f} ± {each['std']:.2f} ({len(each['fresh'])})"
        print(
            f"{each['task']:24} {each['arm']:15} {each['seed']:4}  {fresh:16} {each['best_at']:7}"
            f" {each['tools']:6} {each['tokens']:7,}"
        )
        for scores in each["first_scores"]:
            print(f"{'':24} first scores {' '.join(f'{it:.2f}' for it in scores)}")


def main() -> None:
    """Search or count, print, store."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tasks", nargs="*", default=TASKS, metavar="TASK")
    parser.add_argument("--model")
    parser.add_argument("--base-url")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--written", action="store_true", help="tools in writing")
    parser.add_argument("--runs", nargs="+", default=[], metavar="ARM=FOLDER")
    given = parser.parse_args()
    lines = []
    for word in given.runs:
        arm, _, folder = word.partition("=")
        lines.append(counted(arm, open_run(find_run(str(Path(folder))), reading=True)))
    if given.model and not given.runs:
        form = {"designer_tools": "written" if given.written else "auto"}
        for task, seed in itertools.product(given.tasks, given.seeds):
            env, _, name = task.partition("/")
            about = {"env": env, "task": name, "seed": seed, "model": (given.model,)}
            for arm, settings in ARMS.items():
                values = {**SHARED, **about, "base_url": given.base_url, **form, **settings}
                lines.append(search(values, lambda run, _, arm=arm: counted(arm, run)))
                show(lines[-1:])
    show(lines)
    write_result("designer_tools", {"searches": lines})


if __name__ == "__main__":
    main()
