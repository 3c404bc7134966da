"""Contribution of reviewer and analyst: whole searches with each of them, with both and with
neither, at equal numbers of trainings.

    python benchmarks/roles.py --run RUN python benchmarks/roles.py --model openai/<name>
    [--base-url URL] [--price …] [--seeds 1 2 3] [--generations 2] [--samples 4] [--replies FOLDER]
    [TASK …]

With `--run` it counts, in a stored run, the requests and tokens of each role, the rewards that its
reviewer turned down, and the warnings that came true. No model is asked.

Without it, four searches run for every task and seed, which costs money if the model does. If one
of them has made the same request before, its reply is used again. So all four begin with the same
rewards and differ only in what the roles made of them; the optimiser of constants is off.
`--replies` keeps the replies when a run breaks off. Every search's best attempt is trained again
from five fresh seeds, and these means are compared. Beside them: the number of rewards that the
reviewer turned down, and tokens and money as if every search had asked for itself.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from _results import write_result
from _role_counts import table
from _searches import Watch, search

from eureka_agent.archive.database import Archive
from eureka_agent.archive.run_folder import Run, find_run, open_run
from eureka_agent.records import Message, Stage
from eureka_agent.search.summary import run_report

ARMS = {
    "neither": {"reviewer": "off", "analyst": "off"},
    "reviewer": {"reviewer": "every", "analyst": "off"},
    "analyst": {"reviewer": "off", "analyst": "auto"},
    "both": {"reviewer": "every", "analyst": "auto"},
}
FINAL_SEEDS = 5


@contextmanager
def shared_replies(folder: Path) -> Iterator[None]:
    """Answer every run from the replies that any of them got, and keep them in its own archive."""
    folder.mkdir(parents=True, exist_ok=True)
    shared = Archive(folder)
    find, put = Archive.find, Archive.put

    def find_anywhere(archive: Archive, key: str) -> Message | None:
        known = find(archive, key)
        if known is None:
            known = find(shared, key)
            if known is not None:
                put(archive, key, known)
        return known

    def put_in_both(archive: Archive, key: str, message: Message) -> None:
        put(shared, key, message)
        put(archive, key, message)

    try:
        with (
            patch.object(Archive, "find", find_anywhere),
            patch.object(Archive, "put", put_in_both),
        ):
            yield
    finally:
        shared.close()


def figures(run: Run, watch: Watch) -> dict[str, Any]:
    """Figures of one search."""
    report = run_report(run)
    score, total = report.best_score, report.ledger.total
    reviewed = [
        finding
        for attempt in report.attempts
        if attempt.verdict is not None
        for finding in attempt.verdict.findings
        if finding.code.startswith("R")
    ]
    return {
        "mean": None if score is None else score.mean,
        "std": None if score is None else score.std,
        "trained": sum(attempt.stage is Stage.TRAINED for attempt in report.attempts),
        "turned_down": sum(finding.severity == "error" for finding in reviewed),
        "warnings": sum(finding.severity == "warning" for finding in reviewed),
        "requests": total.requests,
        "tokens": total.prompt_tokens + total.completion_tokens,
        "money": None if total.money is None else str(total.money),
        "seconds": round(watch.seconds(), 1),
    }


def main() -> int:
    """Print a line for every search, then the means by arm."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tasks", nargs="*", default=["cartpole/swingup"], metavar="TASK")
    asked = parser.add_mutually_exclusive_group(required=True)
    asked.add_argument("--model")
    asked.add_argument("--run", metavar="RUN", help="a run folder or its name")
    parser.add_argument("--base-url")
    parser.add_argument("--price", action="append", default=[])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--generations", type=int, default=2)
    parser.add_argument("--samples", type=int, default=4)
    parser.add_argument("--request-timeout", type=float, default=600.0)
    parser.add_argument(
        "--replies",
        type=Path,
        metavar="FOLDER",
        help="where replies are kept; default: for this run alone",
    )
    arguments = parser.parse_args()
    if arguments.run is not None:
        run = open_run(find_run(arguments.run), reading=True)
        print(table(run.archive.messages(), run.archive.attempts()))
        return 0
    with (
        tempfile.TemporaryDirectory(prefix="eureka-replies-") as temporary,
        shared_replies(arguments.replies or Path(temporary)),
    ):
        results = searches(arguments)
    for task, arms in results.items():
        for arm, rows in arms.items():
            means = [row["mean"] for row in rows if row["mean"] is not None]
            tokens = statistics.mean(row["tokens"] for row in rows)
            print(
                f"{task:20} {arm:9} {statistics.mean(means) if means else float('nan'):9.3f} "
                f" {tokens:9,.0f} tokens"
            )
    write_result("roles", {"model": arguments.model, "searches": results})
    return 0


def searches(arguments: argparse.Namespace) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Every search's figures by task and arm, a line printed for each."""
    results: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for task in arguments.tasks:
        environment, _, name = task.partition("/")
        for seed in arguments.seeds:
            for arm, roles in ARMS.items():
                values = {
                    "env": environment,
                    **({"task": name} if name else {}),
                    "model": arguments.model,
                    "base_url": arguments.base_url,
                    "price": tuple(arguments.price),
                    "request_timeout": arguments.request_timeout,
                    "iterations": arguments.generations,
                    "samples": arguments.samples,
                    "seed": seed,
                    "finalists": 1,
                    "final_seeds": FINAL_SEEDS,
                    "baselines": False,
                    **{
                        role: arguments.model if who == "every" else who
                        for role, who in roles.items()
                    },
                }
                found = search(values, figures)
                results.setdefault(task, {}).setdefault(arm, []).append({"seed": seed, **found})
                print(f"{task:20} seed {seed}  {arm:9} {found}", flush=True)
    return results


if __name__ == "__main__":
    sys.exit(main())
