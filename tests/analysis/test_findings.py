"""Each finding on curves made by hand: where it must fire, and the nearest case where it must
not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from curve_makers import evidence, point, points

from eureka_agent.analysis import findings
from eureka_agent.analysis.curves import noise, rank_correlation
from eureka_agent.label_records import LearnedLabels
from eureka_agent.records import (
    CurvePoint,
    EpisodeSummary,
    Evaluation,
    LearnedReward,
    TaskDescription,
)

# the description of tests/conftest.py: 500 steps an episode, solved from a fitness of 8


def test_noise_is_that_of_successive_differences() -> None:
    # differences 2, −2, 2: sqrt(mean(4)/2) = sqrt(2)
    assert noise(np.array([0.0, 2.0, 0.0, 2.0])) == pytest.approx(np.sqrt(2.0))
    assert noise(np.array([3.0])) == 0.0


def test_rank_correlation_against_hand_counted_ranks() -> None:
    rising = np.array([1.0, 2.0, 3.0, 4.0])
    assert rank_correlation(rising, rising**3) == pytest.approx(1.0)
    assert rank_correlation(rising, -rising) == pytest.approx(-1.0)
    # ranks 0 1 2 3 against 0.5 0.5 2 3: centred −1.5 −.5 .5 1.5 and −1 −1 .5 1.5; 4.5 / sqrt(5 ·
    # 4.5)
    assert rank_correlation(rising, np.array([1.0, 1.0, 2.0, 5.0])) == pytest.approx(
        4.5 / np.sqrt(22.5)
    )
    assert rank_correlation(rising, np.ones(4)) == 0.0


def test_a_constant_component_is_dead(description: TaskDescription) -> None:
    curve = points(component_deviations={"a": 0.3, "b": 0.001})
    # b is 0.4 with a deviation of 0.001, a quarter of a percent of its size
    (finding,) = findings.dead_components(
        evidence(description, curve=curve, components={"a": [0.6], "b": [0.4]})
    )
    assert (finding.component, finding.value) == ("b", pytest.approx(0.001))
    assert "0.4 in every step" in finding.message


def test_a_component_that_is_tiny_next_to_the_others_is_dead(description: TaskDescription) -> None:
    sizes = {"a": 1.0, "b": 0.002}
    curve = points(
        components=sizes, component_magnitudes=sizes, component_deviations={"a": 0.3, "b": 0.002}
    )
    (finding,) = findings.dead_components(
        evidence(description, curve=curve, components={"a": [1.0], "b": [0.002]})
    )
    assert finding.component == "b"
    assert "all components together are 1" in finding.message


def test_what_a_reward_has_learned_is_told_with_the_largest_slope_first(
    description: TaskDescription,
) -> None:
    slopes = {"near": 0.02, "fast": -0.9}
    learned = LearnedReward(episodes=40, explained=0.3, guess=0.5, slopes=slopes)
    curve = points(components={"a": 9.0, "b": 0.1}, component_magnitudes={"a": 9.0, "b": 0.1})
    told = replace(evidence(description, curve=curve), learned=learned)
    (finding,) = findings.learned_reward(told)
    assert "from 40 episodes. Its sums explain 30%" in finding.message
    assert "fast -0.9, near +0.02; the total itself +0.5" in finding.message
    assert "find a term" in finding.advice
    assert findings.dominant_component(told) == []  # sizes of terms do not count then
    nothing = replace(told, learned=learned.model_copy(update={"explained": 0.0}))
    (finding,) = findings.learned_reward(nothing)
    assert "nothing was learned" in finding.message


@pytest.mark.parametrize(
    ("labelled", "says"),
    [(0, "so the total alone was paid"), (2, "they were paid beside the total")],
)
def test_labels_that_did_not_come_are_not_told_as_paid(
    description: TaskDescription, labelled: int, says: str
) -> None:
    counts = {"captions": 4, "labelled": labelled, "best": {}, "worst": {}}
    learned = LearnedLabels(method="retrieval", **counts)
    (finding,) = findings.learned_reward(replace(evidence(description), learned=learned))
    assert says in finding.message
    assert ("beside the total" in finding.message) == (labelled > 0)
    assert finding.value == labelled


@pytest.mark.parametrize(("size", "fires"), [(9.0, True), (4.0, False)])
def test_dominance_is_a_share_of_the_last_third(
    description: TaskDescription, size: float, fires: bool
) -> None:
    # over the last three of nine points: 9 of 10 is 0.9, 4 of 5 is 0.8; the first six are even
    curve = [
        point(index, component_magnitudes={"a": size if index >= 6 else 1.0, "b": 1.0}) for index in range(9)
    ]  # fmt: skip
    found = findings.dominant_component(evidence(description, curve=curve))
    assert [each.component for each in found] == (["a"] if fires else [])
    if fires:
        assert found[0].value == pytest.approx(0.9)


FALLING = [1.0, 4.0, 6.0, 8.0, 7.5, 6.0, 5.0, 4.0, 3.0, 2.0]
RISING = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]


def test_reward_up_and_fitness_down_is_hacking(description: TaskDescription) -> None:
    components = {"speed": [0.05] * 10, "bonus": [value - 0.05 for value in RISING]}
    (finding,) = findings.reward_hacking(
        evidence(description, FALLING, reward=RISING, components=components)
    )
    # from the best checkpoint on every value of one rises as the other falls: a rank correlation of
    # −1
    assert finding.value == pytest.approx(-1.0)
    assert finding.component == "bonus"
    assert "from 8 to 2" in finding.message
    assert "from 0.4 to 1" in finding.message


@pytest.mark.parametrize(
    ("fitness", "reward"),
    [
        (FALLING, [0.1, 0.2, 0.3, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3]),  # the reward falls as well
        ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0], RISING),  # both rise
        ([5.0, 6.0, 5.0, 6.2, 5.1, 6.0, 5.2, 5.9, 5.0, 5.5], RISING),  # within the noise
    ],
)
def test_other_falls_are_no_hacking(
    description: TaskDescription, fitness: list[float], reward: list[float]
) -> None:
    assert findings.reward_hacking(evidence(description, fitness, reward=reward)) == []


def test_early_ends_name_the_most_common_cause(description: TaskDescription) -> None:
    ends = {"fell": 6, "left": 2, "time_out": 2}
    curve = [
        point(
            index,
            terminations=ends if index >= 6 else {"time_out": 10},
            episodes=10,
            episode_length=50.0,
        )
        for index in range(9)
    ]
    (finding,) = findings.early_termination(evidence(description, curve=curve))
    assert (finding.cause, finding.value) == ("fell", pytest.approx(0.8))
    assert (
        finding.message
        == "80% of the episodes of the training's last third, with exploration noise, ended early,"
        " most often by fell (60% of all), after 50 of 500 steps on average."
    )


@pytest.mark.parametrize(
    ("saturation", "std", "fires"),
    [
        (0.6, 0.5, True),  # noise of 0.5 alone: P(|a| > 0.99) = 4.8 %
        (0.7, 2.0, False),  # noise of 2 alone puts 62 % there
        (0.9, 2.0, True),
    ],
)
def test_saturation_beyond_what_noise_explains(
    description: TaskDescription, saturation: float, std: float, fires: bool
) -> None:
    found = findings.saturated_actions(
        evidence(description, curve=points(action_saturation=saturation, action_std=std))
    )
    assert [each.code for each in found] == (["saturated-actions"] if fires else [])


def test_no_number_names_its_component(description: TaskDescription) -> None:
    failure = "not-a-number: component 'b' was NaN at step 300"
    (finding,) = findings.not_a_number(
        evidence(description, components={"a": [1.0], "b": [1.0]}, failure=failure)
    )
    assert finding.component == "b"
    seen = "not-a-number: the designed observation became NaN, infinite or huge"
    (other,) = findings.not_a_number(evidence(description, failure=seen))
    assert other.message.startswith("The policy's observation was no finite number")
    assert findings.not_a_number(evidence(description, failure="timeout: took 9 s")) == []
    assert findings.not_a_number(evidence(description)) == []


def test_a_flat_fitness_is_no_learning(description: TaskDescription) -> None:
    (finding,) = findings.no_learning(
        evidence(description, [1.0, 1.2, 0.9, 1.1, 1.0, 0.8, 1.1, 1.0, 0.9, 1.05])
    )
    assert finding.value == pytest.approx(0.2)


@pytest.mark.parametrize(
    "fitness",
    [
        [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5],  # steady
        [0.0] * 9
        + [5.0],  # a jump at the end: its own noise is sqrt(25/9/2) = 1.2, three times that is 3.5
        [9.0, 9.1, 9.0, 9.1, 9.0, 9.1],  # solved from the start
        [1.0, 1.0],  # too short to tell
    ],
)
def test_learning_is_seen(description: TaskDescription, fitness: list[float]) -> None:
    assert findings.no_learning(evidence(description, fitness)) == []


def test_a_rise_up_to_the_end_is_still_improving(description: TaskDescription) -> None:
    rising = evidence(description, [0.0, 0.2, 0.5, 1.0, 1.4, 2.0, 2.4, 3.1, 3.6, 4.0])
    (finding,) = findings.still_improving(rising)
    # 0.9 of 4 in the last two of ten parts
    assert (
        finding.message
        == "Fitness with exploration noise rose from 3.1 to 4 in the last 20% of the training,"
        " which is 22% of all that it gained."
    )
    assert finding.value == pytest.approx(0.9)
    # with 25.3 and 25.4 at last after 23.9 the rise has slackened: 1.5 of 24.3 is 6 %
    slackened = [1.1, 4.9, 10.7, 16.0, 18.4, 20.8, 23.3, 23.9, 25.3, 25.4]
    assert findings.still_improving(evidence(description, slackened)) == []
    # 6 to 9 in the last fifth, but the series jumps by as much all the time
    jumping = [3.0, 0.0, 4.0, 1.0, 5.0, 2.0, 6.0, 6.0, 3.0, 9.0]
    assert findings.still_improving(evidence(description, jumping)) == []
    flat = [0.0, 1.0, 3.0, 4.0, 3.9, 4.0, 4.05, 3.95, 4.0, 4.02]
    assert findings.still_improving(evidence(description, flat)) == []


def test_a_fall_with_the_reward_is_a_collapse(description: TaskDescription) -> None:
    reward = [0.1, 0.2, 0.3, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3]
    (finding,) = findings.collapsed(evidence(description, FALLING, reward=reward))
    assert finding.value == pytest.approx(6.0)
    # the same fall under a rising reward has its own name
    assert findings.collapsed(evidence(description, FALLING, reward=RISING)) == []
    # 8 to 6 loses 2 of the 7 gained: less than two fifths
    slight = [1.0, 4.0, 6.0, 8.0, 7.5, 7.0, 6.5, 6.0, 6.0, 6.0]
    assert findings.collapsed(evidence(description, slight, reward=reward)) == []


@pytest.mark.parametrize(("later", "fires"), [(0.1, True), (0.4, False)])
def test_noise_that_shrinks_early_is_lost_exploration(
    description: TaskDescription, later: float, fires: bool
) -> None:
    curve = [point(index, action_std=1.0 if index < 3 else later) for index in range(9)]
    found = findings.exploration_lost(evidence(description, curve=curve))
    assert [each.value for each in found] == ([pytest.approx(0.1)] if fires else [])


@pytest.mark.parametrize(("later", "fires"), [(0.05, True), (0.4, False)])
def test_of_choices_it_is_the_entropy_that_shrinks(
    description: TaskDescription, later: float, fires: bool
) -> None:
    # two choices, equally likely: ln 2 nats
    curve = [
        point(
            index, action_std=None, action_saturation=None, entropy=0.6931 if index < 3 else later
        )
        for index in range(9)
    ]
    seen = evidence(description, curve=curve)
    found = findings.exploration_lost(seen)
    assert [each.value for each in found] == ([pytest.approx(later / 0.6931)] if fires else [])
    if fires:
        assert "entropy of the choices fell from 0.69 to 0.05 nats" in found[0].message
        assert "effort" not in found[0].advice
    assert findings.saturated_actions(seen) == []


def test_an_unremarkable_training_has_no_findings(description: TaskDescription) -> None:
    fitness = [0.0, 1.0, 2.0, 3.0, 4.0, 4.5, 4.6, 4.4, 4.5, 4.55]
    parts = {"a": [0.6] * 10, "b": [0.4] * 10}
    assert findings.all_findings(evidence(description, fitness, components=parts)) == ()


# ── what is no fault ──────────────────────────────────────────────────────────────────────────────


def test_a_bonus_for_every_step_is_not_dead(description: TaskDescription) -> None:
    """It is the price of an early end. A saturated component changes a little, and is found."""
    curve = points(component_deviations={"a": 0.3, "b": 0.0})
    assert findings.dead_components(evidence(description, curve=curve)) == []
    curve = points(component_deviations={"a": 0.3, "b": 1e-4})
    (finding,) = findings.dead_components(evidence(description, curve=curve))
    assert "drop" not in finding.advice


def test_a_bonus_that_ends_with_the_episode_is_not_dead(description: TaskDescription) -> None:
    """0.74 in all but one of 20,000 steps, in each of which an episode failed: a deviation of 0.74
    sqrt(1 / 20000) = 0.00523, below 1 %."""
    paid = {"alive": 0.74, "forward": 1.0}

    def curve(deviation: float, failures: int) -> list[CurvePoint]:
        return [
            point(
                index,
                env_steps=20_000 * (index + 1),
                components=paid,
                component_magnitudes=paid,
                component_deviations={"alive": deviation, "forward": 0.5},
                terminations={"fell": failures, "time_out": 40},
            )
            for index in range(9)
        ]

    def dead(failures: int) -> int:
        seen = evidence(description, curve=curve(0.00523, failures), components={})
        return len(findings.dead_components(seen))

    # where nobody falls, or a hundred do, something else moves it
    assert [dead(failures) for failures in (1, 0, 100)] == [0, 1, 1]


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_what_is_paid_seldom_and_much_is_not_dead(
    description: TaskDescription, sign: float
) -> None:
    # 2 in one step of 100,000, next to 1 in every step: a mean of 0.00002 and a deviation of 2
    # sqrt(0.00001) = 0.00632, below 1 % of all
    means, sizes = {"a": 1.0, "b": sign * 0.00002}, {"a": 1.0, "b": 0.00002}
    curve = points(
        components=means, component_magnitudes=sizes, component_deviations={"a": 0.3, "b": 0.00632}
    )
    assert findings.dead_components(evidence(description, curve=curve)) == []
    # a bonus of 0.05 in one step of a thousand is lost beside the rest: 0.05 sqrt(0.001) = 0.00158
    means, sizes = {"a": 1.0, "b": 0.00005}, {"a": 1.0, "b": 0.00005}
    curve = points(
        components=means, component_magnitudes=sizes, component_deviations={"a": 0.3, "b": 0.00158}
    )
    assert [
        each.component for each in findings.dead_components(evidence(description, curve=curve))
    ] == ["b"]


STEADY = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5]


def test_the_task_itself_may_outweigh_everything(description: TaskDescription) -> None:
    sizes = {"forward": 9.0, "effort": 0.2}
    curve = points(
        components=sizes,
        component_magnitudes=sizes,
        component_deviations={"forward": 1.0, "effort": 0.2},
    )
    task = {"forward": [2.0 * value for value in STEADY], "effort": [0.2] * 10}
    assert findings.dominant_component(evidence(description, STEADY, curve, components=task)) == []
    other = {"forward": [9.0 - value for value in STEADY], "effort": [0.2] * 10}
    (finding,) = findings.dominant_component(evidence(description, STEADY, curve, components=other))
    assert finding.component == "forward"
    # a bonus for every step outweighs the rest without hiding it
    constant = points(
        components=sizes,
        component_magnitudes=sizes,
        component_deviations={"forward": 0.0, "effort": 0.2},
    )
    assert (
        findings.dominant_component(evidence(description, STEADY, constant, components=other)) == []
    )


def test_what_cheats_is_not_the_term_that_is_the_task(description: TaskDescription) -> None:
    """The task's term grew most in all, but it fell with the fitness, while another term grew."""
    components = {"task": FALLING, "hover": [value - 0.05 for value in RISING]}
    (finding,) = findings.reward_hacking(
        evidence(description, FALLING, reward=RISING, components=components)
    )
    assert finding.component == "hover"
    curve = points(
        components={"task": 1.0},
        component_magnitudes={"task": 1.0},
        component_deviations={"task": 0.3},
    )
    alone = evidence(description, FALLING, curve, reward=RISING, components={"task": FALLING})
    (finding,) = findings.reward_hacking(alone)
    assert (finding.component, finding.advice) == (None, "pay for the task itself")


