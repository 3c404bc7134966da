"""A run as the report shows it, read from its archive alone."""

from __future__ import annotations

from eureka_agent.archive.run_folder import Run
from eureka_agent.records import Attempt
from eureka_agent.report.model import RunReport
from eureka_agent.search.scoring import score_table
from eureka_agent.search.strategy import ranked


def best_attempt(run: Run) -> Attempt | None:
    """The finalist with the highest mean over the final seeds; the best of the search where there was no final."""
    for score in score_table(run.archive.trainings()):
        if score.name not in ("human", "sparse") and score.mean is not None:
            return run.archive.attempt(score.name)
    trained = ranked(run.archive.attempts())
    return trained[0] if trained else None
