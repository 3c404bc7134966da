"""Judging of a search's attempts by a model that sees: which pairs it compares, and what becomes
of its answers."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from eureka_agent.archive.artefacts import JUDGED, attempt_folder
from eureka_agent.archive.run_folder import Run
from eureka_agent.archive.safe_files import inside
from eureka_agent.feedback.judge import MOMENTS, STARTS, ModelJudge
from eureka_agent.feedback.standing import comparisons_of_model, preferences_of
from eureka_agent.feedback_records import Comparison, Given, Judgement
from eureka_agent.fleet.film_maker import FilmMaker, FilmSettings
from eureka_agent.journal.entries import FeedbackGiven, Notice, Observer
from eureka_agent.records import Attempt, Stage
from eureka_agent.search.filming import trained_policies
from eureka_agent.search.run_end import WORKERS_FOLDER
from eureka_agent.search.seeds import derive_seed

COMPARISONS = 2
"""Comparisons for each trained attempt."""
AT_ONCE = 4
"""Comparisons that are chosen together and asked at the same time: a model is slow."""
_SIZE = (256, 192)
"""A picture of six moments and three rows has about a megapixel, beyond which models scale it
down."""
_LEAST_SECONDS = 0.1
"""Length of the video beside the moments, which nobody watches."""

Pair = tuple[str, str]


class Judging:
    """Has a model compare the attempts of a run."""

    def __init__(self, judge: ModelJudge, run: Run, maker: FilmMaker, observer: Observer) -> None:
        self._judge = judge
        self._run = run
        self._maker = maker
        self._observer = observer

    async def judge(self) -> None:
        """Compare until each trained attempt has its comparisons, or no pair is left.

        The answers of pairs that were chosen together are one record: a killed run chooses the
        same pairs again, and finds the replies that are stored. Raises BudgetSpentError,
        LanguageModelError, and the errors of `FilmMaker.film`.
        """
        while pairs := next_pairs(
            self._run.archive.attempts(), self._run.archive.state.feedback, self._run.settings.seed
        ):
            pictures = {name: await self._picture(name) for name in sorted({*sum(pairs, ())})}
            answers = await asyncio.gather(
                *(self._judge.compare(pictures[one], pictures[two]) for one, two in pairs)
            )
            for (first, second), (_, fault) in zip(pairs, answers, strict=True):
                if fault:
                    text = f"{self._judge.name} cannot tell {first} from {second}: {fault}"
                    self._observer(Notice(text=text, level="warning"))
            told = Judgement(
                comparisons=tuple(
                    Comparison(first=first, second=second, grade=grade)
                    for (first, second), (grade, _) in zip(pairs, answers, strict=True)
                )
            )
            self._observer(FeedbackGiven(who=self._judge.name, feedback=told))

    async def _picture(self, name: str) -> bytes:
        """The picture of an attempt: the stored one, since a request is made once. It names
        nobody."""
        path = attempt_folder(self._run.folder, name) / JUDGED
        if not path.is_file():
            (shown,) = trained_policies(self._run, [name])
            settings = FilmSettings(
                seed=derive_seed(self._run.settings.seed, "judged"),
                episodes=STARTS,
                shown=tuple(range(STARTS)),
                size=_SIZE,
                seconds=_LEAST_SECONDS,
                strips=False,
                sheet=MOMENTS,
            )
            video = inside(self._run.folder, WORKERS_FOLDER, "judged.mp4")
            subject = replace(shown.subject, title="policy", reward=None)
            fingerprint = self._run.description.fingerprint
            await self._maker.film([subject], settings, fingerprint, video, sheet=path)
        return await asyncio.to_thread(path.read_bytes)


def next_pairs(
    attempts: Sequence[Attempt], feedback: Sequence[Given], seed: int
) -> tuple[Pair, ...]:
    """The pairs to compare next, in their drawn order; empty once there are enough answers.

    A pair with an attempt that was never compared comes first, then the one whose comparison tells
    most; pairs that are chosen together share as few attempts as can be. No pair is shown twice in
    the same order: the other order is another question, since a model may prefer a place.
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
