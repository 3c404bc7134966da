"""Attempts of tests in an archive, by the entries that a search would have written."""

from __future__ import annotations

from collections.abc import Iterator

from eureka_agent.archive.database import Archive
from eureka_agent.journal import entries
from eureka_agent.journal.state import Recorded
from eureka_agent.records import Attempt, Stage, Verdict


def entries_of(attempt: Attempt) -> Iterator[entries.BaseEntry]:
    """Entries after which the journal's state has the attempt, but for its time."""
    of = attempt.id
    yield entries.Proposed(
        attempt=of,
        iteration=attempt.iteration,
        sample=attempt.sample,
        revision=attempt.revision,
        proposal=attempt.proposal,
        seed=attempt.seed,
    )
    if attempt.verdict is not None or attempt.stage is Stage.ACCEPTED:
        yield entries.Judged(attempt=of, verdict=attempt.verdict or Verdict())
    for score in attempt.rungs:
        yield entries.RungScored(attempt=of, score=score)
    if attempt.stage not in (Stage.PROPOSED, Stage.ACCEPTED):
        yield entries.AttemptEnded(
            attempt=of,
            stage=attempt.stage,
            reason=attempt.reason,
            retries=attempt.retries,
            outcome=attempt.outcome,
            diagnosis=attempt.diagnosis,
        )
    for repeat in attempt.repeats:
        yield entries.AttemptRepeated(attempt=of, repeat=repeat)
    if attempt.analysis:
        yield entries.Analysed(attempt=of, text=attempt.analysis)


def store_attempt(archive: Archive, attempt: Attempt) -> Recorded:
    """Append an attempt's entries. Returns the last of them."""
    return [archive.append(entry) for entry in entries_of(attempt)][-1]
