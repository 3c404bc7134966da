"""A picture of episodes for those who read no videos: moments from left to right."""

from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np
from PIL import Image

from eureka_agent.rendering.film import Episode
from eureka_agent.rendering.pictures import Picture
from eureka_agent.rendering.strip import header

_QUALITY = 85
_EDGE = 120
"""Brightness of the line between two moments."""


class Sheet:
    """Collects pictures of one scene's episodes."""

    def __init__(self, episodes: Sequence[Episode], columns: int, control_dt: float) -> None:
        """`columns`: moments of each episode, its start and end among them."""
        self._episodes = episodes
        self._control_dt = control_dt
        self._steps = [
            np.linspace(0, episode.length, columns).round().astype(int).tolist()
            for episode in episodes
        ]
        self._found: list[dict[int, Picture]] = [{} for _ in episodes]

    def wants(self, place: int, step: int) -> bool:
        """True where a picture of this episode at this step is missing."""
        return step in self._steps[place] and step not in self._found[place]

    def add(self, place: int, step: int, picture: Picture) -> None:
        """Take a picture."""
        self._found[place][step] = picture

    def content(self) -> bytes:
        """The file (JPEG)."""
        rows = []
        for episode, steps, found in zip(self._episodes, self._steps, self._found, strict=True):
            tiles = [
                np.concatenate([self._label(step, found[step].shape[1]), found[step]])
                for step in steps
            ]
            for tile in tiles[:-1]:
                tile[:, -1] = _EDGE
            row = np.concatenate(tiles, axis=1)
            rows += [header(row.shape[1], episode.title), row]
        file = io.BytesIO()
        Image.fromarray(np.concatenate(rows)).save(file, "JPEG", quality=_QUALITY)
        return file.getvalue()

    def _label(self, step: int, width: int) -> Picture:
        return header(width, f"{step * self._control_dt:.2f} s")
