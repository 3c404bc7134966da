"""Pictures of any environment's rows: its own drawing, MuJoCo's, or Gymnasium's."""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TypeAlias

import gymnasium
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageColor, ImageDraw, ImageFont

from eureka_agent.errors import EurekaError
from eureka_agent.invocation import command, install_extra
from eureka_agent.simulation.drawing import Circle, Drawing, Label, Line, Point, Polygon, Shape
from eureka_agent.simulation.gymnasium_calls import place_of_render
from eureka_agent.simulation.gymnasium_probe import is_by_id
from eureka_agent.simulation.gymnasium_task import GymnasiumTask
from eureka_agent.simulation.loading import LoadedEnvironment
from eureka_agent.simulation.mujoco_task import MujocoTask
from eureka_agent.simulation.user_modules import place_of_function, third_party_code, user_code
from eureka_agent.simulation.vec_task import VecTask

Picture: TypeAlias = NDArray[np.uint8]
"""Shape: (height, width, 3), red, green and blue."""
Size: TypeAlias = tuple[int, int]
"""Width and height in pixels."""


class RenderingError(EurekaError):
    """A picture that cannot be made: an environment without one, or missing libraries."""


@cache
def font(pixels: int) -> ImageFont.FreeTypeFont:
    """Pillow's own font: the same on every machine."""
    found = ImageFont.load_default(pixels)
    assert isinstance(found, ImageFont.FreeTypeFont)  # wheels of Pillow have FreeType
    return found


_OVERSAMPLING = 2
"""Pixels a side for each pixel of the result: Pillow draws without smooth edges."""
_LABEL_PIXELS = 13


def rasterise(drawing: Drawing, size: Size) -> Picture:
    """The drawing as a picture. Raises RenderingError for a size, number or colour that is none."""
    if not isinstance(drawing, Drawing):
        hint = "return Drawing(shapes, centre, width) of eureka_agent.simulation.drawing"
        raise RenderingError(f"`draw` gave {type(drawing).__name__}, expected a Drawing", hint)
    if not math.isfinite(drawing.width) or drawing.width <= 0.0:
        raise _wrong(f"the width {drawing.width!r}", "a number above 0")
    width, height = (_OVERSAMPLING * side for side in size)
    image = Image.new("RGB", (width, height), _colour(drawing.background))
    draw, scale = ImageDraw.Draw(image), width / drawing.width

    def pixel(point: Point) -> tuple[float, float]:
        """The point in pixels; far away ones come to lie well outside."""
        right, up = (float(value) for value in point)
        if not (math.isfinite(right) and math.isfinite(up)):
            raise _wrong(f"the point {point!r}", "two finite numbers")
        x = width / 2.0 + (right - drawing.centre[0]) * scale
        y = height / 2.0 - (up - drawing.centre[1]) * scale
        most = 1e5  # Pillow counts pixels in 32 bits
        return min(max(x, -most), most), min(max(y, -most), most)

    for shape in drawing.shapes:
        if not isinstance(shape, Shape):
            raise _wrong(f"the shape {shape!r}", "a Line, Circle, Polygon or Label")
        colour = _colour(shape.colour)
        match shape:
            case Line():
                points = [pixel(point) for point in shape.points]
                thickness = max(1, round(shape.width * scale))
                draw.line(points, fill=colour, width=thickness, joint="curve")
            case Circle():
                x, y = pixel(shape.centre)
                radius = max(0.5, shape.radius * scale)
                draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=colour)
            case Polygon():
                draw.polygon([pixel(point) for point in shape.points], fill=colour)
            case Label():
                text = font(_OVERSAMPLING * _LABEL_PIXELS)
                draw.text(pixel(shape.at), shape.text, fill=colour, font=text)
    return np.asarray(image.reduce(_OVERSAMPLING))


def _colour(name: str) -> tuple[int, ...]:
    try:
        return ImageColor.getrgb(name)
    except (ValueError, AttributeError):
        raise _wrong(f"the colour {name!r}", "a name of CSS or '#rrggbb'") from None


def _wrong(what: str, expected: str) -> RenderingError:
    said = f"the environment's drawing has {what}, expected {expected}"
    return RenderingError(said, "correct its `draw`")


_MODE = "rgb_array"
_DRAW_HINT = "write `draw` in the class: it returns a Drawing of eureka_agent.simulation.drawing"


@dataclass(frozen=True)
class Pictures:
    picture: Callable[[int], Picture]
    """Gives a row's present state. Raises RenderingError."""
    turned: Callable[[int], Picture] | None = None
    """Gives the same from a side a quarter turn about the vertical away; None: there is none."""
    close: Callable[[], None] = lambda: None
    """Frees what drawing needs."""


def drawable(loaded: LoadedEnvironment) -> LoadedEnvironment:
    """The environment, whose copies can be drawn. Raises RenderingError where they never can."""
    cls = loaded.environment_class
    if cls.draw is not VecTask.draw or issubclass(cls, MujocoTask):
        return loaded
    if not issubclass(cls, GymnasiumTask):
        raise RenderingError(f"{cls.__name__} cannot be drawn: it has no `draw`", _DRAW_HINT)
    spec = cls._spec
    modes = () if spec is None else _modes(spec)
    if spec is not None and modes and _MODE not in modes:
        known = ", ".join(map(repr, modes))
        what = f"{cls.label()} cannot be drawn as {_MODE!r}, it knows {known}"
        raise RenderingError(what, "choose an environment that can, or give it a `draw`")
    if not is_by_id(cls) and not _takes_mode(cls):
        return loaded
    options = {**cls.gymnasium_options, "render_mode": _MODE}
    with_pictures = type(cls.__name__, (cls,), {"gymnasium_options": options})
    return replace(loaded, environment_class=with_pictures)


