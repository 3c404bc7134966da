"""Events of an episode, and what is told of the parts between them."""

from __future__ import annotations

import numpy as np
import pytest

from eureka_agent.analysis.episode_table import trajectory_tables
from eureka_agent.analysis.events import Event, events_of, events_text
from eureka_agent.analysis.trajectories import losses_text
from eureka_agent.records import TaskDescription, VariableSpec

STEPS = 500
"""Length of an episode; a step takes 0.02 s."""


def variable(name: str, unit: str = "m", shape: tuple[int, ...] = ()) -> VariableSpec:
    return VariableSpec(name=name, shape=shape, unit=unit, frame="world", doc="d")


def rolling() -> dict[str, np.ndarray]:
    """A ball that follows a goal with a lag of 0.4 s. The step that ends at 2.5 s sets the goal anew,
    as do those at 5 and 7.5 s: the values of steps 124, 249 and 374 are the first with it."""
    goal = np.repeat([1.0, -1.0, 0.5, -0.5], [124, 125, 125, 126])
    ball, place = np.empty(STEPS), 0.0
    for step in range(STEPS):
        place += (goal[step] - place) * 0.05
        ball[step] = place
    return {"goal": goal, "ball": ball, "goal_distance": np.abs(goal - ball)}


SEEN = (variable("goal"), variable("ball"), variable("goal_distance"))


def test_a_goal_that_is_set_anew_is_an_event_with_all_that_jumps() -> None:
    events = events_of(rolling(), SEEN)
    assert [event.step for event in events] == [124, 249, 374]
    assert all(set(event.names) == {"goal", "goal_distance"} for event in events)
    assert events_text(events[:1], 0.02).startswith("jumps after 2.48 s goal")


def test_what_is_usual_is_no_event() -> None:
    time = np.arange(STEPS) * 0.02
    angle = np.mod(3.0 * time + np.pi, 2 * np.pi) - np.pi  # goes on at its other end
    episode = {
        "swing": np.sin(9 * time),
        "contact": (np.sin(40 * time) > 0).astype(float),  # sixty times
        "yaw": angle,
        "noise": np.random.default_rng(0).normal(size=STEPS),
        "still": np.ones(STEPS),
        "actions": np.repeat([1.0, -1.0], STEPS // 2),
    }
    specs = [variable(name, "rad" if name == "yaw" else "1") for name in episode]
    assert events_of(episode, specs) == ()
    # not told that it is an angle, its turns are jumps: three in 9 turns of 2 pi / 3 s
    turns = events_of({"yaw": angle}, [variable("yaw", "1")])
    assert 0 < len(turns) <= 5


def test_jumps_in_a_row_are_one_event_and_the_larger_one_is_named_first() -> None:
    first, second = np.zeros(100), np.linspace(0.0, 1.0, 100)
    first[40:] = 1.0
    second[41:] += 0.5  # a third of its range
    found = events_of({"second": second, "first": first}, [variable("second"), variable("first")])
    assert found == (Event(40, ("first", "second")),)


def test_no_column_shows_the_moment_after_a_jump(description: TaskDescription) -> None:
    """Quarters of the episode are where this goal jumps: a column there would tell of the new goal
    what the policy did for the old one."""
    seen = description.model_copy(update={"variables": SEEN})
    episode = rolling()
    tables, _ = trajectory_tables({"worst": episode}, seen)
    rows = [line.split("  ") for line in tables["worst"].split("\n")]
    named = {cells[0]: [cell.strip() for cell in cells[1:] if cell] for cells in rows}
    assert named["time [s]"] == ["0.64", "1.26", "2.48", "4.98", "7.48", "10"]
    shown = [float(each) for each in named["goal_distance [m]"]]
    places = [31, 62, 123, 248, 373, 499]
    assert shown == pytest.approx(episode["goal_distance"][places], rel=1e-2)
    # 2.5 s after a jump by 2, with a factor of 0.95 a step
    assert shown[3] == pytest.approx(2.0 * 0.95**125, rel=0.02)
    assert tables["worst"].endswith("4.98 s goal, goal_distance; 7.48 s goal, goal_distance")


def test_between_jumps_the_rate_is_told_by_quarters(description: TaskDescription) -> None:
    # four parts of 100 steps, each with nothing, a half, one and one a step in its quarters
    trace = np.tile(np.repeat([0.0, 0.5, 1.0, 1.0], 25), 4)
    told = description.model_copy(update={"max_episode_length": 400})
    text = losses_text({"worst": trace}, told, jumps={"worst": [100, 200, 300]})
    assert text.split("\n")[1] == (
        "- worst episode, 250: in the 4 parts between its jumps the mean fitness a step is"
        " 0, 0.5, 1 and 1 from the first to the last quarter of a part"
    )


def test_a_fitness_that_is_paid_at_once_has_no_rate(description: TaskDescription) -> None:
    best = np.zeros(100)
    best[79] = 5.0
    best[40] = 1.0
    assert losses_text({"worst": np.zeros(100), "best": best}, description) == (
        "Fitness is paid in single steps, so that no rate is lost: worst episode nothing; best"
        " episode 5 at 1.6 s."
    )


def test_choices_are_told_by_their_shares(description: TaskDescription) -> None:
    actions = np.concatenate((np.zeros(60), np.full(30, 7.0), np.full(10, 2.0)))
    seen = description.model_copy(
        update={"variables": (variable("actions", "1"),), "action_choices": (9,)}
    )
    tables, _ = trajectory_tables({"worst": actions_only(actions)}, seen)
    row = next(line for line in tables["worst"].split("\n") if "actions" in line)
    assert row.startswith("shares of actions [choice]")
    # the last quarter: steps 75 to 99, 15 of them the choice 7 and 10 the choice 2
    assert row.endswith("7:60% 2:40%")


def actions_only(actions: np.ndarray) -> dict[str, np.ndarray]:
    return {"actions": actions}


def test_of_many_rows_those_remain_that_count(description: TaskDescription) -> None:
    """Thirty variables: the reward reads the last, the episodes differ in the one before."""
    random = np.random.default_rng(1)
    names = [f"v{number:02}" for number in range(30)]
    seen = description.model_copy(update={"variables": tuple(map(variable, names))})
    worst, best = ({name: random.normal(size=200) for name in names} for _ in range(2))
    best["v28"] = best["v28"] + 3.0
    tables, left_out = trajectory_tables({"worst": worst, "best": best}, seen, {"v29"})
    rows = [line.split(" ")[0] for line in tables["best"].split("\n")]
    assert {"v28", "v29"} <= set(rows)
    assert len(rows) == 1 + 24
    assert rows[1:] == sorted(rows[1:])
    assert left_out.startswith("not shown: v")
