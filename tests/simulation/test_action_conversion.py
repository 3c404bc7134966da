"""Actions handed to a Gymnasium environment against its action space."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.spaces import Box

from eureka_agent.simulation.gymnasium_actions import Conversion, action_channels, trial_actions

SHAPES: tuple[tuple[int, ...], ...] = ((), (1,), (3,), (2, 3))
INF = np.inf


def random_box(generator: np.random.Generator, kind: str, shape: tuple[int, ...]) -> Box:
    """Bounds of any size; of floats some are infinite, the type's last number, or equal."""
    dtype = np.dtype(kind)
    if dtype.kind != "f":
        least, most = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
        if generator.random() < 0.5:
            least, most = max(least, -9), 9
        ends = generator.integers(least, most, (2, *shape), dtype=dtype, endpoint=True)
        return Box(np.asarray(ends.min(axis=0)), np.asarray(ends.max(axis=0)), shape, kind)
    largest = float(np.finfo(dtype).max)
    sizes = 10.0 ** generator.uniform(-4.0, np.log10(largest) - 1.0, shape)
    ends = np.sort(generator.normal(size=(2, *shape)) * sizes, axis=0).clip(-largest, largest)
    low, high = ends
    case = generator.integers(0, 9, shape)
    low = np.where(case == 0, -INF, np.where(case == 1, -largest, np.where(case == 2, high, low)))
    high = np.where(case == 3, INF, np.where(case == 4, largest, high))
    return Box(low.astype(dtype), high.astype(dtype), shape, dtype)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "kind", ["float16", "float32", "float64", "int8", "int64", "uint8", "uint64"]
)
def test_every_action_is_in_its_space_and_comes_back_in_range(kind: str) -> None:
    generator = np.random.default_rng(3)
    for trial in range(200):
        box = random_box(generator, kind, SHAPES[trial % len(SHAPES)])
        size = spaces.flatdim(box)
        drawn = generator.uniform(-1.0, 1.0, (30, size))
        actions = np.concatenate([[[-1.0] * size, [1.0] * size, [0.0] * size], drawn])
        conversion = Conversion(box)
        given = conversion.to_space(actions.astype(np.float32))
        assert all(box.contains(each) and np.isfinite(each).all() for each in given), box
        back = conversion.to_policy(np.stack(given))
        assert back.shape == actions.shape
        assert (np.abs(back) <= 1.0).all()


@pytest.mark.parametrize(
    ("low", "high", "least", "most"),
    [
        (-0.3, 1.1, -0.3, 1.1),
        (-INF, INF, -1.0, 1.0),
        (0.0, INF, 0.0, 2.0),
        (3.0, INF, 3.0, 5.0),
        (-INF, -7.0, -9.0, -7.0),
        (-3e38, 2e38, -1.0, 1.0),
        (0.0, 3.4028235e38, 0.0, 2.0),
        (0.5, 0.5, 0.5, 0.5),
    ],
)
def test_the_ends_of_the_range_are_the_bounds_that_there_are(
    low: float, high: float, least: float, most: float
) -> None:
    # the second entry always has both bounds
    box = Box(np.float32([low, -2.0]), np.float32([high, 4.0]))
    found = Conversion(box).to_space(np.float32([[-1, -1], [1, 1], [0, 0]]))
    expected = np.float32([[least, -2], [most, 4], [(least + most) / 2, 1]])
    assert np.stack(found) == pytest.approx(expected, rel=1e-6, abs=1e-7)
    assert action_channels(box)[0].range == (
        None if low == high else pytest.approx((least, most), rel=1e-6)
    )


@pytest.mark.parametrize(
    ("low", "high", "kind", "least", "most"),
    [
        (-(2**60) + 1, 2**60 - 1, "int64", -(2**60) + 1, 2**60 - 1),
        (-128, 127, "int8", -128, 127),
        (0, 2**32 - 1, "uint32", 0, 2),
        (-(2**63), 2**63 - 1, "int64", -1, 1),
    ],
)
def test_a_type_s_last_number_alone_is_no_bound_of_whole_numbers(
    low: int, high: int, kind: str, least: int, most: int
) -> None:
    box = Box(low, high, (1,), np.dtype(kind))
    found = Conversion(box).to_space(np.float32([[-1], [1]]))
    assert [int(each[0]) for each in found] == [least, most]
    draw = trial_actions(box)
    assert all(box.contains(drawn) and least <= drawn[0] <= most for drawn in [draw(), draw()])


@pytest.mark.parametrize(
    ("space", "indices", "expected"),
    [
        (spaces.Discrete(3, start=-1), [2], 1),
        (
            spaces.MultiDiscrete([[2, 3], [4, 5]], start=[[1, 2], [3, -4]]),
            [1, 0, 3, 4],
            [[2, 2], [6, 0]],
        ),
        (spaces.MultiBinary([2, 2]), [1, 0, 0, 1], [[1, 0], [0, 1]]),
    ],
)
def test_choices_count_as_their_space_does(
    space: spaces.Space, indices: list[int], expected: Any
) -> None:
    conversion = Conversion(space)
    (given,) = conversion.to_space(np.float32([indices]))
    assert space.contains(given)
    assert np.asarray(given).tolist() == expected
    assert conversion.to_policy(np.asarray(given)[None]).tolist() == [indices]
