"""Questions to stored episodes: what may be asked, and the statistics, worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from eureka_agent.analysis.questions import QuestionAnswer, QuestionError, answer, answer_lines
from eureka_agent.critic.expressions import question
from eureka_agent.records import TaskDescription, VariableSpec

SEEN = tuple(
    VariableSpec(name=name, shape=shape, unit="m", frame="world", doc="d", private=private)
    for name, shape, private in (
        ("speed", (), False),
        ("goal", (2,), False),
        ("distance", (), False),
        ("secret", (), True),
    )
)


@pytest.fixture
def seen(description: TaskDescription) -> TaskDescription:
    return description.model_copy(update={"variables": SEEN, "constants": ()})


def test_a_question_is_a_reward_of_its_variables(seen: TaskDescription) -> None:
    asked = question("speed * 2", "torch.abs(distance - previous_distance) < 0.1", seen)
    assert asked.source == (
        "def compute_reward(distance, previous_distance, speed):\n"
        "    total = (speed * 2).float()\n"
        '    return total, {"where": (torch.abs(distance - previous_distance) < 0.1).float()}\n'
    )
    assert question("goal[:, 0]", "", seen).source.endswith("return total, {}\n")


@pytest.mark.parametrize(
    ("expression", "where", "message", "hint"),
    [
        ("sped", "", "there is no variable 'sped'", "did you mean 'speed'?"),
        ("secret", "", "there is no variable 'secret'", "expected one of"),
        ("speed", "secret > 0", "there is no variable 'secret'", "expected one of"),
        ("1 + 1", "", "names no variable", "expected one of"),
        ("speed; distance", "", "is not one expression", "such as"),
        ("speed)\nimport os\n(1", "", "is not one expression", "such as"),
        ("speed if", "", "is not one expression", "such as"),
        ("torch.load(speed)", "", "the expression 'torch.load(speed)': `torch.load`", "pure"),
        ("speed", "torch.save(distance)", "the condition 'torch.save(distance)'", "pure"),
        ("speed.__class__", "", "the expression", ""),
        ("open(speed)", "", "the expression", ""),
        ("[speed for speed in (1, 2)]", "", "names no variable", "expected one of"),
    ],
)
def test_what_may_not_be_asked(
    seen: TaskDescription, expression: str, where: str, message: str, hint: str
) -> None:
    with pytest.raises(QuestionError) as caught:
        question(expression, where, seen)
    assert message in caught.value.message
    assert hint in caught.value.hint


def asked(seen: TaskDescription, where: bool = True) -> QuestionAnswer:
    """Two episodes of 8 steps, in which the goal jumps with step 4; speeds of 0 to 7 and 10 to 17;
    the second episode gains in its last four steps, which are near."""
    goal = np.repeat([[0.0, 0.0], [1.0, 1.0]], 4, axis=0)
    near = np.repeat([0.0, 1.0], 4)
    episodes = {
        "0": {"goal": goal, "fitness": np.zeros(8)},
        "1": {"goal": goal, "fitness": near},
    }
    speeds = [*map(float, range(8)), *(10.0 + each for each in range(8))]
    told = ("speed", "distance < 0.1" if where else "")
    return answer(told, speeds, [*near, *near] if where else None, episodes, seen)


def test_statistics_are_those_of_the_steps_that_meet_the_condition(seen: TaskDescription) -> None:
    found = asked(seen)
    # 4 5 6 7 and 14 15 16 17
    assert (found.episodes, found.steps, found.chosen) == (2, 16, 8)
    assert found.mean == pytest.approx(10.5)
    assert found.quantiles[2] == pytest.approx(10.5)
    # quarters of two steps: none near, none near, 4 5 14 15, 6 7 16 17
    assert found.by_quarter == (None, None, pytest.approx(9.5), pytest.approx(11.5))
    # parts of four steps, of which the second of each episode is near: 4 14, 5 15, 6 16, 7 17
    assert found.by_part == tuple(map(pytest.approx, (9.0, 10.0, 11.0, 12.0)))
    assert (found.worst, found.best) == (pytest.approx(5.5), pytest.approx(15.5))
    assert (found.worst_share, found.best_share) == (0.5, 0.5)
    # of eight steps there four gain one each, of the others none
    assert (found.fitness, found.other_fitness) == (0.5, 0.0)


def test_without_a_condition_all_steps_count(seen: TaskDescription) -> None:
    found = asked(seen, where=False)
    assert (found.chosen, found.mean) == (16, pytest.approx(8.5))
    assert not found.is_condition
    assert answer_lines(found)[0] == "16 of 16 steps (100%) of 2 episodes"
    assert not any("elsewhere" in line for line in answer_lines(found))


def test_a_condition_is_told_in_shares_and_what_is_no_number_is_left_out(
    seen: TaskDescription,
) -> None:
    episodes = {"0": {"fitness": np.zeros(5)}}
    found = answer(("speed < 1", ""), [1.0, 1.0, 0.0, None, 1.0], None, episodes, seen)
    assert found.is_condition
    assert (found.chosen, found.mean) == (4, 0.75)
    assert "mean 75%" in answer_lines(found)
    assert found.by_part == ()


def test_values_of_other_steps_are_refused(seen: TaskDescription) -> None:
    with pytest.raises(QuestionError, match="other steps"):
        answer(("speed", ""), [1.0], None, {"0": {"fitness": np.zeros(2)}}, seen)