def _modes(spec: gymnasium.envs.registration.EnvSpec) -> tuple[str, ...]:
    """Render modes of a registered environment, without making it; empty where unknown."""
    try:
        made = gymnasium.envs.registration.load_env_creator(str(spec.entry_point))
    except (ImportError, AttributeError):
        return ()
    return tuple(getattr(made, "metadata", {}).get("render_modes", ()))


def _takes_mode(cls: type[GymnasiumTask]) -> bool:
    """True where the author's function that makes a copy takes a `render_mode`."""
    try:
        parameters = inspect.signature(cls.make_environment).parameters.values()
    except (TypeError, ValueError):  # compiled
        return False
    anything = inspect.Parameter.VAR_KEYWORD
    return any(each.name == "render_mode" or each.kind is anything for each in parameters)


def pictures_of(loaded: LoadedEnvironment, environment: VecTask, size: Size) -> Pictures:
    """Pictures of an environment that a `drawable` one made. Raises RenderingError."""
    if type(environment).draw is not VecTask.draw:
        return Pictures(partial(_own_drawing, loaded, environment, size))
    if isinstance(environment, MujocoTask):
        from eureka_agent.simulation.mujoco_pictures import MujocoPictures

        found = MujocoPictures(environment, size)
        return Pictures(found.picture, found.turned, found.close)
    assert isinstance(environment, GymnasiumTask)
    # no window, and no display that is asked for one
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    if any(_has_mujoco(each) for each in environment.environments[:1]):
        from eureka_agent.simulation.mujoco_pictures import BACK_END_VARIABLE, back_end

        os.environ[BACK_END_VARIABLE] = back_end()
    for each in environment.environments:
        if _has_mujoco(each):
            model = each.unwrapped.model  # type: ignore[attr-defined]
            model.vis.quality.offsamples = 0
            model.light_castshadow[:] = 0
    return Pictures(partial(_rendered, environment, size))


def _own_drawing(loaded: LoadedEnvironment, environment: VecTask, size: Size, row: int) -> Picture:
    try:
        with user_code(loaded.folder, "drawing a picture"):
            return rasterise(environment.draw(row), size)
    except EurekaError as error:
        # no line of its own raised: what it gave cannot be drawn
        own = ", line " in error.message
        place = "" if own else place_of_function(type(environment).draw)
        raise RenderingError(f"{place}{error.message}", error.hint) from None


def _rendered(task: GymnasiumTask, size: Size, row: int) -> Picture:
    environment, label = task.environments[row], task.label()
    try:
        passing = (gymnasium.error.DependencyNotInstalled, NotImplementedError)
        with third_party_code(task._package, "when it was drawn", passing):
            pixels = environment.render()
    except gymnasium.error.DependencyNotInstalled as error:
        what = f"{label} cannot be drawn: {error}"
        raise RenderingError(what, f"install it: {install_extra('gymnasium')}") from None
    except NotImplementedError:
        what = f"{place_of_render(environment)}{label} has no `render`"
        hint = f"write one that gives an array (height, width, 3) of uint8 in the mode {_MODE!r}"
        raise RenderingError(what, hint) from None
    except EurekaError as error:
        raise RenderingError(f"{label} cannot be drawn: {error.message}", error.hint) from None
    if not _is_picture(pixels):
        kind = "None" if pixels is None else type(pixels).__name__
        found = f"{kind} {getattr(pixels, 'shape', '')}".rstrip()
        raise RenderingError(
            f"{place_of_render(environment)}`render` of {label} gave {found}, expected an array"
            " (height, width, 3) of uint8",
            f"make it with render_mode={_MODE!r}; `{command('envs --check')}` tries the rest",
        )
    return fitted(np.asarray(pixels), size)


def _has_mujoco(environment: gymnasium.Env) -> bool:
    return type(getattr(environment.unwrapped, "model", None)).__name__ == "MjModel"


def _is_picture(pixels: object) -> bool:
    if not isinstance(pixels, np.ndarray) or pixels.dtype != np.uint8:
        return False
    return pixels.ndim == 3 and pixels.shape[2] == 3 and min(pixels.shape) > 0


def fitted(pixels: Picture, size: Size) -> Picture:
    """A picture in another size, with bars at its sides where the proportions differ."""
    height, width = pixels.shape[:2]
    if (width, height) == size:
        return pixels
    scale = min(size[0] / width, size[1] / height)
    inner = max(1, round(width * scale)), max(1, round(height * scale))
    canvas = Image.new("RGB", size, "#f8fafc")
    place = (size[0] - inner[0]) // 2, (size[1] - inner[1]) // 2
    canvas.paste(Image.fromarray(pixels).resize(inner, Image.Resampling.BILINEAR), place)
    return np.asarray(canvas)
