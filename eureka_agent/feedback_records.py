"""Feedback of a person, or of a model that judges, on what a search has trained, as records of its
journal."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, Field, FiniteFloat

from eureka_agent.records import Count, Record
from eureka_agent.text import escape_unprintable

LONGEST_WORDS = 4000
"""Most characters of a person's words in one field."""
MOST_CLIPS = 6
"""Clips that are shown side by side."""
MOST_SUB_GOALS = 5
LONGEST_SOURCE = 100_000
LATEST_SECOND = 1e6


def _plain(text: str) -> str:
    """Words without control characters. Raises ValueError for too many or unpaired surrogates."""
    plain = escape_unprintable(text, keep="\t\n").strip()
    return _within(plain, LONGEST_WORDS)


def _within(text: str, most: int) -> str:
    text.encode()  # a lone surrogate is in no file
    if len(text) > most:
        raise ValueError(f"it has {len(text):,} characters, expected at most {most:,}")
    return text


Words = Annotated[str, AfterValidator(_plain)]


class Clip(Record):
    """An episode that the person saw."""

    attempt: str
    seed: int
    """Seed of the episodes."""
    episode: Count
    """Number of the episode, which stands for its start state."""


Statistic = Literal["mean", "mean size", "largest size", "mean change"]
"""Over the steps of an episode: of a value, of its size |x|, of its change from step to step."""


class Measure(Record):
    """Figure by which a wish can be followed: a statistic of one variable over an episode."""

    variable: str = Field(max_length=200)
    entry: Count | None = None
    """Entry of a vector; None for all."""
    statistic: Statistic
    aim: Literal["lower", "higher"] | FiniteFloat


class Reading(Record):
    """Reading of a wish, as the person accepted it."""

    text: Words
    """The wish in the words of the task."""
    stays: tuple[Words, ...] = ()
    """Parts of the reward that stay."""
    goes: tuple[Words, ...] = ()
    changes: tuple[Words, ...] = ()
    author: str = ""
    """The model that read it, or `"offline"`."""
    unread: tuple[Words, ...] = ()
    """Words that were not understood."""
    measure: Measure | None = None


class Wish(Record):
    """Words of the person: what was seen, and what is wanted."""

    kind: Literal["wish"] = "wish"
    attempt: str = ""
    """The attempt that it is about; empty for all."""
    saw: Words = ""
    wants: Words = ""
    reading: Reading | None = None


class Choice(Record):
    """Best and worst of several clips (ICPL, Yu et al. 2024)."""

    kind: Literal["choice"] = "choice"
    shown: tuple[str, ...] = Field(min_length=2, max_length=MOST_CLIPS)
    """Attempts in the order of the screen."""
    best: str | None = None
    worst: str | None = None


Grade = Literal[2, 1, 0, -1, -2]
"""First much better, better, alike, second better, second much better."""
ANSWERS: dict[str, tuple[Grade | None, str]] = {
    "1": (2, "first much better"),
    "2": (1, "first better"),
    "3": (0, "alike"),
    "4": (-1, "second better"),
    "5": (-2, "second much better"),
    "0": (None, "cannot tell"),
}
"""Grades of a pair with their words, by the key that gives them."""


class Comparison(Record):
    """Two clips compared."""

    kind: Literal["comparison"] = "comparison"
    first: str
    second: str
    grade: Grade | None
    """None: it cannot be told."""


class Judgement(Record):
    """Comparisons by a model, of pictures: pairs that were chosen together."""

    kind: Literal["judgement"] = "judgement"
    sub_goals: tuple[Words, ...] | None = Field(None, max_length=MOST_SUB_GOALS)
    """Steps towards the task by which the model judges, in a run's first judgement; empty: it named
    none."""
    comparisons: tuple[Comparison, ...] = Field(min_length=1, max_length=100)


class Importance(Record):
    """Order of what matters, most important first (HERON, Bukharin et al. 2023)."""

    kind: Literal["importance"] = "importance"
    of: Literal["terms", "metrics"]
    attempt: str = ""
    """The attempt whose terms they are."""
    order: tuple[Words, ...] = Field(min_length=1, max_length=100)


