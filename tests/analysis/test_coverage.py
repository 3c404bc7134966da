"""Trainings that never came to what the fitness pays for, and the nearest cases that did."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from curve_makers import outcome, points

from eureka_agent.analysis.coverage import CODE, Coverage, coverage, nothing_told_apart, visited
from eureka_agent.analysis.curves import gather
from eureka_agent.analysis.findings import all_findings
from eureka_agent.records import (
    Attempt,
    Diagnosis,
    DiagnosisFinding,
    EpisodeSummary,
    Evaluation,
    Score,
    TaskDescription,
)

MakeAttempt = Callable[..., Attempt]


@pytest.fixture
def sparse(description: TaskDescription) -> TaskDescription:
    """The description of tests/conftest.py, 10 s an episode, whose fitness reads a position."""
    return description.model_copy(update={"fitness_variables": ("cart_position",)})


def evaluation(*fitness: float, ended_by: str = "time_out") -> Evaluation:
    episodes = tuple(EpisodeSummary(fitness=each, length=9, ended_by=ended_by) for each in fitness)
    return Evaluation(episodes=episodes, seed=0)


def codes(
    description: TaskDescription, checkpoints: list[float | None], played: Evaluation | None
) -> list[str]:
    made = outcome(checkpoints)
    evidence = gather(made, points(fitness=0.0), played, description, "", {})
    return [each.code for each in all_findings(evidence)]


def test_a_fitness_that_was_the_same_everywhere_was_never_paid(sparse: TaskDescription) -> None:
    nothing = codes(sparse, [None, 0.0, 0.0, 0.0, 0.0, 0.0], evaluation(0.0, 0.0))
    assert nothing[0] == CODE
    assert "no-learning" not in nothing  # the same, said worse


@pytest.mark.parametrize(
    ("checkpoints", "played"),
    [
        ([0.0, 0.01, 0.0, 0.0, 0.0, 0.0], (0.0, 0.0)),  # exploration came there once
        ([0.0] * 6, (0.0, 0.02)),  # the policy does, in one episode of two
        ([8.0] * 6, (8.0, 8.0)),  # solved from the start
    ],
)
def test_what_was_paid_once_can_be_learned(
    sparse: TaskDescription, checkpoints: list[float | None], played: tuple[float, ...]
) -> None:
    assert CODE not in codes(sparse, checkpoints, evaluation(*played))


def test_ranges_are_those_of_both_episodes(sparse: TaskDescription) -> None:
    read = sparse.model_copy(update={"fitness_variables": ("height", "place", "actions", "gone")})
    episodes = {
        "worst": {"height": np.array([1.0, 0.5]), "place": np.array([[0.0, 1.0], [2.0, 3.0]])},
        "best": {"height": np.array([0.75, 2.5]), "place": np.array([[-1.0, 5.0]])},
    }
    assert visited(episodes, read) == {
        "height": (0.5, 2.5),
        "place[0]": (-1.0, 2.0),
        "place[1]": (1.0, 5.0),
    }


def never(low: float, high: float, cause: str | None = None) -> Diagnosis:
    return Diagnosis(
        fitness=0.0,
        fitness_values=(0.0,),
        episode_length_values=(9.0,),
        components=(),
        findings=(DiagnosisFinding(code=CODE, message="…", advice="…", cause=cause),),
        visited={"cart_position": (low, high)},
        text="",
    )


def score(name: str, *fitness: float) -> Score:
    seeds = tuple(range(len(fitness)))
    mean = sum(fitness) / len(fitness)
    return Score(name=name, seeds=seeds, fitness=fitness, mean=mean, std=0.0)


def found(
    make_attempt: MakeAttempt, description: TaskDescription, *scores: Score
) -> Coverage | None:
    attempts = [
        make_attempt(0, 0, 0.0, diagnosis=never(0.5, 0.75)),
        make_attempt(0, 1, 0.0, diagnosis=never(0.25, 0.5)),
        make_attempt(0, 2),  # rejected
    ]
    return coverage(attempts, scores, description, 300_000)


def test_a_search_lacks_what_no_training_reached(
    make_attempt: MakeAttempt, sparse: TaskDescription
) -> None:
    lacking = found(make_attempt, sparse, score("human", 0.0, 0.0), score("1-01", 0.0))
    assert lacking is not None
    assert (lacking.fitness, lacking.trainings, lacking.baselines) == (0.0, 2, ("human",))
    assert lacking.visited == {"cart_position": (0.25, 0.75)}
    assert "cart_position was 0.250 to 0.750" in lacking.text
    proposals = " / ".join(lacking.proposals)
    assert "start states nearer" in proposals
    assert "longer episodes (now 10 s)" in proposals
    assert "more env steps (now 300,000)" in proposals


def test_where_a_baseline_or_one_attempt_came_there_rewards_can_too(
    make_attempt: MakeAttempt, sparse: TaskDescription
) -> None:
    assert found(make_attempt, sparse, score("human", 0.0, 0.5)) is None
    lucky = make_attempt(1, 0, 0.1)
    assert coverage([make_attempt(0, 0, 0.0, diagnosis=never(0, 1)), lucky], [], sparse, 9) is None
    assert coverage([], [], sparse, 9) is None


@pytest.mark.parametrize(
    ("fitness", "began", "solved", "alike"),
    [
        ((0.0, 0.0, 0.0), 0.0, None, True),
        ((0.0, 0.0, 0.0), 0.3, 8.0, True),  # by chance while it explored, and never again
        ((500.0, 500.0), 22.0, None, False),  # learned to the end by both
        ((500.0, 500.0), 500.0, None, True),  # by doing nothing
        ((0.0, 0.01), 0.0, None, False),
        ((0.0,), 0.0, None, False),  # a person's own reward, which is to be scored
    ],
)
def test_rewards_that_all_came_to_the_same_are_not_trained_again(
    fitness: tuple[float, ...],
    began: float,
    solved: float | None,
    alike: bool,
    description: TaskDescription,
    make_attempt: MakeAttempt,
) -> None:
    known = description.model_copy(update={"success_fitness": solved})
    attempts = []
    for sample, value in enumerate(fitness):
        attempt = make_attempt(0, sample, value)
        trained = outcome([began, value]).model_copy(update={"fitness": value})
        attempts.append(attempt.model_copy(update={"outcome": trained}))
    told = nothing_told_apart(attempts, known)
    count = len(fitness)
    begins = f"the {count} trainings of {count} rewards all ended at a fitness of "
    assert told.startswith(begins) if alike else told == ""
