"""Clauses that may be read, apart from those with a word that turns round what they name.

It is no grammar. A clause that names a goal is read only where every word in it is known: another
may be `halve` or `refuse`. One with a known word that turns is read only where the vocabulary has
its meaning: `without falling`, `less effort`. Any other is left out, with what may hang on it.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from pathlib import Path
from typing import NamedTuple

from eureka_agent.designer.offline.vocabulary import (
    NEGATORS,
    QUANTITY,
    Goal,
    Intent,
    direction,
    read_intents,
)
from eureka_agent.designer.offline.words import HEADINGS, KNOWN, LISTS, WORDS, stem, stems, tokens
from eureka_agent.records import TaskDescription

_NOT = NEGATORS | LISTS["turns"]
_UNWANTED = {
    Goal.SURVIVE: stems("fall crash collide collision"),
    Goal.UPRIGHT: stems("topple tilt lean tip"),
    Goal.SMOOTH: stems("jerk jerky jitter shake"),
    Goal.EFFORT: stems("energy effort power torque fuel"),
}
"""Stems that ask for a goal only where they are turned round."""
_BAD = frozenset().union(*_UNWANTED.values())
_IMPLIED = {
    Goal.UPRIGHT: WORDS[Goal.SWING_UP] | {stem("fall")},
    Goal.MOVE: WORDS["slow"] | WORDS["forward"] | WORDS["backward"],
}
"""Stems that speak of a goal without its name."""
_DIRECTIONS = (WORDS[name] for axis in HEADINGS for name in axis)
_GOAL_STEMS = _BAD.union(*(WORDS[goal] for goal in Goal), *_DIRECTIONS, WORDS["slow"])
_LEADING = frozenset(["also", "do", "just", "please"])
"""Words before a verb that orders or forbids."""
_ASKING = frozenset(["can", "could", "please", "will", "would"])
"""Words of a question that is a wish."""
_OWN_VERB = frozenset(["bring", "have", "hold", "keep", "let", "make", "stay"])
_WISHING = frozenset(["ensure", "let", "love", "make", "must", "should", "sure", "until", "want"])
"""Words behind which a statement is a wish: `make sure that it is upright`."""
_WHOLE_BUT = r"(?<!nothing )(?<!anything )(?<!everything )(?<!all )but"
_PART_END = re.compile(rf"[;.](?!\d)|!(?!\w)|\b(?:{_WHOLE_BUT}|while|whilst)\b", re.IGNORECASE)
_CLAUSE_END = re.compile(
    r"[,:](?!\d|-?\()|(?<=\?)|\b(?:and|then|(?=without\b)|(?=w/o\b)|(?=avoid))\b|[\n—–]",
    re.IGNORECASE,
)
_APOSTROPHES = re.compile("(?<=[A-Za-z])['’‘ʼ`´′](?=[A-Za-z])")
_NEVER = r"\b(?:do not|don.?t|never|not|without)"
_PHRASES = {
    r"\bw/(?:o|out)\b": "without",
    r"\bw/(?!\w)": "with",
    r"\b(?:nothing|nowhere) but\b|\bnot (?:only|just|merely)\b": "",
    rf"{_NEVER} (?:hesitat\w+|forget\w*|fail|be (?:afraid|shy)) (?:to|of)\b": "",
    rf"{_NEVER} stop(?:ping)?(?= \w+ing\b)": "",
    r"\b(?:no|not) (?:less|slower|lower|fewer) than\b": "at least",
    r"\b(?:no|not) (?:more|faster|quicker|higher) than\b": "at most",
    r"\bspeed (?:it |things )?up\b(?! to)": "go faster",
    r"\b(?:(?:its |it.s |is |it is )?too slow)\b": "faster",
    r"\b(?:(?:did|does|is|was)(?:n.?t| not)|not) (?:\w+ )??(\w+) enough\b": r"more \1",
    r"\bnothing (?:else|more)\b": "",
    r"\btime limit\b": "time",
    r"\bin the (?:least|shortest) (?:possible )?time\b": "soon",
    r"\b(?:increase|raise) the (?:importance|reward|weight) (?:for|of|on)\b": "more",
    r"\bhigh(?:er|est)?(?= (?:\w+ )?(?:pace|speed|velocity)\b)": "great",
    r"\b(pace|speed|velocity) (?:\w+ )*be high(?:er)?\b": r"more \1",
    r"\bfull throttle\b": "full speed",
}
"""Words that turn one another, or are short for others, and what they say."""
_NUMBER = re.compile(
    rf"{QUANTITY.pattern}|(?<![\w.\-/])[1-9]\d*(?:\.\d+)?(?:x|\s?%(?= (?:more|\w+er)\b))?(?![\w%])",
    re.IGNORECASE,
)
_SIGN = re.compile(
    r"""(?<!\w)[-!](?![xyz]\b)(?=\w)|--|/(?!\w)|:-?\(|[^\w\s.,;:!?'’‘ʼ`´′"“”()\[\]\-–—/&+*#…]"""
)
"""Signs that may turn a word round: `-height`, `!jump`, `speed = 0`."""
_TURNING = re.compile(
    r"\b(?:away|rid|relax|far from|other than|over the top|an error|a rest|up to \d+|under \d+"
    r"|as slow(?:ly)? as|as (?:it )?(?:is|was)$|(?:hold|holding|keep) back|(?:must|should) go$"
    r"|(?:an|must|should) end"
    r"|out of the (?:cent\w+|goal|middle|target)|(?:get|keep|leave|take) (?:\w+ )*out"
    r"|(?:let|give|giving) up|counter(?! clockwise)|(?<=\w )ok(?:ay)?$"
    r"|(?<!at )least|at most|(?<!\ba )little|(?<!from )below|(?<!take )off"
    r"|prefer(?! to)(?= .*(?:over|than|to) )|max(?:imum|imal)?(?= .*\d)|\d+ (?:\w+ )*max)\b"
)
"""Words that turn in this company alone."""
_VERBS = {"do", "go", "keep", "make", "move", "tend", "start"}.union(
    *(LISTS[goal] for goal in (Goal.MOVE, Goal.SPIN, Goal.RAISE))
)
_ARTICLE = re.compile(r"\b(?:an?|its|the) ([a-z]+)")
_CALLED = re.compile(
    r"\b(?:get|have|help|let|make|teach|train|push|lift|carry|slide) (?:my|our|the|this)"
    r" (\w+)(?! of\b)"
)
"""A name that the person gives to a thing: `make the crate move`."""
_FINITE = r"(?!(?:as|needs)\b|\w*(?:wards|ss|eed)\b)(?:\w+(?:s|ed)|came|fell|got|kept|ran|went)\b"
_STATEMENT = re.compile(
    rf"\b(?:it|he|she|robot|agent) (?:(?:also|always|just|now|often|only|still) )?{_FINITE}"
    r"|\b(?:its|still) \w+ing\b|\b\w+ing again\b|\bi see\b"
    rf"|^(?:{'|'.join(sorted(_VERBS))})e?s\b(?! (?:could|must|should))"
)
"""Words that tell what is so already: `it jumps`, `it's jumping`, `keeps jumping`."""


class Understood(NamedTuple):
    """A sentence as far as it may be read."""

    text: str
    """The clauses that may be read."""
    refused: tuple[str, ...] = ()
    """The others, as they were typed."""

    def spoken_of(self) -> tuple[Intent, ...]:
        """The goals that the refused clauses name, for or against them."""
        clauses = [[w for w in _words(each) if w not in NEGATORS] for each in self.refused]
        read = read_intents("; ".join(map(" ".join, clauses)))
        named = {its for clause in clauses for its in _goal_words(clause)}
        more = [goal for goal in Goal if named & (WORDS[goal] | _IMPLIED.get(goal, set()))]
        about = self.refused_words()
        return (*read, *(Intent(goal, objects=about) for goal in more))

    def named(self, things: frozenset[str]) -> tuple[str, ...]:
        """The refused clauses if one of them names a goal or one of the `things`; stems."""
        plain = [_words(each) for each in self.refused]
        names = any(map(_goal_words, plain)) or bool(self.refused_words() & things)
        return self.refused if names else ()

    def refused_words(self) -> frozenset[str]:
        """Stems of the refused clauses' words."""
        return stems(" ".join(self.refused))


def own_words(description: TaskDescription) -> frozenset[str]:
    """Stems of the names that an environment has for its things: of its variables, and behind an
    article in its docs and its task's sentence."""
    names = " ".join([Path(description.environment).name, *(e.name for e in description.variables)])
    docs = [description.sentence, description.doc, *(each.doc for each in description.variables)]
    return _named_in(names, " ".join(docs))


@functools.lru_cache(maxsize=64)
def _named_in(names: str, docs: str) -> frozenset[str]:
    return stems(" ".join([names, *_ARTICLE.findall(docs.lower())]))


def understood_in(
    description: TaskDescription, sentence: str, *, change: bool = False
) -> Understood:
    """`understood`, where the environment's own words are known."""
    return understood(sentence, own_words(description), change)


@functools.lru_cache(maxsize=256)  # a sentence is read for every draft
def understood(
    sentence: str, own: frozenset[str] = frozenset(), change: bool = False
) -> Understood:
    """The clauses that may be read, and those that a word turns in a way that is not known.

    A word that is not known may turn all that stands with it between full stops. What `and` or a
    comma joins to a turned clause may be turned with it: it is left out too. `own`: stems that the
    environment makes known. `change`: the sentence asks for a change, so that `slowly forward` is
    less of it, not more, and `it jumps` is no wish.
    """
    kept: list[str] = []
    refused: list[str] = []
    for part in _PART_END.split(sentence):
        typed = [each.strip() for each in _CLAUSE_END.split(part) if each.strip()]
        clauses = [_in_plain_words(each) for each in typed]
        begun, named = False, any(_goal_words(_words(each)) for each in clauses)
        for place, clause in enumerate(clauses):
            plain = _words(clause)
            # 'it wobbles, keep it upright'
            aside = not (place or _goal_words(plain)) and _STATEMENT.fullmatch(" ".join(plain))
            strange = _strange(clause, own, change) if named and not aside else []
            if clause.endswith("?") and clause != clauses[-1] and _ASKING.isdisjoint(plain):
                strange.append(len(plain) - 1)  # 'jumping? no way'
            turning = strange + _turning(plain, change)
            behind = turning and not _goal_words(plain[min(turning) + 1 :])
            if behind and not begun and not _looks_ahead(plain, strange):  # 'speed, height lower'
                refused += [each for each in typed[:place] if each not in refused]
                kept = [each for each in kept if each not in clauses[:place]]
            begun = begun or bool(turning)
            if not strange and _is_read(plain, turning, begun):
                kept.append(clause)
            else:
                refused.append(typed[place])
    text = "; ".join(kept) if refused else _in_plain_words(sentence)
    return Understood(text, tuple(refused))


def _in_plain_words(text: str) -> str:
    """The text with its idioms in words of the table."""
    for pattern, words in _PHRASES.items():
        text = re.sub(pattern, words, text, flags=re.IGNORECASE)
    return text


def _looks_ahead(plain: list[str], strange: list[int]) -> bool:
    """True for a clause that turns nothing before it: `keep it low`, `do not stumble`."""
    first = next((word for word in plain if word not in _LEADING), "")
    own = first in NEGATORS and bool(strange)
    return first == "without" or own or not _OWN_VERB.isdisjoint(plain)


def _strange(clause: str, own: frozenset[str], change: bool) -> list[int]:
    """Places of words that are not known, and the last one's where a sign or a statement of what is
    may turn what the clause names."""
    plain = _words(clause)
    named, spelt = set(_goal_words(plain)), " ".join(plain)
    if not named and plain[:1] == ["without"]:
        return []
    rest = _NUMBER.sub(" ", clause)
    unknown = {word for word in _words(rest) if not _is_known(word, own)}
    unknown -= set(_CALLED.findall(spelt))
    places = [at for at, word in enumerate(plain) if word in unknown]
    states = [at for at, word in enumerate(plain) if word in LISTS["state"]]
    states += [spelt.count(" ", 0, found.start()) for found in _STATEMENT.finditer(spelt)]
    stated = change and not named <= _BAD and any(_WISHING.isdisjoint(plain[:at]) for at in states)
    return places + [max(0, len(plain) - 1)] * (stated or _SIGN.search(rest) is not None)


def _is_known(word: str, own: frozenset[str]) -> bool:
    """True where the table or the environment has all parts of a word."""
    parts = [stem(each) for each in tokens(word)]
    return word.isascii() and bool(parts) and all(each in KNOWN or each in own for each in parts)


def _words(clause: str) -> list[str]:
    """Lower-case words with their apostrophes left out; an identifier is one word."""
    return re.findall(r"\w+", _APOSTROPHES.sub("", unicodedata.normalize("NFKC", clause)).lower())


def _goal_words(plain: list[str]) -> list[str]:
    """Stems that name a goal or a direction, an identifier's parts too, and the opposite's."""
    parts = [stem(each) for word in plain for each in tokens(word)]
    found = [its if its in _GOAL_STEMS else re.sub("^(un|non|anti|dis)", "", its) for its in parts]
    return [its for its in found if its in _GOAL_STEMS]


def _turning(plain: list[str], change: bool) -> list[int]:
    """Places of words that may turn round what the clause names."""
    spelt = " ".join(plain)
    found = [spelt.count(" ", 0, phrase.start()) for phrase in _TURNING.finditer(spelt)]
    found += [at for at in range(len(plain)) if _turns(plain, at, change)]
    return found + [0] * (change and plain == ["down"])


def _turns(plain: list[str], at: int, change: bool) -> bool:
    """True where the word at this place may turn round what the clause names."""
    word, before, after = plain[at], plain[:at][-1:], plain[at + 1 :]
    its, first = stem(word), (after or [""])[0]
    if its in WORDS["stop"]:  # 'stop jumping', but 'stop at the goal' and 'stop sign'
        stands = WORDS[Goal.STILL] | WORDS[Goal.REACH] | WORDS[Goal.CENTRE]
        return first.endswith("ing") or any(each not in stands for each in _goal_words(after))
    if word == "distance":  # to be kept, but where a word makes it small
        place = set(_goal_words(plain)) & (WORDS[Goal.REACH] - WORDS["error"])
        return bool(place) and WORDS["decrease"].isdisjoint(map(stem, plain))
    if its in WORDS["slow"]:  # with a direction that much is known
        return change or word == "slower" or (direction(plain) or (2, 1))[0] == 2
    if its == "lower":  # the lower leg is a part
        return not (before and stem(first) in WORDS["part"])
    match word:
        case "from":
            if after[1:2] == ["to"]:  # 'from hanging to upright'
                return False
            return first.endswith("ing") or bool(set(_goal_words(after)[:1]) & WORDS[Goal.REACH])
        case "non":
            return bool(_goal_words([first]))
        case "down" | "back":
            high = WORDS["velocity"] | (WORDS[Goal.UPRIGHT] if word == "down" else set())
            return not high.isdisjoint(map(stem, plain))
    return word in _NOT or its in WORDS["stop doing"] | WORDS["decrease"]


def _is_read(plain: list[str], turning: list[int], begun: bool) -> bool:
    """True where every word that names a goal asks for it. `turning`: places of the words that may
    turn them round. `begun`: such a word stands there or in a clause before."""
    named = set(_goal_words(plain))
    if not turning:
        if begun:
            return named <= _BAD
        present = [goal for goal, bad in _UNWANTED.items() if named & bad]
        return all(named & (WORDS[goal] - _UNWANTED[goal]) for goal in present)
    first = min(turning)
    if any(plain[at] not in ("too", "from") for at in turning if at != first):
        return False  # they may turn one another
    after = set(_goal_words(plain[first + 1 :]))
    turned, its = after or named, stem(plain[first])
    if its in WORDS["decrease"]:
        low = (WORDS[Goal.RAISE] | WORDS[Goal.CHANGE]) - WORDS["lower"]
        near = WORDS[Goal.REACH] | WORDS["error"] if turned & WORDS["error"] else frozenset()
        near = near if turned & WORDS[Goal.REACH] else frozenset()
        return turned - {its} <= low | near | _BAD
    if plain[first] in NEGATORS and plain[first + 1 :] in (["move"], ["moving"]):
        return True
    kept_bad = set() if not after else set(_goal_words(plain[:first])) & _BAD
    return bool(turned) and turned <= _BAD and not kept_bad
