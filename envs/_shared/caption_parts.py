"""Captions made of parts: each part says one of a few things, a code stands for one choice each."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from eureka_agent.label_records import MOST_CODE


class CaptionParts:
    """Captions whose code is a number with a digit for each part."""

    def __init__(self, *parts: Sequence[str]) -> None:
        """`parts`: the words of each part by its digit; empty words are left out. Raises ValueError
        for more captions than there are codes."""
        self.parts = tuple(tuple(each) for each in parts)
        self.count = math.prod(map(len, self.parts))
        if self.count > MOST_CODE + 1:
            raise ValueError(f"{self.count} captions, expected {MOST_CODE + 1} at most")

    def codes(self, *digits: Tensor) -> Tensor:
        """Code of each row, int64. `digits`: one of each part, all of shape (batch,)."""
        code = torch.zeros_like(digits[0], dtype=torch.int64)
        for words, digit in zip(self.parts, digits, strict=True):
            code = code * len(words) + digit.long().clamp(0, len(words) - 1)
        return code

    def text(self, code: int) -> str:
        """Words of a code, with semicolons between the parts."""
        found = []
        for words in reversed(self.parts):
            code, digit = divmod(code, len(words))
            found.append(words[digit])
        return "; ".join(each for each in reversed(found) if each)


def first_true(*conditions: Tensor) -> Tensor:
    """Number of the first condition that holds, counted from 1, and 0 where none does. Shapes:
    (batch,), bool or flags of 0 and 1; int64."""
    found = torch.zeros_like(conditions[0], dtype=torch.int64)
    for number, condition in reversed([*enumerate(conditions, 1)]):
        found = torch.where(condition > 0.5, number, found)
    return found
