"""Labels of captions from a model, asked for while trainings go on, which never wait for them."""

from __future__ import annotations

import asyncio
import itertools
import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence

from eureka_agent.archive.run_folder import Run
from eureka_agent.errors import EurekaError, SettingsError
from eureka_agent.journal.entries import CaptionsAsked, CaptionsLabelled, Notice, Observer
from eureka_agent.label_records import CaptionLabel, CaptionMet, LabelMethod
from eureka_agent.llm.gateway import ConfiguredModel
from eureka_agent.llm.interface import ChatMessage, FinishReason, MissingReplyError, Role
from eureka_agent.llm.prompts import render
from eureka_agent.llm.spoken import ending_of, spoken, why_no_answer
from eureka_agent.records import Message, TaskDescription
from eureka_agent.settings import SearchSettings
from eureka_agent.text import one_line, printable
from eureka_agent.wording import plural

OF_A_REQUEST = 20
"""Captions of one request."""
AT_ONCE = 2
"""Requests in flight."""
FIRST_WAIT_S, LONGEST_WAIT_S = 1.5, 20.0
"""Time after which a request is made that is not full: for the first one, and the longest. Each
waits longer than the one before, since rare captions come one by one."""
MOST_ASKED = 3
"""Requests in which one caption may be."""
MOST_UNCLEAR = 8
"""Replies in a row without a clear answer after which none is asked for any more."""
CAPTIONED = ("craft", "doorkey")
"""Built-in environments that have captions of their states."""
_MOST_WANTED = 5000
"""Captions that are noted: a worker names them."""
_LONGEST_REPLY = 20_000
_ANSWERS = {"0": 0.0, "1": 1.0, "no": 0.0, "yes": 1.0}
_PREFERENCES = {"1": 1.0, "2": 0.0, "equal": 0.5, "first": 1.0, "second": 0.0, "both": 0.5}
_LINE = re.compile(
    r"(?:^|[,;])[\s>#|*-]*(?:caption|pair)?\s*(\d{1,3})[*`\"']*\s*[.):\]=|→-]+>?\s*[*`\"']*"
    r"([a-z]+|\d+)(?!\.?\w)",
    re.IGNORECASE | re.MULTILINE,
)
Giving = Callable[[tuple[CaptionLabel, ...]], Awaitable[None]]


def parse_answers(text: str, count: int, *, pairs: bool = False) -> dict[int, float]:
    """Answers of a reply by the place of what was asked, from 0; without places that were not
    asked, or that have two different answers. `pairs`: answers to comparisons."""
    words, found = _PREFERENCES if pairs else _ANSWERS, dict[int, set[float]]()
    for number, answer in _LINE.findall(text[:_LONGEST_REPLY]):
        if 1 <= int(number) <= count and answer.casefold() in words:
            found.setdefault(int(number) - 1, set()).add(words[answer.casefold()])
    return {place: min(each) for place, each in found.items() if len(each) == 1}


