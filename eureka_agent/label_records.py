"""Records of labels: captions of states, what a model said of them, and what a training made of it
(ONI, Zheng et al., arXiv:2410.23022)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, FiniteFloat

from eureka_agent.base_record import Record
from eureka_agent.text import plain_line

LabelMethod = Literal["retrieval", "classification", "ranking"]
"""Reward made of labels: the caption's own label; a logistic regression over observations on the
labels; or one on comparisons of captions (Bradley-Terry)."""
LONGEST_CAPTION = 200
MOST_WANTED = 40
"""Captions of one message, and of one training, for which labels are wanted."""
MOST_LABELS = 10_000
MOST_CODE = (1 << 24) - 1
"""Largest code of a caption: policy files hold float32 numbers, which are exact up to there."""

CaptionCode = Annotated[int, Field(ge=0, le=MOST_CODE)]
CaptionText = Annotated[str, AfterValidator(lambda text: plain_line(text, LONGEST_CAPTION))]
LabelCount = Annotated[int, Field(ge=0, lt=1 << 63)]
Share = Annotated[FiniteFloat, Field(ge=0, le=1)]


class CaptionMet(Record):
    """A caption without a label that a training met."""

    code: CaptionCode
    text: CaptionText
    count: LabelCount
    """Steps of the training that reached it."""


class CaptionLabel(Record):
    """A model's answer on a caption, or on a pair of them."""

    code: CaptionCode
    other: CaptionCode | None = None
    """Second caption of a comparison; None for a label of one."""
    value: Share | None
    """1: it helps the task, or does so more than `other`; 0: it does not, or less. None: no answer
    is to be had, and nobody asks again."""


class LearnedLabels(Record):
    """Knowledge of a labelled reward at the end of its training."""

    method: LabelMethod
    captions: LabelCount
    """Captions that the training met."""
    labelled: LabelCount
    """Number of them with a label, or in a comparison."""
    best: dict[CaptionText, Share] = Field(max_length=MOST_WANTED)
    """Labelled captions of the highest values, 0 to 1."""
    worst: dict[CaptionText, Share] = Field(max_length=MOST_WANTED)
    """Captions of the lowest values."""
