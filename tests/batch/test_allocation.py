"""Shares by promise: the median stopping rule, with medians by hand."""

from __future__ import annotations

from pathlib import Path

from eureka_agent.batch.allocation import PromisingFirst
from eureka_agent.fleet.share import Share
from eureka_agent.journal.entries import AttemptEnded, IterationEnded, RunStarted
from eureka_agent.records import Outcome, Stage, TaskDescription
from eureka_agent.settings import SearchSettings


def began(description: TaskDescription) -> RunStarted:
    return RunStarted(
        run_folder=Path(),
        run_name="run",
        description=description,
        sentence="run",
        settings=SearchSettings(),
        wall="process",
        designer="offline",
    )


def trained(fitness: float) -> AttemptEnded:
    outcome = Outcome(
        env_steps=100,
        seconds=1.0,
        checkpoints=(),
        best_checkpoint=0,
        training_fitness=None,
        fitness=fitness,
    )
    return AttemptEnded(attempt="0-00", stage=Stage.TRAINED, outcome=outcome)


def generation(allocation: PromisingFirst, search: str, number: int, *fitness: float) -> None:
    for value in fitness:
        assert not allocation.observe(search, trained(value))
    assert allocation.observe(search, IterationEnded(iteration=number, best=None))


def test_a_search_below_the_median_yields_until_it_catches_up(
    description: TaskDescription,
) -> None:
    allocation = PromisingFirst()
    shares = {name: Share() for name in ("a", "b", "c")}
    for name in shares:
        allocation.observe(name, began(description))
    generation(allocation, "a", 0, 1.0, 5.0)
    generation(allocation, "b", 0, 9.0)
    generation(allocation, "c", 0, 7.0)
    assert list(allocation.changes(shares)) == []  # one generation is a draw
    generation(allocation, "b", 1, 2.0)  # its best stays 9
    generation(allocation, "a", 1, 6.0)
    assert list(allocation.changes(shares)) == []  # one other alone has two generations
    generation(allocation, "c", 1, 7.5)
    # after two generations: a 6, b 9, c 7.5; the median of the others of a is 8.25, of c 7.5
    (change,) = [each for each in allocation.changes(shares) if each[0] == "a"]
    assert "is 6, the median of 2 others 8.25" in change[1]
    assert (shares["a"].weight, shares["b"].weight, shares["c"].weight) == (0.25, 1.0, 1.0)
    assert list(allocation.changes(shares)) == []  # told once
    generation(allocation, "a", 2, 8.0)
    generation(allocation, "b", 2)
    generation(allocation, "c", 2)
    # after three: a 8, b 9, c 7.5; the median of the others of a is 8.25, of c 8.5
    assert [name for name, _ in allocation.changes(shares)] == ["c"]
    generation(allocation, "a", 3, 20.0)
    generation(allocation, "b", 3)
    generation(allocation, "c", 3)
    assert dict(allocation.changes(shares)).keys() == {"a", "b"}
    assert (shares["a"].weight, shares["b"].weight, shares["c"].weight) == (1.0, 0.25, 0.25)


def test_searches_of_other_tasks_are_not_compared(description: TaskDescription) -> None:
    allocation = PromisingFirst()
    other = description.model_copy(update={"fingerprint": "another"})
    shares = {name: Share() for name in ("a", "b", "c")}
    for name in shares:
        allocation.observe(name, began(description if name == "a" else other))
        for number in range(2):
            generation(allocation, name, number, 1.0 if name == "a" else 9.0)
    assert list(allocation.changes(shares)) == []
