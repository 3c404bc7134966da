"""Scores over seeds and over episodes: mean, spread, and the human-normalised score."""

from __future__ import annotations

import math
import statistics
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from eureka_agent import wording
from eureka_agent.analysis.coverage import Coverage, coverage
from eureka_agent.archive.run_folder import Run
from eureka_agent.designer.source_tools import difference
from eureka_agent.errors import SettingsError
from eureka_agent.journal.state import RunState
from eureka_agent.parameters import Distribution
from eureka_agent.ranking import counted_on
from eureka_agent.records import (
    BASELINES,
    Attempt,
    Evaluation,
    FinalTraining,
    Score,
    Stage,
    TaskDescription,
)
from eureka_agent.report.comparison import told_apart
from eureka_agent.search.strategies import last_revisions
from eureka_agent.settings import MOST_EPISODES, MOST_SEED
from eureka_agent.wording import significant


@dataclass(frozen=True)
class EpisodeStatistics:
    """Statistics of a policy's episodes."""

    mean: float
    std: float | None
    """Sample standard deviation (n − 1) over the episodes; None for a single one."""
    success_rate: float | None
    """Share of episodes that reach the task's threshold; None without one."""


def episode_statistics(evaluation: Evaluation, success_fitness: float | None) -> EpisodeStatistics:
    """Mean, spread and success rate of the evaluated episodes."""
    values = [episode.fitness for episode in evaluation.episodes]
    rate = None
    if success_fitness is not None:
        rate = sum(value >= success_fitness for value in values) / len(values)
    std = statistics.stdev(values) if len(values) > 1 else None
    return EpisodeStatistics(statistics.fmean(values), std, rate)


def score(name: str, trainings: Iterable[FinalTraining]) -> Score:
    """The score of one reward from its final trainings; failed seeds have no part in the mean."""
    named = (training for training in trainings if training.name == name)
    ordered = sorted(named, key=lambda training: training.seed)
    outcomes = {training.seed: training.outcome for training in ordered}
    found = score_of_seeds(
        name, {seed: None if each is None else each.fitness for seed, each in outcomes.items()}
    )
    cached = bool(ordered) and all(training.cached for training in ordered)
    card = cached and all(training.card for training in ordered)
    return found.model_copy(update={"cached": cached, "card": card})


def score_of_seeds(name: str, fitness: Mapping[int, float | None]) -> Score:
    """The score of one reward from its fitness by seed; None where a training failed."""
    known = [value for value in fitness.values() if value is not None]
    return Score(
        name=name,
        seeds=tuple(fitness),
        fitness=tuple(fitness.values()),
        mean=statistics.fmean(known) if known else None,
        std=statistics.stdev(known) if len(known) > 1 else None,
    )


def human_normalized(mean: float | None, human: float | None, sparse: float | None) -> float | None:
    """(mean − sparse) / |human − sparse| (Ma et al. 2023); None where it has no value."""
    if mean is None or human is None or sparse is None or human == sparse:
        return None
    return (mean - sparse) / abs(human - sparse)


def score_table(trainings: Sequence[FinalTraining]) -> tuple[Score, ...]:
    """Scores of all finalists, best first, then human and sparse, each with its human-normalised
    score. Finalists with as many seeds stand by what can be counted on (`eureka_agent.ranking`),
    those with fewer below them, since they could not win any more (`final.py`).

    There is none if human and sparse cannot be told apart: its unit would be noise.
    """
    names = dict.fromkeys(training.name for training in trainings)
    scores = {name: score(name, trainings) for name in names}
    human, sparse = (scores[name].mean if name in scores else None for name in BASELINES)
    known = human is not None and sparse is not None
    if known and not told_apart(scores["human"], scores["sparse"]):
        human = sparse = None
    normalized = [
        entry.model_copy(update={"human_normalized": human_normalized(entry.mean, human, sparse)})
        for entry in scores.values()
    ]
    finalists = [entry for entry in normalized if entry.name not in BASELINES]
    merits = counted_on([entry.fitness for entry in finalists])
    ordered = sorted(
        zip(finalists, merits, strict=True),
        key=lambda pair: (pair[0].mean is None, -len(pair[0].seeds), -pair[1], pair[0].name),
    )
    baselines = [entry for entry in normalized if entry.name in BASELINES]
    return tuple([entry for entry, _ in ordered] + baselines)


async def rescore(
    run: Run,
    policy: Path,
    seed: int,
    episodes: int,
    parameters: Distribution,
    trajectories: Path | None = None,
    recorded: Literal["extremes", "all"] = "extremes",
) -> Evaluation:
    """Evaluate a policy file of `run` in a worker of its own."""
    from eureka_agent.fleet.evaluator import Evaluator
    from eureka_agent.fleet.jobs import Problem
    from eureka_agent.sandbox.choose import choose_wall

    with tempfile.TemporaryDirectory(prefix="eureka-") as scratch:
        evaluator = Evaluator(
            choose_wall(run.settings.sandbox),
            Problem(run.settings.env, run.description.task, run.written_fitness),
            Path(scratch),
        )
        try:
            return await evaluator.evaluate(
                policy, seed, episodes, trajectories, parameters, recorded
            )
        finally:
            await evaluator.close()


