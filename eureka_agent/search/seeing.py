"""Pictures of episodes for the models of a run: its analyst and its judge."""

from __future__ import annotations

import asyncio
import itertools
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from eureka_agent.analysis.diagnose import Analyst
from eureka_agent.analysis.judge import MOMENTS as JUDGED_MOMENTS
from eureka_agent.analysis.judge import STARTS, ModelJudge
from eureka_agent.analysis.standing import comparisons_of_model, preferences_of, sub_goals_of
from eureka_agent.archive.artefacts import JUDGED, SHEET, VIDEO, attempt_folder
from eureka_agent.archive.run_folder import Run
from eureka_agent.archive.safe_files import inside
from eureka_agent.errors import EnvironmentFaultError, EurekaError, RunFolderError
from eureka_agent.feedback_records import Comparison, Given, Judgement
from eureka_agent.fleet.warm_worker import FilmMaker, FilmSettings
from eureka_agent.journal.entries import FeedbackGiven, Notice, Observer
from eureka_agent.llm.interface import ImagePart, LanguageModelError
from eureka_agent.records import Attempt, Diagnosis, Stage
from eureka_agent.rewards import RewardSpecification
from eureka_agent.search.filming import film_settings, trained_policies
from eureka_agent.search.recorder import WORKERS_FOLDER
from eureka_agent.search.seeds import derive_seed

_SIZE = (320, 240)
MOMENTS = 6
"""Pictures of an episode: models scale a sheet of more than a megapixel down."""
_DESCRIPTION = (
    "One picture of two episodes, without exploration noise: the best in the upper row, the worst"
    " in the lower one, each at some moments from its start (left) to its end (right), with the"
    " time above."
)


class RunAnalyst:
    """Analyst of a run's trainings, perhaps with pictures of the best and the worst episode."""

    def __init__(
        self, analyst: Analyst, run: Run, maker: FilmMaker | None, observer: Observer
    ) -> None:
        """`maker` draws pictures; None: the analyst sees none."""
        self._analyst, self._run, self._maker = analyst, run, maker
        self._observer, self._blind = observer, False
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
                await _draw(run, attempt, maker, path, folder / VIDEO)
            except (EnvironmentFaultError, RunFolderError):
                raise
            except EurekaError as error:
                self._blind = True
                text = f"the analyst sees no pictures: {error.message}; {error.hint}"
                self._observer(Notice(text=text, level="warning"))
        if not path.is_file():
            return ()
        return (ImagePart(await asyncio.to_thread(path.read_bytes), _DESCRIPTION),)


async def _draw(
    run: Run,
    attempt: str,
    maker: FilmMaker,
    sheet: Path,
    video: Path,
    moments: Sequence[float] = (),
) -> None:
    shown = trained_policies(run, [attempt])
    episodes = film_settings(run, shown, ("best", "worst"), size=_SIZE, sheet=MOMENTS)
    if moments:
        episodes = replace(episodes, sheet=len(moments), moments=tuple(moments))
    subjects, of = [each.subject for each in shown], run.description.fingerprint
    await maker.film(subjects, episodes, of, video, sheet=sheet)


async def sheet_of(
    run: Run, attempt: str, maker: FilmMaker, moments: Sequence[float] = ()
) -> ImagePart:
    """The best and the worst episode of an attempt at these moments (s), or at some. Raises the
    errors of `FilmMaker.film`."""
    with tempfile.TemporaryDirectory(prefix="eureka-") as folder:
        sheet = Path(folder) / SHEET
        await _draw(run, attempt, maker, sheet, Path(folder) / VIDEO, moments)
        return ImagePart(await asyncio.to_thread(sheet.read_bytes), _DESCRIPTION)


COMPARISONS = 2
"""Comparisons for each trained attempt."""
AT_ONCE = 4
"""Comparisons that are chosen together and asked at the same time: a model is slow."""
_JUDGED_SIZE = (256, 192)
"""Size with about a megapixel for six moments and three rows."""
_LEAST_SECONDS = 0.1
"""Length of the video beside the moments, which nobody watches."""

Pair = tuple[str, str]


