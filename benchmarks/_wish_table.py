"""Table of the wishes: metrics of each run's trained policies, and how far they moved."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks._wish_goals import GOALS
from eureka_agent.archive.artefacts import POLICY, attempt_folder
from eureka_agent.archive.run_folder import Run, list_runs, open_run
from eureka_agent.records import Attempt, Stage
from eureka_agent.search.summary import best_attempt
from eureka_agent.simulation.loading import load_environment
from eureka_agent.simulation.vec_task import padded
from eureka_agent.training.evaluation import PolicyRequest, evaluate_policies
from eureka_agent.training.policy import load_policy

EPISODES, SCORE_SEED = 32, 13
ROUNDS = 2
BASE = "base"
"""Folder of the base run."""


@dataclass(frozen=True)
class Measured:
    """A trained attempt: means over the same fresh episodes."""

    id: str
    fitness: float
    metrics: dict[str, float]
    """All wishes of its environment, by their names."""


@torch.inference_mode()
def measured(run: Run, attempts: Sequence[Attempt]) -> list[Measured]:
    """Fitness and metrics of trained attempts."""
    loaded = load_environment(run.settings.env)
    _, task = loaded.task(run.settings.task)
    found = []
    for attempt in attempts:
        policy = load_policy(attempt_folder(run.folder, attempt.id) / POLICY)
        request = PolicyRequest(policy, SCORE_SEED, EPISODES, all_of)
        environment = loaded.make(task, padded(EPISODES, loaded.environment_class.row_multiple))
        ((evaluation, episodes),) = evaluate_policies(environment, task, [request])
        environment.close()
        fitness = evaluation.fitness_mean()
        assert fitness is not None  # there are episodes
        assert episodes is not None  # they were asked for
        metrics = {
            name: float(np.mean([goal.measure(episode) for episode in episodes.values()]))
            for name, goal in GOALS[run.settings.env].items()
        }
        found.append(Measured(attempt.id, fitness, metrics))
    return found


def all_of(fitness: torch.Tensor) -> dict[str, int]:
    """All episodes by their numbers."""
    return {str(number): number for number in range(len(fitness))}


@dataclass(frozen=True)
class Round:
    """A generation of a run."""

    trained: list[Measured]
    sent_back: int
    """Proposals that the critic rejected."""


def rounds_of(folder: Path, first: int, last: int) -> tuple[list[Round], str]:
    """The generations of a run from `first` to `last` that have ended; id of the best attempt."""
    with closing((run := open_run(folder, reading=True)).archive):
        found = []
        for iteration in sorted(run.archive.state.iterations_ended & {*range(first, last + 1)}):
            attempts = run.archive.attempts(iteration)
            trained = [each for each in attempts if each.stage is Stage.TRAINED]
            sent_back = sum(each.stage is Stage.REJECTED for each in attempts)
            found.append(Round(measured(run, trained), sent_back))
        best = best_attempt(run)
    return found, "" if best is None else best.id


def rows_of(environment: str, folder: Path) -> list[dict[str, Any]]:
    """Rows of an environment: for each wish the base run, then its rounds."""
    known = list_runs(folder / BASE)
    base, best_id = rounds_of(known[-1], 0, 0) if known else ([], "")
    if not base:
        return []
    best = next(each for each in base[0].trained if each.id == best_id)
    made = {
        name: rounds_of(folder / name, 1, ROUNDS)[0]
        for name in GOALS[environment]
        if (folder / name).is_dir()
    }
    rows = []
    for name, goal in GOALS[environment].items():
        begin = best.metrics[name]
        common: dict[str, Any] = {"environment": environment, "wish": name}
        common |= {"words": goal.words, "metric": f"{goal.metric} [{goal.unit}]"}
        common |= {"begin": begin, "begin fitness": best.fitness, "aim": goal.aim(begin)}
        for number, each in enumerate([*base, *made.get(name, [])]):
            others = [
                attempt.metrics[name]
                for other, rounds in made.items()
                if other != name and 0 < number <= len(rounds)
                for attempt in rounds[number - 1].trained
            ]
            rows.append({**common, "round": number, **figures(name, common, each, others)})
    return rows


def figures(
    name: str, common: Mapping[str, Any], made: Round, others: Sequence[float]
) -> dict[str, Any]:
    """Figures of one round. A value has moved by the part of the way from the base run's best
    attempt to the aim that it is nearer; where the aim is 0, by the part that it is lower."""
    begin, aim = common["begin"], common["aim"]

    def moved(value: float) -> float:
        return 1.0 - abs(value - aim) / abs(begin - aim)

    row: dict[str, Any] = {"trained": len(made.trained), "sent back": made.sent_back}
    if made.trained:
        near = min(made.trained, key=lambda each: abs(each.metrics[name] - aim))
        median = statistics.median(each.metrics[name] for each in made.trained)
        row |= {"median": median, "median moved": moved(median)}
        row |= {"median fitness": statistics.median(each.fitness for each in made.trained)}
        row |= {"nearest": near.metrics[name], "nearest moved": moved(near.metrics[name])}
        row |= {"nearest fitness": near.fitness}
    return row | {"others": statistics.median(others) if others else None}


COLUMNS = {
    "median": "{:.3g}",
    "median moved": "{:.0%}",
    "median fitness": "{:.3g}",
    "nearest": "{:.3g}",
    "nearest moved": "{:.0%}",
    "nearest fitness": "{:.3g}",
    "others": "{:.3g}",
}


def table_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """The table, a block for each wish."""
    lines, heads = [], [each.split()[-1] for each in COLUMNS]
    for row in rows:
        if row["round"] == 0:
            wished = f"{row['aim']:.3g}" if row["aim"] else "lower"
            lines += [
                "",
                f"{row['environment']}, {row['wish']}: {row['words']}",
                f"{row['metric']}: {row['begin']:.3g} at fitness {row['begin fitness']:.3g} in the"
                f" base run's best attempt, wished {wished}",
                f"round  trained  sent back{''.join(map(_cell, heads))}",
            ]
        cells = [
            _cell("-" if row.get(each) is None else shape.format(row[each]))
            for each, shape in COLUMNS.items()
        ]
        number = row["round"] or BASE
        lines.append(f"{number:<5}  {row['trained']:>7}  {row['sent back']:>9}{''.join(cells)}")
    return "\n".join(lines)


def _cell(text: str) -> str:
    return f"{text:>9}"