class Mark(Record):
    """The second of a clip at which it went wrong."""

    kind: Literal["mark"] = "mark"
    clip: Clip
    second: Annotated[FiniteFloat, Field(ge=0, le=LATEST_SECOND)]
    note: Words = ""
    state: Words = ""
    """The state at that second, in words."""


class Edit(Record):
    """A reward that the person wrote or changed."""

    kind: Literal["edit"] = "edit"
    attempt: str = ""
    """The attempt that it changes; empty for a reward of one's own."""
    source: Annotated[str, AfterValidator(lambda text: _within(text, LONGEST_SOURCE))]
    why: Words = ""
    """Its author's reasoning."""


class Withdrawal(Record):
    """Earlier feedback counts no more."""

    kind: Literal["withdrawal"] = "withdrawal"
    of: Count
    """Number of its entry."""


class Judge(Record):
    """Choice of what ranks the attempts from here on."""

    kind: Literal["judge"] = "judge"
    by: Literal["fitness", "choices", "model"]
    """The fitness, a person's choices, or a model's comparisons."""


Next = Literal["another", "given", "finish", "leave"]
"""Another generation; the given rewards alone; the final trainings, then the end; the end."""


class Decision(Record):
    """Choice of what the search does next. It holds until the search has acted on it, and is no
    feedback on attempts."""

    kind: Literal["decision"] = "decision"
    then: Next


_OnAttempts: TypeAlias = Wish | Choice | Comparison | Judgement | Importance | Mark | Edit
Feedback: TypeAlias = Annotated[
    _OnAttempts | Withdrawal | Judge | Decision, Field(discriminator="kind")
]


class Given(Record):
    """Feedback with its place in the journal."""

    number: Count
    time: str
    who: str
    feedback: Feedback


# ── in words ──────────────────────────────────────────────────────────────────────────────────────

_COMPARED = {
    2: "is much better than",
    1: "is better than",
    0: "is as good as",
    -1: "is worse than",
    -2: "is much worse than",
    None: "cannot be told from",
}
_RANKS = {
    "fitness": "the fitness",
    "choices": "choices",
    "model": "a model's comparisons of pictures",
}
_NEXT = {
    "another": "asks for another generation",
    "given": "has the given rewards trained",
    "finish": "asks for the final trainings",
    "leave": "ends the refinement",
}


def feedback_line(feedback: Feedback) -> str:
    """The feedback as the end of a sentence about the person."""
    match feedback:
        case Wish(attempt=attempt, saw=saw, wants=wants):
            of = f" of {attempt}" if attempt else ""
            seen = f"saw{of}: {saw}" if saw else ""
            return "; ".join(filter(None, (seen, wants and f"wants{'' if saw else of}: {wants}")))
        case Choice(shown=shown, best=best, worst=worst):
            ends = f"{best or 'none'} is best, {worst or 'none'} is worst"
            return f"chooses among {', '.join(shown)}: {ends}"
        case Comparison():
            return f"says: {_compared(feedback)}"
        case Judgement(comparisons=comparisons, sub_goals=sub_goals):
            goals = f"sets the sub-goals {', '.join(map(repr, sub_goals))}; " if sub_goals else ""
            return f"{goals}compares pictures: {'; '.join(map(_compared, comparisons))}"
        case Importance(attempt=attempt):
            of = f" of {attempt}" if attempt else ""
            return f"orders the {feedback.of}{of}: {' > '.join(feedback.order)}"
        case Mark(clip=clip, second=second, note=note):
            return f"marks {clip.attempt} at {second:.2f} s{f': {note}' if note else ''}"
        case Edit(attempt=attempt, source=source):
            made = f" made from {attempt}" if attempt else ""
            return f"gives a reward{made} of {len(source.splitlines())} lines"
        case Withdrawal(of=number):
            return f"withdraws entry {number}"
        case Judge(by=by):
            return f"has {_RANKS[by]} rank the attempts"
    return _NEXT[feedback.then]


def _compared(comparison: Comparison) -> str:
    return f"{comparison.first} {_COMPARED[comparison.grade]} {comparison.second}"
