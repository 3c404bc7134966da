"""Requests of each role in a stored run, and the outcomes of its reviewer's findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from eureka_agent.critic.critic import REVIEW
from eureka_agent.critic.review import EXPLOIT
from eureka_agent.records import Attempt, Message, Stage

CHEATED = "reward-hacking"
"""Finding of a training whose reward rose while its fitness fell. Reviewers warn of it."""


@dataclass(frozen=True)
class Reviews:
    """Counts of a run's reviews, and of what the trainings then showed."""

    made: int
    contradictions: int
    """Contradictions that kept a reward from being trained."""
    warned: int
    """Trained rewards in which the reviewer saw a way to cheat."""
    warned_cheated: int
    """True warnings among these: the training cheated, was stopped or broke off."""
    calm: int
    """Trained rewards in which the reviewer saw nothing."""
    calm_cheated: int
    """Rewards among these that the reviewer missed: the training cheated, was stopped or broke
    off."""


def requests_by_role(messages: Sequence[Message]) -> dict[str, tuple[int, int]]:
    """Requests and tokens of each role."""
    requests: Counter[str] = Counter()
    tokens: Counter[str] = Counter()
    for message in messages:
        requests[message.role] += 1
        tokens[message.role] += (message.cost.prompt_tokens or 0) + (
            message.cost.completion_tokens or 0
        )
    return {role: (count, tokens[role]) for role, count in requests.most_common()}


def reviews(attempts: Sequence[Attempt]) -> Reviews:
    """Counts of the reviewed attempts' outcomes."""
    seen = [
        attempt
        for attempt in attempts
        if attempt.verdict is not None and REVIEW in attempt.verdict.steps_run
    ]
    codes = {
        attempt.id: {each.code for each in attempt.verdict.findings}
        for attempt in seen
        if attempt.verdict
    }
    contradictions = [attempt for attempt in seen if attempt.stage is Stage.REJECTED]
    ended = [attempt for attempt in seen if attempt.stage in (Stage.TRAINED, Stage.FAILED)]
    warned = [attempt for attempt in ended if EXPLOIT in codes[attempt.id]]
    calm = [attempt for attempt in ended if EXPLOIT not in codes[attempt.id]]
    return Reviews(
        made=len(seen),
        contradictions=len(contradictions),
        warned=len(warned),
        warned_cheated=sum(map(_came_true, warned)),
        calm=len(calm),
        calm_cheated=sum(map(_came_true, calm)),
    )


def _came_true(attempt: Attempt) -> bool:
    found = () if attempt.diagnosis is None else attempt.diagnosis.findings
    return attempt.stage is not Stage.TRAINED or any(finding.code == CHEATED for finding in found)


def table(messages: Sequence[Message], attempts: Sequence[Attempt]) -> str:
    """Both counts, as lines for a terminal."""
    whole = max(1, len(messages))
    lines = [
        f"{role:10} {count:5} requests ({count / whole:.0%}), {tokens:9,} tokens"
        for role, (count, tokens) in requests_by_role(messages).items()
    ]
    found = reviews(attempts)
    if found.made:
        lines += [
            f"{found.made} reviews: {found.contradictions} turned down",
            (
                f"{found.warned} warned of: {found.warned_cheated} came true; {found.calm} not"
                f" warned of: {found.calm_cheated} cheated, stopped or broke off"
            ),
        ]
    return "\n".join(lines)
