"""Facts about an attempt's parents and children, and advice that is not given again."""

from __future__ import annotations

import pytest
from planned_attempts import planned

from eureka_agent.records import Attempt, Diagnosis, DiagnosisFinding, Operator, Stage
from eureka_agent.search.lineage import changes, seed_spread, vain_findings

DEAD = DiagnosisFinding(
    code="dead-component", message="b is dead", advice="raise it", component="b", value=0.1
)
OTHER = DiagnosisFinding(
    code="dead-component", message="c is dead", advice="raise it", component="c", value=0.1
)


def reward(gain: float) -> str:
    return (
        f"GAIN = {gain}\n\ndef compute_reward(position):\n    pull = GAIN * position\n    return"
        " pull, {'pull': pull}\n"
    )


def diagnosed(attempt: Attempt, *findings: DiagnosisFinding) -> Attempt:
    diagnosis = Diagnosis(
        fitness=None,
        fitness_values=(),
        episode_length_values=(),
        components=(),
        findings=findings,
        text="",
    )
    return attempt.model_copy(update={"diagnosis": diagnosis})


def test_a_child_is_told_with_its_change_and_both_fitnesses() -> None:
    first = planned(1, 0, 24.1, source=reward(1.0))
    better = planned(2, 0, 26.0, Operator.IMPROVE, ["1-0"], source=reward(2.0))
    broken = planned(2, 2, None, Operator.IMPROVE, ["1-0"], source=reward(8.0))
    refused = planned(2, 3, None, Operator.IMPROVE, ["1-0"], stage=Stage.REJECTED)
    crossed = planned(2, 4, 30.0, Operator.CROSSOVER, ["9-9", "1-0"])
    history = [first, better, broken, refused, crossed]
    assert changes(first, history) == (
        "2-2, made from 1-0: GAIN 1 → 8: fitness 24.1 → its training failed: ",
        "2-0, made from 1-0: GAIN 1 → 2: fitness 24.1 → 26 (one training against one training)",
    )
    assert changes(better, history) == (
        (
            "2-0 itself, made from 1-0: GAIN 1 → 2: fitness 24.1 → 26 (one training against one"
            " training)"
        ),
    )


def children(*fitness: float, operator: Operator = Operator.IMPROVE) -> list[Attempt]:
    return [planned(2, place, value, operator, ["1-0"]) for place, value in enumerate(fitness)]


@pytest.mark.parametrize(
    ("followed", "vain"),
    [
        (children(3.0, 4.0), True),
        (children(3.0, 5.1), False),  # one was better
        (children(3.0), False),  # one may be bad luck
        (children(3.0, 4.0, operator=Operator.FRESH), False),  # nobody was told
        ([], False),
    ],
)
def test_advice_is_in_vain_where_no_child_was_better(followed: list[Attempt], vain: bool) -> None:
    first = diagnosed(planned(1, 0, 5.0), DEAD)
    assert vain_findings(first, [first, *followed]) == ((DEAD,) if vain else ())


def test_advice_is_not_repeated_down_the_line_but_elsewhere() -> None:
    first = diagnosed(planned(1, 0, 5.0), DEAD)
    child = diagnosed(
        planned(2, 0, 4.0, Operator.IMPROVE, ["1-0"]), DEAD.model_copy(update={"value": 0.2}), OTHER
    )
    history = [first, child, planned(2, 1, 3.0, Operator.IMPROVE, ["1-0"])]
    assert [each.component for each in vain_findings(child, history)] == ["b"]
    stranger = diagnosed(planned(2, 5, 4.0), DEAD)
    assert vain_findings(stranger, [*history, stranger]) == ()
    assert vain_findings(planned(3, 0, 1.0), history) == ()


def test_attempts_that_name_each_other_as_parents_come_to_an_end() -> None:
    first = diagnosed(planned(1, 0, 5.0, Operator.IMPROVE, ["1-1"]), DEAD)
    second = diagnosed(planned(1, 1, 4.0, Operator.IMPROVE, ["1-0"]), DEAD)
    assert vain_findings(first, [first, second]) == ()


def test_the_spread_between_seeds_is_pooled() -> None:
    once = planned(1, 0, 7.0)
    assert seed_spread([once]) is None

    def repeated(fitness: float, *others: float) -> Attempt:
        attempt = planned(1, 1, fitness)
        repeats = [
            {"iteration": 0, "seed": 1, "outcome": planned(1, 2, other).outcome} for other in others
        ]
        return Attempt.model_validate(attempt.model_dump() | {"repeats": repeats})

    # squares 2 · 1 about 3 with one degree of freedom, and 2 · 4 about 4 with two (2, 4, 6): (2 +
    # 8) / 3
    assert seed_spread([once, repeated(2.0, 4.0), repeated(2.0, 4.0, 6.0)]) == pytest.approx(
        (10 / 3) ** 0.5
    )
