"""An archive that is read further while another connection writes."""

from __future__ import annotations

import random
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

from eureka_agent.archive.database import Archive
from eureka_agent.journal import entries
from eureka_agent.records import Attempt, Cost, FinalTraining, Message, RunStatus, Stage, Verdict

Make = Callable[..., Attempt]


def a_message(number: int) -> Message:
    cost = Cost(money=Decimal(number), prompt_tokens=number, completion_tokens=1)
    return Message(
        role="designer",
        model="m",
        attempt=f"1-{number % 3:02}",
        request="q" * 999,
        reply="r",
        cost=cost,
    )


def test_every_look_equals_a_fresh_reading(tmp_path: Path, make_attempt: Make) -> None:
    """A random search, looked at after a random number of entries each."""
    random.seed(11)
    written = Archive(tmp_path)
    written._connection.execute("PRAGMA synchronous=OFF")  # there is no power cut
    written.append(entries.RunCreated(command=("eureka", "search")))
    looked = Archive(tmp_path, reading=True)
    for number in range(60):
        attempt = make_attempt(number // 8, number % 8, 1.0)
        written.append(
            entries.Proposed(
                attempt=attempt.id,
                iteration=attempt.iteration,
                sample=attempt.sample,
                revision=0,
                proposal=attempt.proposal,
                seed=number,
            )
        )
        written.append(entries.Judged(attempt=attempt.id, verdict=Verdict()))
        if number % 3:
            written.append(
                entries.AttemptEnded(
                    attempt=attempt.id, stage=Stage.TRAINED, outcome=attempt.outcome
                )
            )
        written.put(f"key {number % 40}", a_message(number))  # some are replaced
        if number % 7 == 0:
            training = FinalTraining(name="human", seed=number, outcome=attempt.outcome)
            written.append(entries.FinalTrained(training=training))
        if random.random() < 0.4:
            fresh = Archive(tmp_path, reading=True)
            assert looked.attempts_in_brief() == fresh.attempts_in_brief()
            assert looked.account() == fresh.account()
            assert looked.facts == fresh.facts
            assert looked.messages_of("1-01") == fresh.messages_of("1-01")
            fresh.close()
    written.append(entries.RunEnded(status=RunStatus.FINISHED, message="done"))
    assert looked.facts.status is RunStatus.FINISHED
    assert looked.facts.message == "done"
    assert len(looked.account()) == 40
    looked.close()
    written.close()
