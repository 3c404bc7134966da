"""Wishes move what they are about: a person says one plain sentence about a run, a model reads it
and designs the next rounds, and a metric of the wish that the search does not see is measured.

    python -m benchmarks.wishes --env ant --model openai/<name> [--base-url URL] [--runs FOLDER]
    python -m benchmarks.wishes --report [--runs FOLDER]

Every environment has five wishes. All start from copies of one base run, whose only generation the
model designs from the task alone. The person accepts each reading as it is, and asks for two more
generations. The first form makes the runs; a second start goes on with them and asks for nothing
that was answered. The second form measures the trained policies on fresh episodes without noise,
and prints a table of what there is. Its column `others` is the median over the runs in which the
other four wishes were said: what the metric does when nobody asks for it.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from benchmarks._results import write_result
from benchmarks._wish_goals import GOALS
from benchmarks._wish_table import BASE, ROUNDS, rows_of, table_text
from eureka_agent.analysis.standing import standing_wishes
from eureka_agent.archive.run_folder import RUNS_VARIABLE, Run, list_runs, open_run
from eureka_agent.errors import EurekaError
from eureka_agent.feedback_records import Decision, Wish
from eureka_agent.fleet.fleet import Machine
from eureka_agent.journal.entries import (
    AttemptEnded,
    BaseEntry,
    FeedbackGiven,
    IterationEnded,
    Notice,
    Observer,
    Proposed,
)
from eureka_agent.llm.interface import LanguageModelError
from eureka_agent.records import RunStatus
from eureka_agent.sandbox.process_wall import ProcessWall
from eureka_agent.search.deadline import SearchContext
from eureka_agent.search.refinement import Refinement
from eureka_agent.search.session import resume, start

TASKS = {"ant": "run", "quadcopter": "hover"}
SAMPLES = 3
TIMEOUT_S = 12 * 3600.0
"""Timeout of a reply: the model may be slow."""
FIXED: dict[str, Any] = {
    "seed": 0,
    "iterations": 1,
    "samples": SAMPLES,
    "confirm": 0,
    "finalists": 0,
    "baselines": False,
    "video": False,
    "reviewer": "off",
    "analyst": "off",
    "schedule": "generations",
    "sandbox": "process",
    "workers": 1,
    "concurrency": 32,
}
_AGAIN = "Give your reading once more, and end it with the block of JSON."
"""Answer to a reply without a reading."""


class OneWish:
    """Says one wish, accepts its reading, and asks for `ROUNDS` generations. A second start with
    the same run goes on where the first one was."""

    def __init__(self, words: str) -> None:
        self._words = words
        self._before = -1
        """Rounds that had come to something when it was last asked."""

    async def __call__(self, refinement: Refinement) -> None:
        """Say the wish once; leave when all rounds are made, or one came to nothing."""
        if not standing_wishes(refinement.run.archive.state.feedback):
            wish = Wish(wants=self._words)
            try:
                read = await refinement.read(wish)
            except LanguageModelError:
                read = await refinement.read(wish, _AGAIN)
            refinement.say(wish.model_copy(update={"reading": read.reading}))
        made = rounds_made(refinement.run)
        stuck, self._before = made == self._before, made
        refinement.say(Decision(then="leave" if made >= ROUNDS or stuck else "another"))


def rounds_made(run: Run) -> int:
    """Ended generations after the first that have attempts."""
    state = run.archive.state
    return sum(each > 0 and bool(state.attempts(each)) for each in state.iterations_ended)


def observer_of(name: str) -> Observer:
    """Prints a run's warnings and its progress."""

    def observe(entry: BaseEntry) -> None:
        match entry:
            case Notice(level="warning"):
                print(f"{name}: {entry.text}", flush=True)
            case Proposed() | AttemptEnded():
                print(f"{name}: {entry.kind} {entry.attempt}", flush=True)
            case FeedbackGiven() | IterationEnded():
                print(f"{name}: {entry.kind}", flush=True)

    return observe


async def base_run(values: Mapping[str, Any], folder: Path, context: SearchContext) -> Path:
    """Make the base run, or go on with it. Returns its folder."""
    observer, parent = observer_of(BASE), folder / BASE
    known = list_runs(parent)
    if not known:
        os.environ[RUNS_VARIABLE] = str(parent)
        run = await start(values, None, ["eureka"], observer, context=context)
    else:
        with closing((run := open_run(known[-1], reading=True)).archive):
            finished = run.status is RunStatus.FINISHED
        if finished:
            return known[-1]
        changes = {"base_url": values["base_url"]}
        run = await resume(known[-1], observer, changes, context)
    run.archive.close()
    return run.folder


async def wish_run(
    name: str, words: str, base: Path, base_url: str | None, context: SearchContext
) -> None:
    """Say a wish to a copy of the base run, or go on with that."""
    folder = base.parent.parent / name
    if not folder.exists():
        draft = folder.with_name(f".{name}")
        shutil.rmtree(draft, ignore_errors=True)  # of a killed process
        shutil.copytree(base, draft)
        draft.rename(folder)
    with closing((run := open_run(folder, reading=True)).archive):
        if rounds_made(run) >= ROUNDS:
            return
    changes = {"base_url": base_url, "iterations": 1 + ROUNDS}
    run = await resume(folder, observer_of(name), changes, context, OneWish(words))
    run.archive.close()


async def make_runs(
    environment: str, folder: Path, model: str, base_url: str | None, env_steps: int | None
) -> int:
    """Make all runs of an environment, those of the wishes side by side. Returns the number of
    wishes whose run failed."""
    values = {"env": environment, "task": TASKS[environment], "model": model, **FIXED}
    values |= {"base_url": base_url, "request_timeout": TIMEOUT_S}
    values |= {} if env_steps is None else {"env_steps": env_steps}
    goals = GOALS[environment]
    scratch = folder / ".workers"
    shutil.rmtree(scratch, ignore_errors=True)  # of a killed process
    async with Machine(ProcessWall(), scratch, workers=1) as machine:
        context = SearchContext(machine)
        base = await base_run(values, folder, context)
        runs = [wish_run(name, goal.words, base, base_url, context) for name, goal in goals.items()]
        ends = await asyncio.gather(*runs, return_exceptions=True)
    failures = 0
    for name, end in zip(goals, ends, strict=True):
        if end is not None and not isinstance(end, EurekaError):
            raise end
        failures += end is not None
        print(f"{name}: {'made' if end is None else end}", flush=True)
    return failures


def main() -> int:
    """Make the runs of an environment, or print the table of all. Returns 1 if a run failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--env", choices=TASKS, help="make the runs of this environment")
    parser.add_argument("--report", action="store_true", help="measure what there is")
    parser.add_argument("--model", help="<provider>/<model>")
    parser.add_argument("--base-url", help="address of the model's server")
    parser.add_argument("--runs", type=Path, default=Path("runs/wishes"), metavar="FOLDER")
    parser.add_argument("--env-steps", type=int, help="of a training; default: the task's")
    asked = parser.parse_args()
    if asked.env and asked.model:
        folder = asked.runs.absolute() / asked.env
        making = make_runs(asked.env, folder, asked.model, asked.base_url, asked.env_steps)
        return min(1, asyncio.run(making))
    if not asked.report:
        parser.error("name --env and --model, or --report")
    rows = [row for each in TASKS for row in rows_of(each, asked.runs.absolute() / each)]
    print(table_text(rows))
    write_result("wishes", {"rows": rows})
    return 0


if __name__ == "__main__":
    sys.exit(main())
