"""Pictures of any environment's rows: its own drawing, MuJoCo's, or Gymnasium's."""

from __future__ import annotations

import inspect
import os
from dataclasses import replace
from typing import Protocol

import gymnasium
import numpy as np
from PIL import Image

from eureka_agent.errors import EurekaError
from eureka_agent.invocation import command, install_extra
from eureka_agent.rendering.pictures import Picture, RenderingError, Size
from eureka_agent.rendering.rasterise import rasterise
from eureka_agent.simulation.gymnasium_calls import place_of_render
from eureka_agent.simulation.gymnasium_probe import is_by_id
from eureka_agent.simulation.gymnasium_task import GymnasiumTask
from eureka_agent.simulation.loading import LoadedEnvironment
from eureka_agent.simulation.mujoco_task import MujocoTask
from eureka_agent.simulation.user_modules import (
    place_of_function,
    third_party_code,
    user_code,
)
from eureka_agent.simulation.vec_task import VecTask

_MODE = "rgb_array"
_DRAW_HINT = (
    "write `draw` in the environment's class: it returns a Drawing of"
    " eureka_agent.simulation.drawing"
)


class Pictures(Protocol):
    """Draws an environment's rows."""

    def picture(self, row: int) -> Picture:
        """The row's present state. Raises RenderingError."""
        ...

    def close(self) -> None:
        """Free what drawing needs."""
        ...


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
    return any(
        each.name == "render_mode" or each.kind is inspect.Parameter.VAR_KEYWORD
        for each in parameters
    )


def pictures_of(loaded: LoadedEnvironment, environment: VecTask, size: Size) -> Pictures:
    """Pictures of an environment that a `drawable` one made. Raises RenderingError."""
    if type(environment).draw is not VecTask.draw:
        return _OwnDrawings(loaded, environment, size)
    if isinstance(environment, MujocoTask):
        from eureka_agent.rendering.mujoco_pictures import MujocoPictures

        return MujocoPictures(environment, size)
    assert isinstance(environment, GymnasiumTask)
    return _GymnasiumPictures(environment, size)


class _OwnDrawings:
    """Pictures of what an environment's `draw` returns."""

    def __init__(self, loaded: LoadedEnvironment, environment: VecTask, size: Size) -> None:
        self._folder = loaded.folder
        self._environment = environment
        self._size = size

    def picture(self, row: int) -> Picture:
        try:
            with user_code(self._folder, "drawing a picture"):
                return rasterise(self._environment.draw(row), self._size)
        except EurekaError as error:
            # no line of its own raised: what it gave cannot be drawn
            own = ", line " in error.message
            place = "" if own else place_of_function(type(self._environment).draw)
            raise RenderingError(f"{place}{error.message}", error.hint) from None

    def close(self) -> None:
        """Nothing to free."""


class _GymnasiumPictures:
    """Pictures of `render()`."""

    def __init__(self, environment: GymnasiumTask, size: Size) -> None:
        self._environments = environment.environments
        self._label, self._package = environment.label(), environment._package
        self._size = size
        # no window, and no display that is asked for one
        os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
        if any(_has_mujoco(each) for each in self._environments[:1]):
            from eureka_agent.rendering.mujoco_pictures import BACK_END_VARIABLE, back_end

            os.environ[BACK_END_VARIABLE] = back_end()
        for each in self._environments:
            if _has_mujoco(each):
                model = each.unwrapped.model  # type: ignore[attr-defined]
                model.vis.quality.offsamples = 0
                model.light_castshadow[:] = 0

    def picture(self, row: int) -> Picture:
        environment = self._environments[row]
        try:
            passing = (gymnasium.error.DependencyNotInstalled, NotImplementedError)
            with third_party_code(self._package, "when it was drawn", passing):
                pixels = environment.render()
        except gymnasium.error.DependencyNotInstalled as error:
            what = f"{self._label} cannot be drawn: {error}"
            raise RenderingError(what, f"install it: {install_extra('gymnasium')}") from None
        except NotImplementedError:
            raise RenderingError(
                f"{place_of_render(environment)}{self._label} has no `render`",
                f"write one that gives an array (height, width, 3) of uint8 in the mode {_MODE!r}",
            ) from None
        except EurekaError as error:
            what = f"{self._label} cannot be drawn: {error.message}"
            raise RenderingError(what, error.hint) from None
        if not _is_picture(pixels):
            kind = "None" if pixels is None else type(pixels).__name__
            shape = getattr(pixels, "shape", "")
            raise RenderingError(
                f"{place_of_render(environment)}`render` of {self._label} gave"
                f" {f'{kind} {shape}'.rstrip()}, expected an array (height, width, 3) of uint8",
                f"make it with render_mode={_MODE!r}; `{command('envs --check')}` tries the rest",
            )
        return fitted(np.asarray(pixels), self._size)

    def close(self) -> None:
        """The environments are closed by their owner."""


def _has_mujoco(environment: gymnasium.Env) -> bool:
    return type(getattr(environment.unwrapped, "model", None)).__name__ == "MjModel"


def _is_picture(pixels: object) -> bool:
    return (
        isinstance(pixels, np.ndarray)
        and pixels.ndim == 3
        and pixels.shape[2] == 3
        and min(pixels.shape) > 0
        and pixels.dtype == np.uint8
    )


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
