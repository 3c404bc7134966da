"""Pictures of episodes for the analyst."""

from __future__ import annotations

import asyncio
from typing import Protocol

from eureka_agent.archive.artefacts import SHEET, VIDEO, attempt_folder
from eureka_agent.archive.run_folder import Run
from eureka_agent.errors import EnvironmentFaultError, EurekaError, RunFolderError
from eureka_agent.fleet.film_maker import FilmMaker
from eureka_agent.journal.entries import Notice, Observer
from eureka_agent.llm.interface import ImagePart
from eureka_agent.records import Diagnosis
from eureka_agent.rewards import RewardSpecification
from eureka_agent.search.filming import film_settings, trained_policies

_SIZE = (320, 240)
MOMENTS = 6
"""Pictures of an episode: a sheet of two episodes has about a megapixel, beyond which models scale
pictures down."""
_DESCRIPTION = (
    f"One picture of two episodes, without exploration noise: the best in the upper row, the worst"
    f" in the lower one, each at {MOMENTS} moments from its start (left) to its end (right), with"
    " the time above."
)


class Explains(Protocol):
    """An analyst that takes pictures: `eureka_agent.analysis.diagnose.Analyst`."""

    async def analyse(
        self,
        attempt: str,
        reward: RewardSpecification,
        diagnosis: Diagnosis,
        pictures: tuple[ImagePart, ...] = (),
    ) -> str:
        """The analysis of an attempt's training."""
        ...


class SeeingAnalyst:
    """Shows an analyst the best and the worst episode of each training."""

    def __init__(self, analyst: Explains, run: Run, maker: FilmMaker, observer: Observer) -> None:
        self._analyst = analyst
        self._run = run
        self._maker = maker
        self._observer = observer
        self._blind = False
        """True once nothing could be drawn."""

    async def analyse(self, attempt: str, reward: RewardSpecification, diagnosis: Diagnosis) -> str:
        """The analysis, with pictures where there are some."""
        pictures = await self._pictures(attempt)
        return await self._analyst.analyse(attempt, reward, diagnosis, pictures)

    async def _pictures(self, attempt: str) -> tuple[ImagePart, ...]:
        """The sheet of an attempt's episodes: the stored one, since a request is made once."""
        path = attempt_folder(self._run.folder, attempt) / SHEET
        is_pruned = attempt in self._run.archive.state.pruned
        if not path.is_file() and not self._blind and not is_pruned:
            try:
                await self._film(attempt)
            except (EnvironmentFaultError, RunFolderError):
                raise
            except EurekaError as error:
                self._blind = True
                text = f"the analyst sees no pictures: {error.message}; {error.hint}"
                self._observer(Notice(text=text, level="warning"))
        if not path.is_file():
            return ()
        return (ImagePart(await asyncio.to_thread(path.read_bytes), _DESCRIPTION),)

    async def _film(self, attempt: str) -> None:
        shown = trained_policies(self._run, [attempt])
        settings = film_settings(self._run, shown, ("best", "worst"), size=_SIZE, sheet=MOMENTS)
        folder = attempt_folder(self._run.folder, attempt)
        await self._maker.film(
            [each.subject for each in shown],
            settings,
            self._run.description.fingerprint,
            folder / VIDEO,
            sheet=folder / SHEET,
        )