class Labelling:
    """Asks a run's model for the labels that its trainings want. A request is recorded before it is
    made, and its labels before they are used, so that a resumed run pays for none twice."""

    def __init__(
        self,
        model: ConfiguredModel,
        run: Run,
        observer: Observer,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._model, self._run, self._observer, self._clock = model, run, observer, clock
        task = {"description": run.description, "sentence": run.sentence}
        self._system = ChatMessage("system", render("label.md", **task))
        self._wanted: dict[int, tuple[CaptionMet, float]] = {}
        """Captions that are to be asked for, and the time at which each was first wanted."""
        self._tasks: dict[asyncio.Task[None], CaptionsAsked] = {}
        self._give: Giving | None = None
        self._open = False
        """True while requests are made."""
        self._unclear = 0
        """Replies without a clear answer since the last one with any."""
        self._missed = False
        """True after a request that a recording has no reply to."""

    @property
    def method(self) -> LabelMethod:
        return self._run.settings.labels

    @property
    def known(self) -> tuple[CaptionLabel, ...]:
        answered = self._run.archive.state.captions_labelled.values()
        return tuple(label for each in answered for label in each.labels)

    def begin(self, give: Giving) -> None:
        """Ask again what an earlier process has not heard. `give`: sends labels to trainings."""
        self._give, self._open, state = give, True, self._run.archive.state
        for number, asked in state.captions_asked.items():
            if number not in state.captions_labelled:
                self._start(asked)

    async def end(self) -> None:
        """Close where no training is left that could wait for labels, and say what is left out."""
        if self._tasks:
            requests = plural(len(self._tasks), "request")
            text = f"{requests} for labels came to no reply before the last training ended"
            self._observer(Notice(text=text))
        await self.close()

    async def close(self) -> None:
        """End without the replies in flight, which the gateway stores."""
        self._open = False
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def want(self, captions: Sequence[CaptionMet]) -> None:
        done = {code for each in self.known for code in (each.code, each.other)}
        done.update(met.code for asked in self._tasks.values() for met in asked.captions)
        for each in captions:
            known, since = self._wanted.get(each.code, (each, self._clock()))
            if each.code not in done and len(self._wanted) < _MOST_WANTED:
                self._wanted[each.code] = max(known, each, key=lambda met: met.count), since
        self._ask()

    def _ask(self) -> None:
        """Make requests while there is room for them."""
        while self._open and self._wanted and len(self._tasks) < AT_ONCE:
            number = len(self._run.archive.state.captions_asked)
            if number >= self._run.settings.label_requests:
                self._end(f"{number} requests were made, as many as --label-requests allows")
                return
            ranked = sorted(self._wanted.values(), key=lambda each: (-each[0].count, each[0].code))
            met = tuple(each for each, _ in ranked[:OF_A_REQUEST])
            waited = self._clock() - min(since for _, since in ranked)
            pairs = self._pairs(met)
            alone = self.method == "ranking" and not pairs
            patience = min(FIRST_WAIT_S * (number + 1), LONGEST_WAIT_S)
            if alone or (len(met) < OF_A_REQUEST and waited < patience):
                return
            for each in met:
                del self._wanted[each.code]
            asked = CaptionsAsked(number=number, captions=met, pairs=pairs)
            self._observer(asked)
            self._start(asked)

    def _pairs(self, captions: Sequence[CaptionMet]) -> tuple[tuple[int, int], ...]:
        """Comparisons for a ranking: of neighbours in a chain that begins with a caption that was
        compared before; none for labels."""
        if self.method != "ranking":
            return ()
        compared = [each.other for each in self.known if each.other is not None]
        chain = [*compared[-1:], *(each.code for each in captions)]
        return tuple(itertools.pairwise(chain))

    def _start(self, asked: CaptionsAsked) -> None:
        task = asyncio.create_task(self._answer(asked))
        self._tasks[task] = asked
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        del self._tasks[task]
        if not task.cancelled():
            task.result()
            self._ask()

    async def _answer(self, asked: CaptionsAsked) -> None:
        """Ask, record the labels, and hand them on. The gateway has tried again where that
        helps."""
        try:
            order = ChatMessage("user", self._order(asked))
            to = Role.LABELLER, self._system, order
            message = await self._model.ask(*to, sample=asked.number)
            answered = self._labelled(asked, message)
            self._observer(answered)
        except MissingReplyError:
            self._miss()
            return
        except EurekaError as error:  # a spent budget, a model that is out, a full disk
            self._end(error.message)
            return
        clear = any(each.value is not None for each in answered.labels)
        self._unclear = 0 if clear else self._unclear + 1
        if self._unclear >= MOST_UNCLEAR:
            replies = f"{self._unclear} replies in a row of {self._model.name}"
            self._end(f"{replies} have no clear answer; ask another --model")
        if self._give is not None and answered.labels:
            await self._give(answered.labels)

    def _order(self, asked: CaptionsAsked) -> str:
        requests = self._run.archive.state.captions_asked.values()
        texts = {met.code: met.text for each in requests for met in each.captions}
        pairs = [(texts[first], texts[second]) for first, second in asked.pairs]
        return render("label_order.md", pairs=pairs, captions=asked.captions)

    def _labelled(self, asked: CaptionsAsked, message: Message) -> CaptionsLabelled:
        """Labels of a reply, and an end for captions that were asked for often enough."""
        subjects: list[tuple[int, int | None]] = [*asked.pairs]
        subjects = subjects or [(each.code, None) for each in asked.captions]
        text = spoken(printable(message.reply)).text
        found = parse_answers(text, len(subjects), pairs=bool(asked.pairs))
        failure = ""
        if len(found) < len(subjects):
            failure = f"{len(subjects) - len(found)} of {len(subjects)} have no clear answer"
            if not found and ending_of(message) is not FinishReason.STOP:
                failure = one_line(why_no_answer(message)[0], 500)
        answers = ((*subjects[place], value) for place, value in sorted(found.items()))
        labels = [CaptionLabel(code=one, other=two, value=value) for one, two, value in answers]
        clear = {code for each in labels for code in (each.code, each.other)}
        requests = self._run.archive.state.captions_asked.values()
        times = Counter(met.code for each in requests for met in each.captions)
        labels += [
            CaptionLabel(code=each.code, value=None)
            for each in asked.captions
            if each.code not in clear and times[each.code] >= MOST_ASKED
        ]
        return CaptionsLabelled(number=asked.number, labels=tuple(labels), failure=failure)

    def _miss(self) -> None:
        """Say once that a recording has no reply to a request."""
        if not self._missed:
            self._missed = True
            text = "the recording has no reply to a request for labels: a replayed search has them"
            self._observer(Notice(text=f"{text} only where it asks for the same captions"))

    def _end(self, why: str) -> None:
        """Ask for nothing more, and say so once."""
        if self._open:
            self._open = False
            text = f"no further labels are asked for: {one_line(why, 300)}"
            self._observer(Notice(text=text, level="warning"))


def check_labels(settings: SearchSettings, description: TaskDescription) -> None:
    """Raise SettingsError where there is nothing that a model could label."""
    if settings.rewards == "labels" and not description.captions:
        raise SettingsError(
            f"--rewards labels has a model read captions of states, and the environment"
            f" {description.environment!r} has none",
            f"take {' or '.join(CAPTIONED)}, or write them:"
            " docs/your-own-environment.md#captions-of-states",
        )