async def evaluated(
    run: Run,
    attempt: str | None,
    policy: Path,
    seed: int,
    episodes: int,
    distribution: Distribution,
) -> dict[str, Any]:
    """The score of a policy file of `run` on fresh episodes, for `--format json`. Raises
    SettingsError for a number out of range."""
    for name, value, least, most in (
        ("episodes", episodes, 1, MOST_EPISODES),
        ("seed", seed, 0, MOST_SEED),
    ):
        if not isinstance(value, int) or not least <= value <= most:
            what = f"{name} is {value!r}, expected a number from {least} to {most}"
            raise SettingsError(what, "give another one")
    evaluation = await rescore(run, policy, seed, episodes, distribution)
    return {
        "run": run.name,
        "attempt": attempt,
        "policy": str(policy),
        "fitness_origin": run.fitness_origin,
        "parameters": distribution,
        **evaluation_summary(evaluation, run.description),
    }


def evaluation_lines(
    summary: Mapping[str, Any], description: TaskDescription, fitness_origin: str
) -> dict[str, str]:
    """The summary for the user, as lines by their labels."""
    unit = "" if summary["unit"] in ("", "1") else f" {summary['unit']}"
    fitness = f"{wording.plus_minus(summary['mean'], summary['std'])}{unit}"
    spread = " (± is the deviation between episodes, not between seeds)"
    origin = f"{fitness_origin}: " if fitness_origin else ""
    lines = {
        "fitness": f"{fitness} over {wording.plural(summary['episodes'], 'episode')}"
        + ("" if summary["std"] is None else spread),
        "measures": f"{origin}{description.fitness_doc}",
    }
    if summary["success_rate"] is not None:
        threshold = f"{wording.number(description.success_fitness)}{unit}"
        lines["solved"] = (
            f"{summary['success_rate']:.0%} of the episodes (fitness of {threshold} or more)"
        )
    ends = ", ".join(f"{name} {count}" for name, count in summary["ended_by"].items())
    lines["length"] = (
        f"{summary['mean_length']:.0f} of {description.max_episode_length} steps on average; ended"
        f" by: {ends}"
    )
    return lines


def evaluation_summary(evaluation: Evaluation, description: TaskDescription) -> dict[str, Any]:
    """Mean, spread, success rate, length and ends of the episodes."""
    fitness = episode_statistics(evaluation, description.success_fitness)
    return {
        "episodes": len(evaluation.episodes),
        "seed": evaluation.seed,
        "mean": fitness.mean,
        "std": fitness.std,
        "unit": description.fitness_unit,
        "success_rate": fitness.success_rate,
        "mean_length": statistics.fmean(episode.length for episode in evaluation.episodes),
        "ended_by": dict(
            Counter(episode.ended_by for episode in evaluation.episodes).most_common()
        ),
    }


MOST_CHILDREN = 5
"""Most children of an attempt that are described, newest first."""
_ENDED = (Stage.TRAINED, Stage.FAILED)


def changes(attempt: Attempt, history: Sequence[Attempt]) -> tuple[str, ...]:
    """Descriptions of the change from its parent, and to each child, with their fitness."""
    known = {each.id: each for each in history}
    children = [
        each
        for each in reversed(last_revisions(history))
        if each.stage in _ENDED and each.proposal.parents[:1] == (attempt.id,)
    ]
    made_from = [known[each] for each in attempt.proposal.parents[:1] if each in known]
    return (
        *(
            f"{attempt.id} itself, made from {parent.id}: {_change(parent, attempt)}"
            for parent in made_from
        ),
        *(
            f"{child.id}, made from {attempt.id}: {_change(attempt, child)}"
            for child in children[:MOST_CHILDREN]
        ),
    )


def _change(before: Attempt, after: Attempt) -> str:
    change = (
        f"{difference(before.proposal.reward.source, after.proposal.reward.source)}: fitness"
        f" {significant(before.fitness)}"
    )
    if after.stage is Stage.FAILED:
        return f"{change} → its training failed: {after.reason}"
    trainings = f"{_trainings(before)} against {_trainings(after)}"
    return f"{change} → {significant(after.fitness)} ({trainings})"


def _trainings(attempt: Attempt) -> str:
    count = len(attempt.fitness_per_seed)
    return "one training" if count == 1 else f"the mean of {count} trainings"


def coverage_so_far(run: Run, state: RunState) -> Coverage | None:
    """Lack of coverage of all that a run has trained up to `state`."""
    scores, steps = score_table(state.trainings()), run.settings.env_steps
    return coverage(state.attempts(), scores, run.description, steps)


def seed_spread(history: Sequence[Attempt], references: Sequence[Score] = ()) -> float | None:
    """Standard deviation between trainings of one reward, pooled; None if nothing was trained
    twice. A baseline that always comes to the same says nothing of the noise of the others."""
    trained = [attempt.fitness_per_seed for attempt in history]
    of_baselines = (
        tuple(value for value in score.fitness if value is not None) for score in references
    )
    trained += [values for values in of_baselines if len(set(values)) > 1]
    repeated = [values for values in trained if len(values) > 1]
    if not repeated:
        return None
    freedom = sum(len(values) - 1 for values in repeated)
    return math.sqrt(
        sum((len(values) - 1) * statistics.variance(values) for values in repeated) / freedom
    )