class Judging:
    """Has a model compare the attempts of a run."""

    def __init__(self, judge: ModelJudge, run: Run, maker: FilmMaker, observer: Observer) -> None:
        self._judge, self._run, self._maker = judge, run, maker
        self._observer = observer

    async def judge(self) -> None:
        """Compare until each trained attempt has its comparisons, or no pair is left. Answers of
        pairs of one choice are one record: a killed run chooses them again and finds the
        replies."""
        while pairs := next_pairs(
            self._run.archive.attempts(), self._run.archive.state.feedback, self._run.settings.seed
        ):
            pictures = {name: await self._picture(name) for name in sorted({*sum(pairs, ())})}
            known = sub_goals_of(self._run.archive.state.feedback)
            goals = await self._sub_goals(pictures[pairs[0][0]]) if known is None else known
            answers = await asyncio.gather(
                *(self._judge.compare(pictures[one], pictures[two], goals) for one, two in pairs)
            )
            for (first, second), (_, fault) in zip(pairs, answers, strict=True):
                if fault:
                    text = f"{self._judge.name} cannot tell {first} from {second}: {fault}"
                    self._observer(Notice(text=text, level="warning"))
            told = Judgement(
                sub_goals=goals if known is None else None,
                comparisons=tuple(
                    Comparison(first=first, second=second, grade=grade)
                    for (first, second), (grade, _) in zip(pairs, answers, strict=True)
                ),
            )
            self._observer(FeedbackGiven(who=self._judge.name, feedback=told))

    async def _sub_goals(self, picture: bytes) -> tuple[str, ...]:
        goals, fault = await self._judge.sub_goals(picture)
        if fault:
            text = f"{self._judge.name} judges without sub-goals: {fault}"
            self._observer(Notice(text=text, level="warning"))
        return goals

    async def _picture(self, name: str) -> bytes:
        """The stored picture of an attempt, which names nobody, since a request is made once."""
        path = attempt_folder(self._run.folder, name) / JUDGED
        if not path.is_file():
            (shown,) = trained_policies(self._run, [name])
            settings = FilmSettings(
                seed=derive_seed(self._run.settings.seed, "judged"),
                episodes=STARTS,
                shown=tuple(range(STARTS)),
                size=_JUDGED_SIZE,
                seconds=_LEAST_SECONDS,
                fitness=False,
                sheet=JUDGED_MOMENTS,
                by_change=True,
                two_sides=True,
            )
            video = inside(self._run.folder, WORKERS_FOLDER, "judged.mp4")
            subject = replace(shown.subject, title="policy")
            fingerprint = self._run.description.fingerprint
            await self._maker.film([subject], settings, fingerprint, video, sheet=path)
        return await asyncio.to_thread(path.read_bytes)


def next_pairs(
    attempts: Sequence[Attempt], feedback: Sequence[Given], seed: int
) -> tuple[Pair, ...]:
    """The pairs to compare next, in their drawn order; empty once there are enough answers.

    A pair with an attempt that was never compared comes first, then the one whose comparison tells
    most; pairs of one choice share few attempts. Each order of a pair is a question of its own: a
    model may prefer a place.
    """
    names = [each.id for each in attempts if each.stage is Stage.TRAINED]
    asked = [(each.first, each.second) for each in comparisons_of_model(feedback)]
    room = min(AT_ONCE, COMPARISONS * len(names) - len(asked))
    found = preferences_of(attempts, feedback, "model")
    compared = {name for pair in asked for name in pair}
    uses: Counter[str] = Counter()
    left = {
        pair: found.worth(pair)
        for pair in itertools.combinations(names, 2)
        if not {pair, pair[::-1]} <= set(asked)
    }
    chosen: list[Pair] = []
    while left and len(chosen) < room:
        pair = max(
            left,
            key=lambda pair: (
                not compared.issuperset(pair),
                -max(uses[name] for name in pair),
                left[pair],
            ),
        )
        del left[pair]
        compared.update(pair)
        uses.update(pair)
        drawn = pair[::-1] if derive_seed(seed, "order", *pair) % 2 else pair
        chosen.append(drawn[::-1] if drawn in asked else drawn)
    return tuple(chosen)
