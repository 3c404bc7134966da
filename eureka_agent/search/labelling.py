"""Labels of captions from a model, asked for while trainings go on, which never wait for them."""

from __future__ import annotations

import asyncio
import itertools
import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from eureka_agent.archive.run_folder import Run
from eureka_agent.errors import RunFolderError, SettingsError
from eureka_agent.journal.entries import CaptionsAsked, CaptionsLabelled, Notice, Observer
from eureka_agent.label_records import CaptionLabel, CaptionMet, LabelMethod
from eureka_agent.llm.budget import BudgetSpentError
from eureka_agent.llm.gateway import ConfiguredModel
from eureka_agent.llm.interface import (
    ChatMessage,
    FinishReason,
    LanguageModelError,
    MissingReplyError,
    Role,
)
from eureka_agent.llm.prompts import render, system_message
from eureka_agent.llm.spoken import ending_of, spoken, why_no_answer
from eureka_agent.records import Message, TaskDescription
from eureka_agent.settings import SearchSettings
from eureka_agent.text import one_line, printable

OF_A_REQUEST = 20
"""Captions of one request."""
AT_ONCE = 2
"""Requests in flight."""
LONGEST_WAIT_S = 20.0
"""Time after which a request is made that is not full."""
MOST_ASKED = 3
"""Requests in which one caption may be."""
MOST_FAILED = 3
"""Requests in a row without a reply, after which no further one is made."""
_MOST_KNOWN = 5000
"""Captions that are noted: a worker names them."""
_LONGEST_REPLY = 20_000
_ANSWERS = {"0": 0.0, "1": 1.0, "no": 0.0, "yes": 1.0}
_PREFERENCES = {"1": 1.0, "2": 0.0, "equal": 0.5, "first": 1.0, "second": 0.0, "both": 0.5}
_LINE = re.compile(
    r"(?:^|[,;])[\s>#|*-]*(?:caption|pair)?\s*(\d{1,3})[*`\"']*\s*[.):\]=|→-]+>?\s*[*`\"']*"
    r"([a-z]+|\d+)(?!\.?\w)",
    re.IGNORECASE | re.MULTILINE,
)
CAPTIONED = ("craft", "doorkey")
"""Built-in environments that have captions of their states."""


def parse_answers(text: str, count: int, *, pairs: bool = False) -> dict[int, float]:
    """Answers of a reply by the place of what was asked, from 0; without places that were not
    asked, or that have two different answers. `pairs`: answers to comparisons."""
    words, found = _PREFERENCES if pairs else _ANSWERS, dict[int, set[float]]()
    for number, answer in _LINE.findall(text[:_LONGEST_REPLY]):
        if 1 <= int(number) <= count and answer.casefold() in words:
            found.setdefault(int(number) - 1, set()).add(words[answer.casefold()])
    return {place: min(each) for place, each in found.items() if len(each) == 1}


@dataclass
class _Wanted:
    """A caption that has no label."""

    text: str
    count: int
    since: float
    """Time by the clock at which it was first wanted."""


