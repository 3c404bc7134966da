"""Clauses that may be read, apart from those with a word that turns round what they name.

It is no grammar. A clause with such a word is read only where the vocabulary knows its meaning:
`without falling`, `less effort`. Any other is left out, with those that may hang on it.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from typing import NamedTuple

from eureka_agent.designer.offline.vocabulary import (
    NEGATORS,
    WORDS,
    Goal,
    Intent,
    direction,
    read_intents,
    stem,
    stems,
    tokens,
)

_ROWS = """
not: aint bad badly barely below cannot cant disallow donot except exclude few fewer forbid \
 forbidden hardly instead less low minimal minimum neither no nobody none nor nothing nowhere only \
 quit rarely refrain restrain seldom small slower tiny too unless unlike unwanted wrong \
 arent couldnt didnt doesnt hadnt hasnt havent isnt mustnt neednt shouldnt wasnt werent wont \
 wouldnt kein keine keinen langsamer nicht nie ohne weniger jamais moins pas sans menos nunca
stop doing: abandon abstain ban cease conserve curb cut damp dampen deny diminish discourage \
 dislike drop economise economize forget halve hate hinder ignore leave lessen limit lower omit \
 penalise penalize penalty prohibit punish restrict save skip suppress weaken
lower: decrease minimise minimize reduce
raise: increase maximise maximize enlarge
stop: stop halt freeze
slow: slow slower slowly
direction: forward backward leftward rightward upward downward up down left right back
"""
_LISTS = {
    name: words.split() for name, words in (row.split(": ") for row in _ROWS.strip().splitlines())
}
_STEMS = {name: frozenset(map(stem, words)) for name, words in _LISTS.items()}
_NOT = NEGATORS.union(_LISTS["not"])
_UNWANTED = {
    Goal.SURVIVE: stems("fall crash collide collision"),
    Goal.UPRIGHT: stems("topple tilt lean tip"),
    Goal.SMOOTH: stems("jerk jerky jitter shake"),
    Goal.EFFORT: stems("energy effort power torque fuel"),
}
"""Stems that ask for a goal only where they are turned round."""
_BAD = frozenset().union(*_UNWANTED.values())
_IMPLIED = {Goal.UPRIGHT: WORDS[Goal.SWING_UP] | {stem("fall")}, Goal.MOVE: _STEMS["slow"]}
"""Stems that speak of a goal without its name."""
_GOAL_STEMS = _BAD.union(*(WORDS[goal] for goal in Goal), _STEMS["direction"], _STEMS["slow"])
_OWN_VERB = frozenset(["bring", "have", "hold", "keep", "let", "make", "stay"])
_PART_END = re.compile(r"[;.!](?!\d)|\b(?:but|while|whilst)\b", re.IGNORECASE)
_CLAUSE_END = re.compile(
    r"[,:?](?!\d)|\b(?:and|then|(?=without\b)|(?=avoid))\b|[\n—–]", re.IGNORECASE
)
_APOSTROPHES = re.compile("(?<=[A-Za-z])['’‘ʼ`´′](?=[A-Za-z])")


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

    def refused_words(self) -> frozenset[str]:
        """Stems of the refused clauses' words."""
        return stems(" ".join(self.refused))


@functools.lru_cache(maxsize=256)  # a sentence is read for every draft
def understood(sentence: str, change: bool = False) -> Understood:
    """The clauses that may be read, and those that a word turns in a way that is not known.

    What `and` or a comma joins to a turned clause may be turned with it: it is left out too.
    `change`: the sentence asks for a change, so that `slowly forward` is less of it, not more.
    """
    kept: list[str] = []
    refused: list[str] = []
    for part in _PART_END.split(sentence):
        clauses = [each.strip() for each in _CLAUSE_END.split(part) if each.strip()]
        begun = False
        for place, clause in enumerate(clauses):
            plain = _words(clause)
            turning = next((at for at in range(len(plain)) if _turns(plain, at, change)), None)
            behind = turning is not None and not _goal_words(plain[turning + 1 :])
            alone = turning is not None and (turning > 0 or len(plain) == 1)
            if (
                behind and alone and not begun and _OWN_VERB.isdisjoint(plain)
            ):  # 'speed and height lower'
                refused += [each for each in clauses[:place] if each in kept]
                kept = [each for each in kept if each not in clauses[:place]]
            begun = begun or turning is not None
            (kept if _is_read(plain, turning, begun) else refused).append(clause)
    return Understood("; ".join(kept), tuple(refused)) if refused else Understood(sentence)