def test_episodes_without_noise_decide_what_ends_early(description: TaskDescription) -> None:
    """With exploration noise nearly all episodes end early. Of the evaluated ones, which count, few
    do."""
    curve = points(terminations={"fell": 17, "time_out": 3}, episodes=20, episode_length=60.0)
    assert len(findings.early_termination(evidence(description, curve=curve))) == 1
    late = points(terminations={"fell": 20}, episodes=20, episode_length=450.0)
    assert findings.early_termination(evidence(description, curve=late)) == []
    lives = EpisodeSummary(fitness=5.0, length=500, ended_by="time_out")
    falls = EpisodeSummary(fitness=1.0, length=50, ended_by="fell")
    calm = Evaluation(episodes=(lives, lives, lives, falls), seed=1)
    assert findings.early_termination(evidence(description, curve=curve, evaluation=calm)) == []
    (finding,) = findings.early_termination(
        evidence(
            description,
            curve=points(),
            evaluation=Evaluation(episodes=(falls, falls, falls, lives), seed=1),
        )
    )
    # (50 + 50 + 50 + 500) / 4 = 162.5
    assert (
        finding.message
        == "75% of 4 episodes without exploration noise ended early, most often by fell (75% of"
        " all), after 162 of 500 steps on average."
    )


def test_what_a_worker_makes_up_is_no_error_of_the_findings(description: TaskDescription) -> None:
    # no step at all, and a deviation whose square no float holds
    curve = [
        point(
            0,
            env_steps=0,
            component_deviations={"a": 1e200, "b": 0.2},
            terminations={"fell": 2**62},
        )
    ]
    findings.dead_components(evidence(description, curve=curve))
    findings.dominant_component(evidence(description, curve=curve))


@pytest.mark.parametrize(
    ("without", "spread", "found"),
    [
        (3.4, 0.1, True),  # 2.6 of 4
        (4.4, 0.1, False),  # 1.6 of 4
        (3.4, 8.0, False),  # 16 episodes that differ by 8 say it to ± 2
    ],
)
def test_a_fitness_that_only_noise_reaches(
    description: TaskDescription, without: float, spread: float, found: bool
) -> None:
    """The curve of a reward with the wrong sign rises by chance, and ends the highest of all."""
    values = [without + spread * (-1) ** index for index in range(16)]
    episodes = [EpisodeSummary(fitness=each, length=500, ended_by="time_out") for each in values]
    evaluation = Evaluation(episodes=tuple(episodes), seed=1)
    rising = evidence(description, fitness=[2.0, 3.0, 4.0, 5.0, 6.0], evaluation=evaluation)
    messages = [each.message for each in findings.lost_without_noise(rising)]
    assert (
        messages
        == [
            "Fitness was 6 with exploration noise at the kept checkpoint, and"
            f" {without:.4g} without: chance did there what the policy has not learned."
        ]
        * found
    )
