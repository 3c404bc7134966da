"""Words that the offline designer knows, by kind, and their stems."""

from __future__ import annotations

import functools
import re
from pathlib import Path

_IRREGULAR = {"going": "go", "goes": "go", "ran": "run", "stood": "stand", "held": "hold"}
_IRREGULAR |= {"kept": "keep", "feet": "foot"}
_IRREGULAR |= dict.fromkeys(("center", "centered", "centred"), "centre")


def stem(word: str) -> str:
    """A crude stem for comparisons, the same for a verb's forms and a noun's numbers."""
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
    """Lower-case words of a text in order, an identifier's parts too; no numbers, no marks."""
    return re.findall(r"[a-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", text).lower())


_ROWS = re.split(r"\n(?! )", Path(__file__).with_name("words.txt").read_text("utf-8").strip())
LISTS = {row.partition(":")[0]: frozenset(row.partition(":")[2].split()) for row in _ROWS}
"""The table: words of a kind as they are written."""
WORDS = {name: frozenset(map(stem, words)) for name, words in LISTS.items()}
"""Stems that name a goal, a direction, or a kind of variable."""
STOP_WORDS = LISTS["grammar"]
"""Words that say nothing of which variable is meant."""
HEADINGS = (("forward", "backward"), ("leftward", "rightward"), ("upward", "downward"))
"""Names of x, y and z, each forth and back."""


@functools.lru_cache(maxsize=2048)  # an environment's docs are read for every draft
def stems(text: str) -> frozenset[str]:
    """Stems of the words that say something."""
    return frozenset(stem(word) for word in tokens(text) if word not in STOP_WORDS)
