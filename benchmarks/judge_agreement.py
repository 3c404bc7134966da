"""Agreement of a model that judges pictures with the metrics of tasks that have one.

    python benchmarks/judge_agreement.py --model openai/gpt-5.5     train, judge, count
    python benchmarks/judge_agreement.py                            count what is judged

Of each task six rewards of the offline designer are trained, at half of its usual env steps, so
that policies differ. The model compares them as with `--fitness judged`: two comparisons for each
in all. It is not told the metric. Counted are Spearman's rank correlation between the strengths
that follow and the metric, and of the comparisons in which the metric tells the two apart (by more
than two standard errors) those that have its winner. Intervals are bootstrapped over tasks.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import os
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from benchmarks._results import write_result
from eureka_agent.analysis.judge import ModelJudge
from eureka_agent.analysis.standing import comparisons_of_model, preferences_of, sub_goals_of
from eureka_agent.archive.run_folder import RUNS_VARIABLE, Run, list_runs, open_run
from eureka_agent.fleet.jobs import Problem
from eureka_agent.fleet.warm_worker import FilmMaker
from eureka_agent.journal.entries import BaseEntry, Notice
from eureka_agent.llm.access import ModelAccess
from eureka_agent.llm.budget import Budget, ModelLimits
from eureka_agent.llm.clients import language_model
from eureka_agent.llm.gateway import ConfiguredModel, Gateway
from eureka_agent.records import Stage
from eureka_agent.sandbox.process_wall import ProcessWall
from eureka_agent.search.recorder import WORKERS_FOLDER
from eureka_agent.search.seeing import Judging
from eureka_agent.search.session import start

TASKS = {
    "cartpole/swingup": 150_000,
    "hopper/run": 75_000,
    "hopper/back_flip": 250_000,
    "ball_balance/roll_to": 250_000,
    "ant/lie_down": 150_000,
    "metaworld/door_unlock": 100_000,
    "craft/hunt_cow": 100_000,
    "quadcopter/hover": 100_000,
}
"""Env steps of each training."""
FIXED = {
    "samples": 6,
    "iterations": 1,
    "confirm": 0,
    "finalists": 0,
    "baselines": False,
    "video": False,
    "sandbox": "process",
    "workers": 1,
}
TIMEOUT_S = 3000.0
"""Timeout of a reply."""
DEVIATIONS = 2.0
"""Standard errors from which on a metric tells two policies apart."""
DRAWS = 10_000


async def trained(task: str, folder: Path) -> Path:
    """The folder of a task's run, which is made where it is missing."""
    os.environ[RUNS_VARIABLE] = str(folder)
    if not list_runs(folder):
        environment, _, name = task.partition("/")
        values = {"env": environment, "task": name, "env_steps": TASKS[task], **FIXED}
        run = await start(values, None, ["eureka"], lambda entry: None)
        run.archive.close()
    return list_runs(folder)[-1]


async def judge(folder: Path, model: str, base_url: str | None) -> None:
    """Have a model compare a run's attempts, as far as that is missing."""
    with closing((run := open_run(folder)).archive):
        problem = Problem(run.settings.env, run.settings.task)
        maker = FilmMaker(ProcessWall(), problem, run.folder / WORKERS_FOLDER)
        asked = language_model(model, ModelAccess(base_url=base_url, timeout_s=TIMEOUT_S))
        gateway = Gateway(run.archive, Budget(ModelLimits(), {}), concurrency=4)

        def record(entry: BaseEntry) -> None:
            run.archive.append(entry)
            if isinstance(entry, Notice):
                print(f"{run.settings.env}: {entry.text}", flush=True)

        eye = ModelJudge(ConfiguredModel(asked, gateway), run.description, run.sentence)
        try:
            await Judging(eye, run, maker, record).judge()
        finally:
            await maker.close()
            await asked.close()