def _words(clause: str) -> list[str]:
    """Lower-case words with their apostrophes left out; an identifier is one word."""
    return re.findall(r"\w+", _APOSTROPHES.sub("", unicodedata.normalize("NFKC", clause)).lower())


def _goal_words(plain: list[str]) -> list[str]:
    """Stems that name a goal or a direction, an identifier's parts too."""
    return [its for word in plain for its in map(stem, tokens(word)) if its in _GOAL_STEMS]


def _turns(plain: list[str], at: int, change: bool) -> bool:
    """True where the word at this place may turn round what the clause names."""
    word, before, after = plain[at], plain[:at][-1:], plain[at + 1 :]
    its, first, rest = stem(word), (after or [""])[0], _goal_words(after)
    if its in _STEMS["stop"]:  # 'stop jumping', but 'stop at the goal' and 'stop sign'
        stands = WORDS[Goal.STILL] | WORDS[Goal.REACH] | WORDS[Goal.CENTRE]
        return first.endswith("ing") or any(each not in stands for each in rest)
    if its in _STEMS["raise"]:
        spoken = set(rest)
        return bool(spoken & (WORDS[Goal.REACH] - WORDS["error"])) and "distanc" in spoken
    match word:
        case "lower":  # the lower leg is a part
            return not (before and stem(first) in WORDS["part"])
        case "least":
            return before != ["at"]
        case "most":
            return before == ["at"]
        case "little":
            return before != ["a"]
        case "below":
            return before != ["from"]
        case "under":
            return first[:1].isdigit()
        case "off":
            return before in (["keep"], ["stay"])
        case "away":
            return True
        case "from":
            return first.endswith("ing") or bool(set(rest[:1]) & WORDS[Goal.REACH])
        case "non":
            return bool(_goal_words([first]))
        case "rather":
            return first == "than"
        case "slow" | "slowly":  # with a direction that much is known
            return change or (direction(plain) or (2, 1))[0] == 2
        case "down":
            return not {"speed", "velocity"}.isdisjoint(map(stem, plain))
    return word in _NOT or its in _STEMS["stop doing"] | _STEMS["lower"]


def _is_read(plain: list[str], turning: int | None, begun: bool) -> bool:
    """True where every word that names a goal asks for it. `begun`: a word of the clause or of one
    before it may turn them round."""
    named = set(_goal_words(plain))
    if turning is None:
        if begun:
            return named <= _BAD
        present = [goal for goal, bad in _UNWANTED.items() if named & bad]
        return all(named & (WORDS[goal] - _UNWANTED[goal]) for goal in present)
    after = set(_goal_words(plain[turning + 1 :]))
    turned, its = after or named, stem(plain[turning])
    if its in _STEMS["lower"]:
        low = (WORDS[Goal.RAISE] | WORDS[Goal.CHANGE]) - WORDS["lower"]
        near = WORDS[Goal.REACH] | WORDS["error"] if turned & WORDS["error"] else frozenset()
        near = near if turned & WORDS[Goal.REACH] else frozenset()
        return turned - {its} <= low | near | _BAD
    if plain[turning] in NEGATORS and plain[turning + 1 :] in (["move"], ["moving"]):
        return True
    kept_bad = set() if not after else set(_goal_words(plain[:turning])) & _BAD
    return bool(turned) and turned <= _BAD and not kept_bad
