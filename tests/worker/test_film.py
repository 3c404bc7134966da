"""A video shows the right step at each moment, and episodes that belong together side by side."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image

from eureka_agent.simulation.pictures import Picture
from eureka_agent.worker.film import HEADER_PIXELS, Episode, Gif, Mp4, Sheet, scenes, shown_steps
from eureka_agent.worker.film_job import changing_steps

HELD = 15
"""Pictures of the last state: half a second at 30 a second."""


def episode(length: int, row: int = 0, fitness: float = 1.0) -> Episode:
    return Episode(
        title=f"row {row}",
        row=row,
        length=length,
        ended_by="time_out",
        fitness=np.linspace(0.0, fitness, length),
    )


def test_a_video_runs_in_the_environment_s_own_time() -> None:
    # 50 steps a second for 10 s: each of 300 pictures 1⅔ steps later
    steps = list(shown_steps(500, 0.02))
    assert len(steps) == 300 + HELD
    assert steps[:7] == [0, 2, 3, 5, 7, 8, 10]
    assert set(steps[300:]) == {500}


def made(*groups: list[Episode], seconds: float = 100.0, unit: str | None = "m"):  # noqa: ANN201
    return scenes(groups, (64, 64), 0.1, unit=unit, seconds=seconds)


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


def test_a_panel_is_dimmed_after_its_episode_s_end() -> None:
    (scene,) = made([episode(2), episode(8)])
    white = np.full((64, 64, 3), 255, dtype=np.uint8)
    middle = HEADER_PIXELS + 32
    at_end, later = scene.drawn(2, [white, white]), scene.drawn(3, [white, white])
    assert at_end[middle, 32, 0] == 255
    assert later[middle, 32, 0] == 140  # 255 × (1 − 0.45)
    assert later[middle, 100, 0] == 255


# ── files as another program reads them ───────────────────────────────────────────────────────────

COLOURS = ((200, 30, 30), (30, 160, 60), (40, 60, 190))


def plain(colour: tuple[int, int, int], size: tuple[int, int] = (96, 64)) -> Picture:
    return np.full((size[1], size[0], 3), colour, dtype=np.uint8)


def test_a_video_holds_every_picture_at_its_time(tmp_path: Path) -> None:
    path = tmp_path / "video.mp4"
    video = Mp4(path, 30)
    for colour in COLOURS:
        for _ in range(10):
            video.add(plain(colour))
    video.close()
    with av.open(str(path)) as container:
        (stream,) = container.streams.video
        assert stream.codec_context.name == "h264"
        assert stream.codec_context.pix_fmt == "yuv420p"  # the one that every browser plays
        assert stream.average_rate == 30
        frames = list(container.decode(video=0))
    assert len(frames) == 30
    assert frames[15].time == pytest.approx(0.5)
    for place, colour in ((5, COLOURS[0]), (15, COLOURS[1]), (25, COLOURS[2])):
        mean = frames[place].to_ndarray(format="rgb24").mean(axis=(0, 1))
        assert mean == pytest.approx(colour, abs=6)


def test_a_gif_is_the_beginning_at_ten_pictures_a_second() -> None:
    gif = Gif(30, 2.0)
    for number in range(90):  # 3 s, of which 2 are taken
        gif.add(plain((2 * number, 0, 0), (1280, 64)))
    with Image.open(io.BytesIO(gif.content())) as image:
        assert image.size == (640, 32)
        assert image.n_frames == 20
        shades = []
        for number in range(20):
            image.seek(number)
            assert image.info["duration"] == 100
            shades.append(image.convert("RGB").getpixel((5, 5))[0])
    # every third picture, each 2 brighter than the one before it
    assert shades == pytest.approx([6 * number for number in range(20)], abs=2)


@pytest.mark.parametrize(
    ("moments", "long", "short"),
    [
        (3, {0, 25, 50}, {0, 2, 4}),  # evenly spread over each episode
        ((2.0, 0.5, 99.0), {5, 20, 50}, {4}),  # seconds of 0.1 s a step, within each episode
    ],
)
def test_a_sheet_shows_the_moments_that_were_asked_for(
    moments: int | tuple[float, ...], long: set[int], short: set[int]
) -> None:
    sheet = Sheet([episode(50), episode(4, 1)], moments, 0.1)
    for place, (length, expected) in enumerate(((50, long), (4, short))):
        assert {step for step in range(length + 1) if sheet.wants(place, step)} == expected
        for step in expected:
            sheet.add(place, step, np.zeros((64, 64, 3), np.uint8))
    with Image.open(io.BytesIO(sheet.content())) as image:
        assert image.width == 3 * 64


def test_two_sides_of_a_moment_stand_below_each_other_and_take_no_more_room() -> None:
    sheet = Sheet([episode(2)], 3, 0.1)
    for step in range(3):
        sheet.add(0, step, plain(COLOURS[0], (64, 64)), plain(COLOURS[2], (64, 64)))
    with Image.open(io.BytesIO(sheet.content())) as image:
        # 3 moments at ¾ of 64 pixels; below title and time the two sides
        assert image.size == (3 * 48, 2 * HEADER_PIXELS + 2 * 48)
        upper, lower = (image.getpixel((70, 2 * HEADER_PIXELS + y)) for y in (24, 72))
    assert upper == pytest.approx(COLOURS[0], abs=6)
    assert lower == pytest.approx(COLOURS[2], abs=6)


# ── moments by what changes ───────────────────────────────────────────────────────────────────────


def trajectory(**variables: np.ndarray) -> dict[str, np.ndarray]:
    length = len(next(iter(variables.values())))
    return {"fitness": np.zeros(length), "actions": np.ones((length, 2)), **variables}


def test_moments_of_a_still_episode_are_evenly_spread() -> None:
    # of steps 1 to 101, 51 is farthest from both ends; then the middles of its sides
    assert changing_steps(trajectory(angle=np.full(101, 0.3)), 5) == [0, 26, 51, 76, 101]
    # nor do shaking actions, the fitness or the observation choose
    busy = trajectory(angle=np.full(101, 0.3))
    shaking = np.tile([1.0, -1.0], 51)[:101]
    busy |= {"fitness": shaking, "actions": shaking[:, None], "observations": shaking[:, None]}
    assert changing_steps(busy, 5) == [0, 26, 51, 76, 101]


def test_moments_fall_on_what_happens() -> None:
    # a door that is open from step 24 of 100 on, and a flag of 8 entries that never changes
    door = np.concatenate([np.zeros(20), [0.3, 0.6, 0.9], np.ones(77)])
    found = changing_steps(trajectory(door=door, flag=np.ones((100, 8))), 4)
    # the time alone would choose 51 first. Of all steps, 23 is farthest from start and end,
    # √(0.22² + 0.9²) = 0.93 and √(0.78² + 0.1²) = 0.78; then the middle between it and the end
    assert found == [0, 23, 61, 100]
    # as one of four variables, of which three drift evenly, it moves the middle less: both ends are
    # as far where 1.75 x² + 0.25 = 1.75 (1 − x)², at x = 0.43
    drifts = {f"drift_{each}": np.linspace(0.0, 5.0, 100) for each in range(3)}
    assert changing_steps(trajectory(door=door, **drifts), 3) == [0, 43, 100]


def test_a_short_episode_has_each_step_at_least_once() -> None:
    values = np.array([0.0, np.nan, 5.0])
    assert set(changing_steps(trajectory(angle=values), 6)) == {0, 1, 2, 3}
    assert len(changing_steps(trajectory(angle=values), 6)) == 6
    assert changing_steps(trajectory(angle=np.zeros(1)), 3) == [0, 1, 1]


def test_an_episode_s_own_moments_count() -> None:
    own = replace(episode(50), moments=[0, 7, 50])
    sheet = Sheet([own, episode(4, 1)], 3, 0.1)
    assert [step for step in range(51) if sheet.wants(0, step)] == [0, 7, 50]
    assert [step for step in range(5) if sheet.wants(1, step)] == [0, 2, 4]