class Labelling:
    """Asks a run's model for the labels that its trainings want. What is asked is recorded before
    it is asked, and each answer before it is used, so that a resumed run pays for none twice."""

    def __init__(
        self,
        model: ConfiguredModel,
        run: Run,
        observer: Observer,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._model, self._run, self._observer, self._clock = model, run, observer, clock
        self._system = system_message("label.md", run.description, run.sentence, run.settings)
        self._asked: Counter[int] = Counter()
        self._texts: dict[int, str] = {}
        self._labels: dict[tuple[int, int | None], CaptionLabel] = {}
        self._answered: set[int] = set()
        self._wanted: dict[int, _Wanted] = {}
        self._tasks: dict[asyncio.Task[None], CaptionsAsked] = {}
        self._failed, self._closed = 0, False
        self._give: Callable[[tuple[CaptionLabel, ...]], Awaitable[None]] | None = None
        state = run.archive.state
        for asked in state.captions_asked.values():
            self._note(asked)
        for answered in state.captions_labelled.values():
            self._take(answered)

    @property
    def method(self) -> LabelMethod:
        return self._run.settings.labels

    @property
    def known(self) -> tuple[CaptionLabel, ...]:
        return tuple(self._labels.values())

    def begin(self, give: Callable[[tuple[CaptionLabel, ...]], Awaitable[None]]) -> None:
        """Ask again what an earlier process has not heard. `give`: sends labels to trainings."""
        self._give = give
        state = self._run.archive.state
        for number, asked in state.captions_asked.items():
            if number not in state.captions_labelled:
                self._start(asked)

    async def close(self) -> None:
        """End without the replies in flight, which the gateway stores."""
        self._closed = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def want(self, captions: Sequence[CaptionMet]) -> None:
        now = self._clock()
        for each in captions:
            if self._is_open(each.code) and len(self._wanted) < _MOST_KNOWN:
                known = self._wanted.setdefault(each.code, _Wanted(each.text, each.count, now))
                known.count = max(known.count, each.count)
        self._ask()

    def _is_open(self, code: int) -> bool:
        """True for a caption that may be asked for."""
        under_way = (met.code for asked in self._tasks.values() for met in asked.captions)
        return code not in self._answered and code not in under_way

    def _ask(self) -> None:
        """Make requests while there is room for them."""
        now = self._clock()
        while not self._closed and len(self._tasks) < AT_ONCE and self._give is not None:
            number = len(self._run.archive.state.captions_asked)
            chosen = sorted(self._wanted.items(), key=lambda each: (-each[1].count, each[0]))
            chosen = chosen[:OF_A_REQUEST]
            full = len(chosen) == OF_A_REQUEST
            waited = max((now - each.since for _, each in chosen), default=0.0)
            if number >= self._run.settings.label_requests:
                self._end(f"{number} requests for labels were made, as many as --label-requests")
                return
            if not full and waited < LONGEST_WAIT_S:
                return
            met = [CaptionMet(code=code, text=of.text, count=of.count) for code, of in chosen]
            pairs = self._pairs(met)
            if self.method == "ranking" and not pairs:  # a first caption has nothing beside it
                return
            for code, _ in chosen:
                del self._wanted[code]
            asked = CaptionsAsked(number=number, captions=tuple(met), pairs=pairs)
            self._observer(asked)
            self._note(asked)
            self._start(asked)

    def _pairs(self, captions: Sequence[CaptionMet]) -> tuple[tuple[int, int], ...]:
        """Comparisons for a ranking: a chain from a caption that was compared before, whose
        neighbours are compared; none for labels."""
        if self.method != "ranking":
            return ()
        compared = [label.other for label in self._labels.values() if label.other is not None]
        chain = [*compared[-1:], *(each.code for each in captions)]
        return tuple(itertools.pairwise(chain))

    def _note(self, asked: CaptionsAsked) -> None:
        for each in asked.captions:
            self._asked[each.code] += 1
            self._texts[each.code] = each.text

    def _start(self, asked: CaptionsAsked) -> None:
        task = asyncio.create_task(self._answer(asked))
        self._tasks[task] = asked
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        del self._tasks[task]
        if task.cancelled():
            return
        if (error := task.exception()) is not None:
            self._end(f"{type(error).__name__}: {error}")
        self._ask()

    async def _answer(self, asked: CaptionsAsked) -> None:
        """Ask, record what came of it, and hand on the labels."""
        try:
            message = await self._model.ask(
                Role.LABELLER,
                self._system,
                ChatMessage("user", self._order(asked)),
                sample=asked.number,
            )
        except (BudgetSpentError, MissingReplyError) as error:
            self._end(error.message)
            return
        except LanguageModelError as error:
            answered = self._without(asked, error.message)
            self._failed += 1
        else:
            answered = self._labelled(asked, message)
            self._failed = 0
        try:
            self._observer(answered)
        except RunFolderError as error:  # the next decision of the search raises it, too
            self._end(error.message)
            return
        self._take(answered)
        if self._failed >= MOST_FAILED:
            self._end(answered.failure)
        if answered.labels and self._give is not None:
            await self._give(answered.labels)

    def _order(self, asked: CaptionsAsked) -> str:
        texts = self._texts
        pairs = [(texts[first], texts[second]) for first, second in asked.pairs]
        captions = [each.text for each in asked.captions]
        return render("label_order.md", pairs=pairs, captions=captions)

    def _labelled(self, asked: CaptionsAsked, message: Message) -> CaptionsLabelled:
        """Labels of a reply. A caption without one is asked for again, a bounded number of
        times."""
        subjects: list[tuple[int, int | None]] = [*asked.pairs]
        subjects = subjects or [(each.code, None) for each in asked.captions]
        text = spoken(printable(message.reply)).text
        found = parse_answers(text, len(subjects), pairs=bool(asked.pairs))
        failure = ""
        if len(found) < len(subjects):
            failure = f"{len(subjects) - len(found)} of {len(subjects)} have no clear answer"
            if not found and ending_of(message) is not FinishReason.STOP:
                failure = why_no_answer(message)[0]
        labels = [
            CaptionLabel(code=subjects[place][0], other=subjects[place][1], value=value)
            for place, value in sorted(found.items())
        ]
        return self._without(asked, failure, labels)

    def _without(
        self, asked: CaptionsAsked, failure: str, labels: Sequence[CaptionLabel] = ()
    ) -> CaptionsLabelled:
        """The entry, with an end for the captions that were asked for often enough."""
        known = {code for each in labels for code in (each.code, each.other)}
        ends = (
            CaptionLabel(code=each.code, value=None)
            for each in asked.captions
            if each.code not in known and self._asked[each.code] >= MOST_ASKED
        )
        return CaptionsLabelled(
            number=asked.number, labels=(*labels, *ends), failure=one_line(failure, 500)
        )

    def _take(self, answered: CaptionsLabelled) -> None:
        for each in answered.labels:
            self._labels[each.code, each.other] = each
            self._answered |= {each.code} if each.other is None else {each.code, each.other}

    def _end(self, why: str) -> None:
        """Ask for nothing more, and say so once."""
        if not self._closed:
            self._closed = True
            text = f"no further labels are asked for: {one_line(why, 300)}"
            self._observer(Notice(text=text, level="warning"))


def check_labels(settings: SearchSettings, description: TaskDescription) -> None:
    """Raise SettingsError where a model cannot label what trainings reach."""
    if settings.rewards == "labels" and not description.captions:
        raise SettingsError(
            f"--rewards labels has a model read captions of states, and the environment"
            f" {description.environment!r} has none",
            f"take {' or '.join(CAPTIONED)}, or write them:"
            " docs/your-own-environment.md#captions-of-states",
        )
