"""Every kind of environment is drawn its own way, and one that cannot be drawn says why."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from eureka_agent.simulation.drawing import Circle, Drawing, Line, Polygon, Shape, rectangle
from eureka_agent.simulation.loading import LoadedEnvironment, load_environment
from eureka_agent.simulation.pictures import (
    Picture,
    RenderingError,
    drawable,
    fitted,
    pictures_of,
    rasterise,
)

SIZE = (160, 120)
MADE = '''"""A made environment."""
import gymnasium
from gymnasium import spaces
import numpy as np


class Lamp(gymnasium.Env):
    """A lamp that brightens."""

    metadata = {{"render_modes": ["rgb_array"]}}
    observation_space = spaces.Box(-1.0, 1.0, (1,))
    action_space = spaces.Box(-1.0, 1.0, (1,))

    def __init__(self, render_mode=None):
        self.render_mode = render_mode
        self.steps = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return np.zeros(1, np.float32), {{}}

    def step(self, action):
        self.steps += 1
        return np.zeros(1, np.float32), 0.0, False, False, {{}}

    def render(self):
        if self.render_mode != "rgb_array":
            return None
        return {picture}


def make({arguments}):
    return Lamp({passed})
'''
BRIGHTER = "np.full((30, 40, 3), 20 * self.steps, np.uint8)"


def load(folder: Path, source: str) -> LoadedEnvironment:
    folder.mkdir(exist_ok=True)
    (folder / "env.py").write_text(source)
    return load_environment(str(folder))


def first_pictures(loaded: LoadedEnvironment, steps: int) -> list[Picture]:
    """Pictures of row 1 at the start and after each step."""
    import torch

    found = drawable(loaded)
    environment = found.make(found.task(None)[1], 2)
    pictures = pictures_of(found, environment, SIZE)
    seen = [pictures.picture(1)]
    for _ in range(steps):
        environment.advance(torch.zeros(2, environment.num_actions))
        seen.append(pictures.picture(1))
    pictures.close()
    environment.close()
    return seen


def test_a_gymnasium_environment_is_drawn_by_its_own_render(tmp_path: Path) -> None:
    source = MADE.format(
        picture=BRIGHTER, arguments="render_mode=None", passed="render_mode=render_mode"
    )
    seen = first_pictures(load(tmp_path / "lamp", source), 3)
    assert [int(picture[60, 80, 0]) for picture in seen] == [0, 20, 40, 60]
    assert all(picture.shape == (120, 160, 3) for picture in seen)


@pytest.mark.parametrize(
    ("picture", "arguments", "passed", "named"),
    [
        (BRIGHTER, "", "", r"env.py, line {render}: .* gave None"),
        ("super().render()", "**options", "**options", r"env.py, line {render}: .* has no `render`"),
        ("[1, 2]", "**options", "**options", r"env.py, line {render}: .* gave list"),
        ("np.zeros((4, 4), np.uint8)", "**options", "**options", r"line {render}: .* ndarray \(4, 4\)"),
        ("1 / 0", "**options", "**options", r"env.py, line {picture}: ZeroDivisionError"),
    ],
)  # fmt: skip
def test_a_render_without_a_picture_is_named(
    tmp_path: Path, picture: str, arguments: str, passed: str, named: str
) -> None:
    source = MADE.format(picture=picture, arguments=arguments, passed=passed)
    render = source[: source.index("    def render(")].count("\n") + 1
    named = named.replace("{render}", str(render)).replace("{picture}", str(render + 3))
    with pytest.raises(RenderingError, match=named):
        first_pictures(load(tmp_path / "lamp", source), 0)


def test_a_registered_environment_is_drawn(tmp_path: Path) -> None:
    pytest.importorskip("pygame")
    start, *_, later = first_pictures(load_environment("gymnasium:CartPole-v1"), 8)
    assert start.std() > 5.0  # a cart, a pole and a line on white
    assert (start != later).any()


def test_an_environment_in_torch_needs_a_draw(tmp_path: Path) -> None:
    source = (Path(__file__).parents[2] / "envs/_templates/torch/env.py").read_text()
    begin, end = source.index("    def draw("), source.index("    def reset_idx(")
    folder = tmp_path / "puck"
    (folder / "tasks").mkdir(parents=True)
    task = Path(__file__).parents[2] / "envs/_templates/torch/tasks/reach.py"
    (folder / "tasks" / "reach.py").write_text(task.read_text())
    drawn = load(folder, source)
    assert first_pictures(drawn, 0)[0].std() > 1.0
    with pytest.raises(RenderingError, match="it has no `draw`") as caught:
        drawable(load(folder, source[:begin] + source[end:]))
    assert "eureka_agent.simulation.drawing" in caught.value.hint


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("width=8.0,", "width=self.no_such_width,", r"env.py, line \d+: AttributeError"),
        ("width=8.0,", "width='8',", r"env.py, line {draw}: .*TypeError"),
        ("width=8.0,", "width=0.0,", r"env.py, line {draw}: .* width 0.0, expected a number above 0"),
        ("return Drawing(", "return (lambda *_, **__: None)(", r"env.py, line {draw}: `draw` gave NoneType"),
    ],
)  # fmt: skip
def test_a_draw_that_fails_names_its_line(tmp_path: Path, old: str, new: str, said: str) -> None:
    source = (Path(__file__).parents[2] / "envs/_templates/torch/env.py").read_text()
    folder = tmp_path / "puck"
    (folder / "tasks").mkdir(parents=True)
    task = Path(__file__).parents[2] / "envs/_templates/torch/tasks/reach.py"
    (folder / "tasks" / "reach.py").write_text(task.read_text())
    assert old in source
    draw = source[: source.index("    def draw(")].count("\n") + 1
    with pytest.raises(RenderingError, match=said.replace("{draw}", str(draw))):
        first_pictures(load(folder, source.replace(old, new)), 0)


def test_a_picture_of_other_proportions_gets_bars() -> None:
    red = np.zeros((50, 100, 3), dtype=np.uint8)
    red[..., 0] = 255
    picture = fitted(red, SIZE)
    # 100 × 50 becomes 160 × 80, with 20 rows above and below
    assert picture.shape == (120, 160, 3)
    rows = (picture[:, 80] == (255, 0, 0)).all(axis=-1)
    assert rows.tolist() == [False] * 20 + [True] * 80 + [False] * 20


RED = "#ff0000"
DRAWN_SIZE = (80, 60)
"""With a width of 8 units: 10 pixels each, the middle at (40, 30)."""


def reddish(*shapes: Shape, centre: tuple[float, float] = (0.0, 0.0)) -> NDArray[np.bool_]:
    """Pixels that are red rather than white. Shape: (60, 80)."""
    drawing = Drawing(shapes, centre=centre, width=8.0, background="#ffffff")
    picture = rasterise(drawing, DRAWN_SIZE)
    assert picture.shape == (60, 80, 3)
    assert picture.dtype == np.uint8
    return picture[..., 1] < 128


def box_of(pixels: NDArray[np.bool_]) -> tuple[int, int, int, int]:
    """Left, top, right and bottom, the last two exclusive."""
    rows, columns = np.nonzero(pixels)
    return columns.min(), rows.min(), columns.max() + 1, rows.max() + 1


def near(box: Sequence[int], expected: Sequence[float]) -> bool:
    """True where each edge is at most a pixel off."""
    return all(abs(side - right) <= 1.0 for side, right in zip(box, expected, strict=True))


def test_shapes_stand_where_their_coordinates_say() -> None:
    # 1 to the right and 0.5 upwards of the middle: x = 40 + 10, y = 30 − 5; 2 × 1 units
    box = box_of(reddish(rectangle((1.0, 0.5), 2.0, 1.0, RED)))
    assert near(box, (40, 20, 60, 30))
    circle = reddish(Circle((-2.0, 0.0), 1.0, RED))
    assert circle.sum() == pytest.approx(math.pi * 10.0**2, rel=0.05)
    line = reddish(Line(((-3.0, -1.0), (3.0, -1.0)), 0.4, RED), centre=(1.0, 0.0))
    assert near(box_of(line), (0, 38, 60, 42))


def test_a_turned_rectangle_turns_counterclockwise() -> None:
    # a quarter turn: 1 wide and 2 high
    box = box_of(reddish(rectangle((0.0, 0.0), 2.0, 1.0, RED, angle=math.pi / 2.0)))
    assert near(box, (35, 20, 45, 40))
    # 45 degrees: its right end is above the middle, its left end below
    pixels = reddish(rectangle((0.0, 0.0), 4.0, 0.2, RED, angle=math.pi / 4.0))
    assert pixels[30 - 10, 40 + 10]
    assert not pixels[30 + 10, 40 + 10]


def test_later_shapes_cover_earlier_ones() -> None:
    square = [(-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)]
    assert reddish(Polygon(square, "white"), Polygon(square, RED))[30, 40]
    assert not reddish(Polygon(square, RED), Polygon(square, "white"))[30, 40]


@pytest.mark.parametrize(
    ("drawing", "named"),
    [
        (Drawing((Circle((math.nan, 0.0), 1.0),), (0.0, 0.0), 8.0), r"\(nan, 0.0\)"),
        (Drawing((Circle((0.0, 0.0), 1.0, "reddish"),), (0.0, 0.0), 8.0), "'reddish'"),
        (Drawing((), (0.0, 0.0), 0.0), "width 0.0"),
        (Drawing((), (0.0, 0.0), 8.0, background="no colour"), "'no colour'"),
        (Drawing(("a circle",), (0.0, 0.0), 8.0), "'a circle'"),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_be_drawn_is_named(drawing: Drawing, named: str) -> None:
    with pytest.raises(RenderingError, match=named) as caught:
        rasterise(drawing, DRAWN_SIZE)
    assert "`draw`" in caught.value.hint
