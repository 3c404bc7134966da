"""From a clone to a finished report: set-up and a default search, timed apart; and how long `eureka
--help` takes.

    python benchmarks/first_search.py
    python benchmarks/first_search.py --against COMMIT [--rounds N] [--tasks ENV …]

Clones this repository into a temporary folder, so what is not committed does not count. pip's cache
is used as it is. Targets: set-up and search under 3 minutes on 2 CPU cores, the search under 60 s,
help under 0.3 s.

`--against` clones two commits, and both search the same tasks in turns, from seeds 0, 1, …, with
a runs folder for each, so that no cache helps. Then this commit's trainer trains all winners on
built-in tasks from eight seeds that no search has. Printed and stored are the ratios of the medians
of wall time, env steps and trainings, and how far the new winners are ahead: the difference of the
means over searches, with its standard error.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from _results import RESULTS, write_result
from reward_table import table

REPOSITORY = Path(__file__).resolve().parents[1]
HELP_RUNS = 11
FRESH_SEEDS = range(7000, 7008)
OWN, FIRST_SEED = "own", 1000
SEARCHES = {
    "quadcopter": "hover at the goal",
    "hopper": "run forward as far as possible",
    "ant": "make the ant run",
    "own": "push the puck to the goal and keep it there",
}
"""README's first search and two larger ones, by environment; and further searches on a person's
own, which `eureka envs --new` writes, with the runs folder of a first one."""


def timed(command: list[str], folder: Path) -> tuple[float, str]:
    """Wall seconds and standard output of a command that succeeds."""
    began = time.monotonic()
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return time.monotonic() - began, result.stdout


def search(clone: Path, task: str, seed: int, runs: Path) -> dict[str, Any]:
    """Figures of a default search."""
    os.environ["EUREKA_RUNS"] = str(runs)
    eureka, environment = str(clone / ".venv/bin/eureka"), task
    if task == OWN:
        environment = f"{clone}-own"
        if not Path(environment).exists():
            timed([eureka, "envs", "--new", environment, "--kind", "torch"], clone)
            search(clone, task, FIRST_SEED, runs)
    words = [SEARCHES[task], "--env", environment, "--seed", str(seed), "--format", "json"]
    seconds, output = timed([eureka, "search", *words], clone)
    found = json.loads(output)
    winner = runs / Path(found["folder"]).name / "best/reward.py"
    return {
        "seed": seed,
        "winner": winner.read_text(),
        "seconds": seconds,
        "env_steps": found["cost"]["env_steps"],
        "trainings": found["cost"]["trainings"],
        "best": found["best"]["mean"],
        "human": found["human"]["mean"],
    }


def compare(commit: str, rounds: int, tasks: list[str]) -> None:
    """Search with this commit and another one in turns, print, store."""
    stored = RESULTS / "first_search.json"
    known = json.loads(stored.read_text())["tasks"] if stored.is_file() else {}
    with tempfile.TemporaryDirectory() as temporary:
        clones = {name: Path(temporary) / name for name in ("before", "now")}
        for name, clone in clones.items():
            subprocess.run(["git", "clone", "--quiet", str(REPOSITORY), str(clone)], check=True)
            if name == "before":
                subprocess.run(["git", "checkout", "--quiet", commit], cwd=clone, check=True)
            timed(["./eureka", "--version"], clone)
        for task in tasks:
            made: dict[str, list[dict[str, Any]]] = {name: [] for name in clones}
            for number in range(rounds):
                for name, clone in clones.items():
                    runs = Path(temporary) / f"runs-{task}-{name}-{task == OWN or number}"
                    made[name].append(search(clone, task, number, runs))
                    shown = {key: made[name][-1][key] for key in made[name][-1] if key != "winner"}
                    print(task, name, json.dumps(shown), flush=True)
            ratios = {
                key: statistics.median(each[key] for each in made["now"])
                / statistics.median(each[key] for each in made["before"])
                for key in ("seconds", "env_steps", "trainings")
            }
            # `table` takes tasks by name, and an own environment is a path
            ahead = None if task == OWN else winners_ahead(task, made)
            print(task, " ".join(f"{key} {ratio:.2f}" for key, ratio in ratios.items()), ahead)
            known[task] = {"against": commit, "ratios": ratios, "winners_ahead": ahead, **made}
            write_result("first_search", {"tasks": known})


def winners_ahead(task: str, made: dict[str, list[dict[str, Any]]]) -> dict[str, float]:
    """Lead of the new winners by fresh seeds, and its standard error. The winners' scores
    are added to `made`."""
    every = [each for searches in made.values() for each in searches]
    sources = {each["winner"]: f"winner-{number}" for number, each in enumerate(every)}
    by_name = {name: source for source, name in sources.items()}
    trained = table(task, by_name, FRESH_SEEDS, 2, None, baselines=False)["trainings"]
    for each in every:
        name = sources[each["winner"]]
        each["fresh"] = [found["fitness"] for found in trained if found["reward"] == name]
    means = {name: [statistics.mean(each["fresh"]) for each in made[name]] for name in made}
    variances = [statistics.variance(each) / len(each) for each in means.values()]
    return {
        "difference": statistics.mean(means["now"]) - statistics.mean(means["before"]),
        "standard_error": sum(variances) ** 0.5,
    }


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--against", metavar="COMMIT")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--tasks", nargs="*", default=list(SEARCHES), choices=SEARCHES)
    asked = parser.parse_args()
    if asked.against is not None:
        compare(asked.against, asked.rounds, asked.tasks)
    else:
        first()


def first() -> None:
    """Time the set-up, a search and the help, and print."""
    with tempfile.TemporaryDirectory() as temporary:
        clone = Path(temporary) / "clone"
        subprocess.run(["git", "clone", "--quiet", str(REPOSITORY), str(clone)], check=True)
        setup, _ = timed(["./eureka", "--version"], clone)
        search, output = timed(
            ["./eureka", "search", "balance the pole", "--env", "cartpole", "--format", "json"],
            clone,
        )
        helps = [
            timed([str(clone / ".venv/bin/eureka"), "--help"], clone)[0] for _ in range(HELP_RUNS)
        ]
    found = json.loads(output)
    figures = {
        "setup_s": setup,
        "search_s": search,
        "total_s": setup + search,
        "help_s": statistics.median(helps),
    }
    print(f"cores                {len(os.sched_getaffinity(0))}")
    print(f"set-up               {setup:6.1f} s")
    print(f"search               {search:6.1f} s   (target: under 60)")
    print(f"clone to report      {setup + search:6.1f} s   (target: under 180)")
    print(f"eureka --help        {figures['help_s']:6.3f} s   (target: under 0.3)")
    print(
        f"best {found['best']['mean']:.3g}, human {found['human']['mean']:.3g}, sparse"
        f" {found['sparse']['mean']:.3g}"
    )


if __name__ == "__main__":
    main()
