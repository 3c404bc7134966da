"""The analyst of a run, with pictures of episodes."""

from __future__ import annotations

import asyncio

from eureka_agent.analysis.analyst import Analyst
from eureka_agent.archive.artefacts import SHEET, VIDEO, attempt_folder
from eureka_agent.archive.run_folder import Run
from eureka_agent.errors import EnvironmentFaultError, EurekaError, RunFolderError
from eureka_agent.fleet.film_maker import FilmMaker
from eureka_agent.journal.entries import Notice, Observer
from eureka_agent.llm.interface import ImagePart, LanguageModelError
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


class RunAnalyst:
    """Analyst of a run's trainings, perhaps with pictures of the best and the worst episode."""

    def __init__(
        self, analyst: Analyst, run: Run, maker: FilmMaker | None, observer: Observer
    ) -> None:
        """`maker` draws pictures; None: the analyst sees none."""
        self._analyst = analyst
        self._run = run
        self._maker = maker
        self._observer = observer
        self._blind = False
        """True once nothing could be drawn."""

    async def analyse(self, attempt: str, reward: RewardSpecification, diagnosis: Diagnosis) -> str:
        """The analysis of an attempt's training; empty if the model cannot be asked."""
        try:
            pictures = await self._pictures(attempt, self._maker) if self._maker else ()
            return await self._analyst.analyse(attempt, reward, diagnosis, pictures)
        except LanguageModelError as error:
            text = f"the designer is told of {attempt} without an analysis: {error.message}"
            self._observer(Notice(text=text, level="warning"))
            return ""

    async def _pictures(self, attempt: str, maker: FilmMaker) -> tuple[ImagePart, ...]:
        """The sheet of an attempt's episodes: the stored one, since a request is made once."""
        folder, run = attempt_folder(self._run.folder, attempt), self._run
        path = folder / SHEET
        if not path.is_file() and not self._blind and attempt not in run.archive.state.pruned:
            try:
                shown = trained_policies(run, [attempt])
                episodes = film_settings(run, shown, ("best", "worst"), size=_SIZE, sheet=MOMENTS)
                subjects, of = [each.subject for each in shown], run.description.fingerprint
                await maker.film(subjects, episodes, of, folder / VIDEO, sheet=path)
            except (EnvironmentFaultError, RunFolderError):
                raise
            except EurekaError as error:
                self._blind = True
                text = f"the analyst sees no pictures: {error.message}; {error.hint}"
                self._observer(Notice(text=text, level="warning"))
        if not path.is_file():
            return ()
        return (ImagePart(await asyncio.to_thread(path.read_bytes), _DESCRIPTION),)
