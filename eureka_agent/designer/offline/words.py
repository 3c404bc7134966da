"""Words of a sentence, a doc line or an identifier, in a form in which 'running', 'runs' and 'run'
are one word."""

from __future__ import annotations

import re

_IRREGULAR = {"ran": "run", "stood": "stand", "held": "hold", "feet": "foot"}
_IRREGULAR |= dict.fromkeys(("center", "centered", "centred"), "centre")
_STOP_WORDS = (
    "a about after again all along an and any around as at be by can do each for from get had has"
    " have if in into is it its keep let like make may me more most must near of off on one onto or"
    " order other out over per possible robot should so some than that the their them then there"
    " this to toward towards under until using very want we when where which while will with"
    " without would you your"
)
STOP_WORDS = frozenset(_STOP_WORDS.split())
"""Words that say nothing of which variable is meant."""


def stem(word: str) -> str:
    """A crude stem, the same for a verb's forms and a noun's numbers; good for comparing, not for
    reading."""
    word = _IRREGULAR.get(word, word)
    if word.endswith("ies") and len(word) > 4:
        word = word[:-3] + "y"
    elif word.endswith("es") and len(word) > 4:
        word = word[:-2]
    elif word.endswith("s") and not word.endswith("ss") and len(word) > 3:
        word = word[:-1]
    for suffix in ("ing", "ed"):
        rest = word.removesuffix(suffix)
        if 2 < len(rest) < len(word) and re.search("[aeiouy]", rest) and not word.endswith("eed"):
            word = rest
    if word.endswith("e") and len(word) > 3:
        word = word[:-1]
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] else word


def tokens(text: str) -> list[str]:
    """Lower-case words of a text, in order; an identifier's parts count as words. Numbers and marks
    are left out."""
    return re.findall(r"[a-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", text).lower())


def stems(text: str) -> frozenset[str]:
    """Stems of the words that say something."""
    return frozenset(stem(word) for word in tokens(text) if word not in STOP_WORDS)


def stem_set(words: str) -> frozenset[str]:
    """Stems of a space-separated list of words, all kept."""
    return frozenset(map(stem, words.split()))
