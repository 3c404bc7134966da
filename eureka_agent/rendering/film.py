"""Videos of episodes, side by side and in step."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from eureka_agent.rendering.pictures import Picture, Size
from eureka_agent.rendering.strip import Curve, Series, Strip, header, largest_terms, shared_limits

RATE = 30
"""Pictures a second. A video runs in the environment's own time."""
HELD_SECONDS = 0.5
"""Time for which the last picture stays."""
_DIMMED = 0.45
_GAP, _GAP_GREY = 4, 120
"""Pixels between two panels, and their brightness."""


@dataclass(frozen=True)
class Episode:
    """One episode of a policy, for a panel."""

    title: str
    row: int
    """Row of the environment that plays it."""
    length: int
    """Control steps."""
    ended_by: str
    fitness: Series
    """Fitness so far, after each step."""
    terms: Mapping[str, Series] = field(default_factory=dict)
    """Terms of its policy's reward, for each step."""


@dataclass(frozen=True)
class Panel:
    """An episode with the lines of its strip."""

    episode: Episode
    curves: Sequence[Curve]


class Scene:
    """Episodes shown together."""

    def __init__(
        self, panels: Sequence[Panel], size: Size, control_dt: float, seconds: float
    ) -> None:
        """`size`: of a panel's picture; `control_dt`: seconds of a step; `seconds`: bound on an
        episode's shown part."""
        self.episodes = [panel.episode for panel in panels]
        most = math.floor(seconds / control_dt + 1e-9)
        self._shown = [min(episode.length, most) for episode in self.episodes]
        self._control_dt = control_dt
        rows = max(len(panel.curves) for panel in panels)
        self._headers = [header(size[0], episode.title) for episode in self.episodes]
        self._strips = [Strip(size[0], panel.curves, rows, control_dt) for panel in panels]

    @property
    def steps(self) -> int:
        """Steps that have to be played."""
        return max(self._shown)

    def times(self) -> Iterator[int]:
        """The step that each picture of the video shows."""
        return shown_steps(self.steps, self._control_dt)

    def is_under_way(self, place: int, step: int) -> bool:
        """True where the panel at `place` shows a new picture at this step."""
        return step <= self._shown[place]

    def drawn(self, step: int, pictures: Sequence[Picture]) -> Picture:
        """The scene after so many steps. `pictures`: each panel's, of that step or its last."""
        columns: list[Picture] = []
        for place, picture in enumerate(pictures):
            episode, shown = self.episodes[place], min(step, self._shown[place])
            ending = ""
            if step >= episode.length:
                ending = episode.ended_by.replace("_", " ")
                if step > episode.length:
                    picture = (picture * (1.0 - _DIMMED)).astype(np.uint8)
            strip = self._strips[place].picture(shown, ending)
            column = np.concatenate([self._headers[place], picture, strip])
            if columns:
                columns.append(np.full((len(column), _GAP, 3), _GAP_GREY, dtype=np.uint8))
            columns.append(column)
        whole = np.concatenate(columns, axis=1)
        # the codec takes even numbers
        return whole[: len(whole) // 2 * 2, : whole.shape[1] // 2 * 2]


def scenes(
    groups: Sequence[Sequence[Episode]],
    size: Size,
    control_dt: float,
    *,
    unit: str,
    seconds: float,
    strips: bool,
) -> list[Scene]:
    """The scenes of a video. `groups`: the episodes of each policy, by the same start states. The
    episodes of a single policy stand side by side; several policies stand side by side, and one
    start state follows the other."""
    fitness = shared_limits([episode.fitness for group in groups for episode in group])
    panels = [_panels(group, fitness, unit, strips=strips) for group in groups]
    together = panels if len(panels) == 1 else list(zip(*panels, strict=True))
    return [Scene(each, size, control_dt, seconds) for each in together]


def _panels(
    episodes: Sequence[Episode], limits: tuple[float, float], unit: str, *, strips: bool
) -> list[Panel]:
    """Panels of one policy's episodes, whose terms have the same scales."""
    if not strips:
        return [Panel(episode, ()) for episode in episodes]
    scales = {
        name: shared_limits([each.terms[name] for each in episodes if name in each.terms])
        for name in largest_terms([each.terms for each in episodes])
    }
    unit = "" if unit == "1" else unit
    return [
        Panel(
            episode,
            (
                Curve("fitness so far", episode.fitness, unit, limits),
                *(
                    Curve(name, episode.terms[name], "", scale)
                    for name, scale in scales.items()
                    if name in episode.terms
                ),
            ),
        )
        for episode in episodes
    ]


def shown_steps(steps: int, control_dt: float) -> Iterator[int]:
    """Steps of a video's pictures, `RATE` a second, from 0 to `steps` and on for
    `HELD_SECONDS`."""
    pictures = math.ceil(steps * control_dt * RATE - 1e-9)
    for picture in range(pictures):
        yield min(steps, round(picture / (RATE * control_dt)))
    for _ in range(max(1, round(HELD_SECONDS * RATE))):
        yield steps