def counted(run: Run) -> dict[str, Any]:
    """Figures of a judged run."""
    outcomes = {
        each.id: each.outcome
        for each in run.archive.attempts()
        if each.stage is Stage.TRAINED and each.outcome is not None
    }
    fitness = {name: float(each.fitness or 0.0) for name, each in outcomes.items()}
    errors = {
        name: (each.fitness_std or 0.0) / math.sqrt(max(1, each.evaluation_episodes))
        for name, each in outcomes.items()
    }
    feedback = run.archive.state.feedback
    strengths = preferences_of(run.archive.attempts(), feedback, "model").means()
    compared = comparisons_of_model(feedback)
    told = [
        (each.grade, fitness[each.first] - fitness[each.second])
        for each in compared
        if abs(fitness[each.first] - fitness[each.second])
        > DEVIATIONS * math.hypot(errors[each.first], errors[each.second])
    ]
    return {
        "task": f"{run.settings.env}/{run.description.task}",
        "model": next(each.who for each in feedback),
        "sub_goals": list(sub_goals_of(feedback) or ()),
        "fitness": fitness,
        "strengths": strengths,
        "rank_correlation": correlation([(fitness[name], strengths[name]) for name in fitness]),
        "comparisons": len(compared),
        "told_apart": len(told),
        "agree": sum(bool(grade) and grade * gap > 0 for grade, gap in told),
        "no_winner": sum(not grade for grade, _ in told),
    }


def correlation(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Spearman's; None where one side is the same everywhere."""
    if any(len(set(side)) < 2 for side in zip(*pairs, strict=True)):
        return None
    return float(spearmanr(pairs).statistic)


def overall(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Mean rank correlation and share of comparisons that agree, with 95 % intervals."""
    random = np.random.default_rng(0)
    drawn = [
        [rows[place] for place in random.integers(len(rows), size=len(rows))] for _ in range(DRAWS)
    ]
    figures: dict[str, Any] = {}
    for name, of in (("rank_correlation", mean_correlation), ("share_that_agrees", share)):
        values = [value for each in drawn if (value := of(each)) is not None]
        low, high = np.percentile(values, (2.5, 97.5))
        figures[name] = {"mean": of(rows), "from": float(low), "to": float(high)}
    return figures


def mean_correlation(rows: Sequence[dict[str, Any]]) -> float | None:
    """Mean over the tasks that have one."""
    known = [row["rank_correlation"] for row in rows if row["rank_correlation"] is not None]
    return sum(known) / len(known) if known else None


def share(rows: Sequence[dict[str, Any]]) -> float | None:
    """Share of the comparisons in which the metric tells the two apart; one without a winner does
    not agree."""
    told = sum(row["told_apart"] for row in rows)
    return sum(row["agree"] for row in rows) / told if told else None


async def make(tasks: Sequence[str], runs: Path, model: str, base_url: str | None) -> None:
    """Train the tasks one after the other; each is judged while the next ones train."""
    async with asyncio.TaskGroup() as group:
        for task in tasks:
            folder = await trained(task, runs / task.replace("/", "_"))
            print(f"{task}: trained", flush=True)
            group.create_task(judge(folder, model, base_url))


def main() -> int:
    """Make what is missing, and count. Returns 1 if there is nothing to count."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tasks", nargs="*", metavar="TASK", help=f"default: {', '.join(TASKS)}")
    parser.add_argument("--model", help="<provider>/<model> that judges; without: count alone")
    parser.add_argument("--base-url", help="address of the model's server")
    parser.add_argument("--runs", type=Path, default=Path("runs/judge_agreement"), metavar="FOLDER")
    asked = parser.parse_args()
    tasks, runs = asked.tasks or list(TASKS), asked.runs.absolute()
    if unknown := [each for each in tasks if each not in TASKS]:
        parser.error(f"unknown task {unknown[0]!r}, expected one of {', '.join(TASKS)}")
    if asked.model:
        asyncio.run(make(tasks, runs, asked.model, asked.base_url))
    rows = []
    for task in tasks:
        for folder in list_runs(runs / task.replace("/", "_"))[-1:]:
            with closing((run := open_run(folder, reading=True)).archive):
                if comparisons_of_model(run.archive.state.feedback):
                    rows.append(counted(run))
    if not rows:
        print("no run is judged: name a --model", file=sys.stderr)
        return 1
    for row in rows:
        print({name: value for name, value in row.items() if name != "sub_goals"})
    figures = overall(rows)
    print(figures)
    write_result("judge_agreement", {"rows": rows, "overall": figures})
    return 0


if __name__ == "__main__":
    sys.exit(main())
