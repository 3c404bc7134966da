"""An archive that is read further while another connection writes."""

from __future__ import annotations

import random
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest
from stored_attempts import store_attempt

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


def test_a_look_parses_only_what_is_new(
    tmp_path: Path, make_attempt: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[str] = []
    real = Archive._parsed

    def counting(self: Archive, model: type, text: object, what: str = "") -> object:
        parsed.append(model.__name__)
        return real(self, model, text, what)

    monkeypatch.setattr(Archive, "_parsed", counting)
    written = Archive(tmp_path)
    written._connection.execute("PRAGMA synchronous=OFF")  # there is no power cut
    for number in range(20):
        attempt = make_attempt(0, number, 1.0)
        store_attempt(written, attempt)
        written.put(f"key {number}", a_message(number))
    looked = Archive(tmp_path, reading=True)
    looked.attempts_in_brief(), looked.account(), looked.facts
    assert (parsed.count("Attempt"), parsed.count("Cost")) == (20, 20)
    parsed.clear()
    looked.attempts_in_brief(), looked.account(), looked.facts
    assert parsed == []
    written.append(entries.Analysed(attempt="1-05", text="it fell"))
    looked.attempts_in_brief(), looked.account(), looked.facts
    assert parsed == ["Attempt"]
    looked.close()
    written.close()
