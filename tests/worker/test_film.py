"""A video shows the right step at each moment, and episodes that belong together side by side."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from eureka_agent.worker.film import (
    HEADER_PIXELS,
    ROW_PIXELS,
    TOTAL,
    Episode,
    Strip,
    StripCurve,
    largest_terms,
    scenes,
    shared_limits,
    shown_steps,
)

HELD = 15
"""Pictures of the last state: half a second at 30 a second."""


def episode(length: int, row: int = 0, fitness: float = 1.0, **terms: float) -> Episode:
    """An episode of constant terms."""
    return Episode(
        title=f"row {row}",
        row=row,
        length=length,
        ended_by="time_out",
        fitness=np.linspace(0.0, fitness, length),
        terms={name: np.full(length, value) for name, value in terms.items()},
    )


def test_a_video_runs_in_the_environment_s_own_time() -> None:
    # 50 steps a second for 10 s: each of 300 pictures 1⅔ steps later
    steps = list(shown_steps(500, 0.02))
    assert len(steps) == 300 + HELD
    assert steps[:7] == [0, 2, 3, 5, 7, 8, 10]
    assert set(steps[300:]) == {500}


def test_slow_steps_are_shown_several_times() -> None:
    # 20 steps a second: three pictures for two steps
    steps = list(shown_steps(10, 0.05))
    assert steps[:15] == [0, 1, 1, 2, 3, 3, 4, 5, 5, 6, 7, 7, 8, 9, 9]
    assert Counter(steps)[10] == HELD


def made(*groups: list[Episode], seconds: float = 100.0, strips: bool = True):  # noqa: ANN201
    return scenes(groups, (64, 64), 0.1, unit="m", seconds=seconds, strips=strips)


def test_the_episodes_of_one_policy_stand_side_by_side() -> None:
    (scene,) = made([episode(5, 0), episode(9, 1), episode(7, 2)])
    assert [each.row for each in scene.episodes] == [0, 1, 2]
    assert scene.steps == 9


def test_several_policies_stand_side_by_side_start_by_start() -> None:
    first, second = [episode(5, 0), episode(9, 1)], [episode(6, 10), episode(4, 11)]
    found = made(first, second)
    assert [[each.row for each in scene.episodes] for scene in found] == [[0, 10], [1, 11]]
    assert [scene.steps for scene in found] == [6, 9]


def test_a_longer_episode_is_cut() -> None:
    (scene,) = made([episode(50), episode(3)], seconds=1.0)
    assert scene.steps == 10
    assert list(scene.times())[-1] == 10
    assert scene.is_under_way(0, 10)
    assert not scene.is_under_way(1, 4)


def test_a_scene_is_as_large_as_its_panels_and_even() -> None:
    (scene,) = made([episode(5, effort=1.0), episode(5, effort=1.0)])
    black = np.zeros((64, 64, 3), dtype=np.uint8)
    picture = scene.drawn(0, [black, black])
    # two panels of 64 with a gap of 4; header, picture, and a strip of its own header and 2 lines
    assert picture.shape == (HEADER_PIXELS + 64 + HEADER_PIXELS + 2 * ROW_PIXELS, 132, 3)


def test_a_panel_is_dimmed_after_its_episode_s_end() -> None:
    (scene,) = made([episode(2), episode(8)], strips=False)
    white = np.full((64, 64, 3), 255, dtype=np.uint8)
    middle = HEADER_PIXELS + 32
    at_end, later = scene.drawn(2, [white, white]), scene.drawn(3, [white, white])
    assert at_end[middle, 32, 0] == 255
    assert later[middle, 32, 0] == 140  # 255 × (1 − 0.45)
    assert later[middle, 100, 0] == 255


def test_terms_of_one_policy_have_one_scale_and_zero_in_it() -> None:
    assert shared_limits([np.array([1.0, 3.0]), np.array([2.0, 8.0])]) == (0.0, 8.0)
    assert shared_limits([np.array([-1.0, np.nan]), np.array([2.0, np.inf])]) == (-1.0, 2.0)
    assert shared_limits([np.array([0.0])]) == (0.0, 1.0)
    assert shared_limits([]) == (0.0, 1.0)


def test_the_largest_terms_and_the_total_are_shown_in_the_reward_s_order() -> None:
    sizes = {TOTAL: 0.0, "a": 1.0, "b": -9.0, "c": 2.0, "d": 3.0, "e": 4.0, "f": 0.5, "g": 5.0}
    terms = {name: np.full(4, value) for name, value in sizes.items()}
    # the total and the five largest of the rest: 9, 5, 4, 3, 2
    assert largest_terms([terms, {"g": np.array([])}]) == [TOTAL, "b", "c", "d", "e", "g"]


def cursor(strip: Strip, step: int) -> int:
    """Column of the cursor, the only white one in the first line."""
    row = strip.picture(step, "")[HEADER_PIXELS + 1]
    (column,) = np.nonzero((row > 240).all(axis=-1))[0]
    return int(column)


def test_the_cursor_moves_with_the_time() -> None:
    curve = StripCurve("reward", np.linspace(0.0, 1.0, 100), "", (0.0, 1.0))
    strip = Strip(320, [curve], 1, 0.1)
    begin, middle, end = (cursor(strip, step) for step in (0, 50, 100))
    assert middle - begin == pytest.approx((end - begin) / 2, abs=1)
    # passed to the left of it and ahead to the right
    picture = strip.picture(50, "")[HEADER_PIXELS:]
    blue = picture[..., 2].astype(int) - picture[..., 0] > 120
    assert blue[:, begin:middle].any()
    assert not blue[:, middle + 1 :].any()


def test_a_strip_stands_values_that_are_no_numbers_and_long_names() -> None:
    values = np.array([1.0, np.nan, np.inf, -np.inf])
    curve = StripCurve("a_name_" * 30, values, "m/s", shared_limits([values]))
    strip = Strip(200, [curve], 3, 0.1)
    shapes = {strip.picture(step, "left the track").shape for step in range(5)}
    assert shapes == {(HEADER_PIXELS + 3 * ROW_PIXELS, 200, 3)}
