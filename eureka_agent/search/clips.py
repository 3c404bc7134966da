"""Clips of a run's attempts for a person's choices: all from the same start states."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from eureka_agent.analysis.trajectories import read_trajectories
from eureka_agent.archive.artefacts import attempt_folder
from eureka_agent.archive.run_folder import Run
from eureka_agent.archive.safe_files import inside
from eureka_agent.errors import RunFolderError
from eureka_agent.feedback_records import Clip
from eureka_agent.fleet.film_maker import FilmMaker, FilmSettings
from eureka_agent.sandbox.cores import usable_cores
from eureka_agent.search.filming import trained_policies
from eureka_agent.search.preparation import Prepared
from eureka_agent.search.run_end import WORKERS_FOLDER
from eureka_agent.search.seeds import derive_seed
from eureka_agent.value_ranges import short_number

CLIP_SIZE = (320, 240)
CLIP_SECONDS = 6.0
CLIP_STARTS = 3
"""Start states side by side in a clip: one tells little of a policy that falls now and then."""
CLIP_EPISODES = 24
"""Start states, of which each round shows others."""
_MOST_MAKERS = 2
_MOST_STATE_VARIABLES = 24


class Clips:
    """Clips of a run's attempts, each made once."""

    def __init__(self, run: Run, ready: Prepared) -> None:
        self._run = run
        self.seed = derive_seed(run.settings.seed, "clips")
        """Seed of all clips' episodes."""
        scratch = inside(run.folder, WORKERS_FOLDER) / "clips"
        self._makers = [
            FilmMaker(ready.wall, ready.problem(), scratch / str(number))
            for number in range(min(_MOST_MAKERS, usable_cores()))
        ]

    async def of(self, names: Sequence[str], episode: int) -> dict[str, Path]:
        """The clips that begin with this start state, those that are missing made side by side."""
        paths = {name: self._path(name, episode) for name in names}
        missing = [name for name, path in paths.items() if not path.is_file()]
        turns = [missing[number :: len(self._makers)] for number in range(len(self._makers))]

        async def make(maker: FilmMaker, turn: Sequence[str]) -> None:
            for name in turn:
                await self._make(maker, name, episode, paths[name])

        await asyncio.gather(*map(make, self._makers, turns))
        return paths

    async def _make(self, maker: FilmMaker, name: str, episode: int, path: Path) -> None:
        (shown,) = trained_policies(self._run, [name])
        settings = FilmSettings(
            seed=self.seed,
            episodes=CLIP_EPISODES,
            shown=tuple(range(episode, episode + CLIP_STARTS)),
            size=CLIP_SIZE,
            seconds=CLIP_SECONDS,
            strips=False,  # a choice rests on what is seen
        )
        fingerprint = self._run.description.fingerprint
        states = path.with_suffix(".npz")
        await maker.film([shown.subject], settings, fingerprint, path, trajectories=states)

    def _path(self, name: str, episode: int) -> Path:
        return attempt_folder(self._run.folder, name) / f"clip-{episode}.mp4"

    def state(self, clip: Clip, second: float, control_dt: float) -> str:
        """The state of a clip at a second, in words. Raises RunFolderError without its file."""
        first = clip.episode - clip.episode % CLIP_STARTS
        path = self._path(clip.attempt, first).with_suffix(".npz")
        episode = read_trajectories(path)[f"0-{clip.episode}"]
        public = {each.name: each for each in self._run.description.public_variables()}
        length = len(episode.get("fitness", ()))
        if not length:
            raise RunFolderError(f"{str(path)!r} has no steps", "make the clip again")
        step = min(max(round(second / control_dt) - 1, 0), length - 1)
        parts: list[str] = []
        for name, values in episode.items():
            if name in public and len(parts) < _MOST_STATE_VARIABLES:
                numbers = ", ".join(map(short_number, np.ravel(values[step])[:6].tolist()))
                parts.append(f"{name} {numbers}")
        return f"step {step + 1} of {length}: {'; '.join(parts)}"

    async def close(self) -> None:
        """End the workers."""
        for maker in self._makers:
            await maker.close()
