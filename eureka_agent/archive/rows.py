"""An attempt as a row of the archive: a projection of the journal, for lists."""

from __future__ import annotations

from eureka_agent.records import Attempt, Cost, Outcome, Proposal, Verdict

PLACES = ", ".join("?" * 13)
"""SQL placeholders for a row."""


def attempt_row(attempt: Attempt) -> tuple[object, ...]:
    """Row of an attempt."""
    return (
        attempt.id,
        attempt.iteration,
        attempt.sample,
        attempt.revision,
        attempt.proposal.operator.value,
        " ".join(attempt.proposal.parents),
        attempt.stage.value,
        attempt.reason,
        attempt.fitness,
        len(attempt.fitness_per_seed),
        attempt.retries,
        attempt.created,
        in_brief(attempt).model_dump_json(exclude_defaults=True),
    )


def in_brief(attempt: Attempt) -> Attempt:
    """Attempt with the fields of a list: no sources, texts and curves; the first error, the
    analyzer's first finding, and without a fitness the last scored rung."""
    findings = attempt.verdict.findings if attempt.verdict is not None else ()
    errors = tuple(each for each in findings if each.severity == "error")[:1]
    diagnosis = attempt.diagnosis
    if diagnosis is not None and not diagnosis.findings:
        diagnosis = None
    elif diagnosis is not None:
        nothing = {"fitness_values": (), "episode_length_values": (), "components": (), "text": ""}
        diagnosis = diagnosis.model_copy(update={**nothing, "findings": diagnosis.findings[:1]})
    scored = [] if attempt.fitness is not None else attempt.rungs
    rungs = [each for each in scored if each.fitness is not None][-1:]
    return attempt.model_copy(
        update={
            "proposal": brief_proposal(attempt.proposal),
            "verdict": Verdict(findings=errors) if errors else None,
            "outcome": _outcome_in_brief(attempt.outcome),
            "rungs": tuple(each.model_copy(update={"evaluation": None}) for each in rungs),
            "diagnosis": diagnosis,
            "analysis": "",
            "repeats": tuple(
                each.model_copy(update={"outcome": _outcome_in_brief(each.outcome)})
                for each in attempt.repeats
            ),
        }
    )


def brief_proposal(proposal: Proposal) -> Proposal:
    """Proposal without source and texts."""
    nothing = {"reasoning": "", "prompt": "", "reply": "", "cost": Cost()}
    return proposal.model_copy(update={"reward": proposal.reward.with_source(""), **nothing})


def _outcome_in_brief(outcome: Outcome | None) -> Outcome | None:
    return outcome and outcome.model_copy(update={"checkpoints": (), "ended_by": {}})
