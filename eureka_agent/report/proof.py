"""A proof by another library, as lines and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eureka_agent import wording
from eureka_agent.records import BASELINES, Score
from eureka_agent.report.as_json import score_to_json
from eureka_agent.report.comparison import FEWEST_SEEDS, compare_scores, known_fitness


def proof_rows(
    proved: Sequence[Score], own: Sequence[Score], unit: str
) -> list[tuple[str, str, str]]:
    """A row for each reward: name, fitness by the library, fitness by this trainer."""
    here = {score.name: score for score in own}
    rows = []
    for score in proved:
        ours = here.get(score.name)
        cells = (_cell(score, unit), "-" if ours is None else _cell(ours, unit))
        rows.append((score.name, *cells))
    return rows


def _cell(score: Score, unit: str) -> str:
    many = len(known_fitness(score))
    failed = len(score.seeds) - many
    text = f"{wording.plus_minus(score.mean, score.std)}{unit} ({wording.plural(many, 'seed')})"
    return f"{text}, {failed} failed" if failed else text


def proof_sentence(proved: Sequence[Score], own: Sequence[Score], library: str) -> str:
    """Comparison of the winner with the baselines by the library, and with that of this trainer."""
    winner, *baselines = proved
    here = {score.name: score for score in own}
    parts, alike = [], []
    for baseline in baselines:
        there = relation(winner, baseline)
        parts.append(f"{there} {baseline.name}")
        if winner.name in here and baseline.name in here:
            one, other = here[winner.name], here[baseline.name]
            if compare_scores(winner, baseline) and compare_scores(one, other):
                alike.append(there == relation(one, other))
    if not parts:
        return f"by {library}: there is no baseline to compare {winner.name} with"
    agrees = ""
    if alike:
        agrees = ", as by this trainer" if all(alike) else "; this trainer's own scores differ"
    return f"by {library}, {winner.name} is {' and '.join(parts)}{agrees}"


def relation(ours: Score, theirs: Score) -> str:
    """`better than`, `worse than`, or `not told apart from` beyond the noise of the seeds."""
    comparison = compare_scores(ours, theirs)
    if comparison is None:
        return f"not compared (fewer than {FEWEST_SEEDS} seeds) with"
    return comparison.relation


def proof_json(proved: Sequence[Score], own: Sequence[Score]) -> dict[str, Any]:
    """Scores by the library and by this trainer, by name."""
    names = [score.name for score in proved]
    return {
        "winner": next(name for name in names if name not in BASELINES),
        "scores": [score_to_json(score) for score in proved],
        "own_scores": [score_to_json(score) for score in own if score.name in names],
    }
