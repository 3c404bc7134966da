"""Specifications of rewards: what is designed, judged, stored, sent to workers and trained.

Each kind is a record of its own with a `kind`, and `RewardSpecification` is the union of them. In a
worker `eureka_agent.training.reward` makes a function of a specification, by its kind.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, PlainSerializer

from eureka_agent.base_record import Record

ENVIRONMENT = "environment"
"""Author of the baselines."""


class CodeReward(Record):
    """A reward in Python."""

    kind: Literal["code"] = "code"
    source: str
    """Python source with `compute_reward`. Empty when a designer's reply held no code."""
    author: str
    """Name of the designer: a model's, `"offline"`, `"tuning"`, `"given"` for a person's own; or
    `"environment"`."""
    trusted: bool = False
    """True: private variables may be read. So it is for baselines, and where a person asks for
    it."""

    def with_source(self, source: str) -> CodeReward:
        """The same reward with another source."""
        return self.model_copy(update={"source": source})


RewardSpecification: TypeAlias = CodeReward
"""A reward of any kind. A further one makes it a union that `kind` tells apart, where a record
without a kind is code: rows of the archive leave out what is the default."""


def baseline(source: str) -> CodeReward:
    """A reward of the environment's own."""
    return CodeReward(source=source, author=ENVIRONMENT, trusted=True)


Baseline = Annotated[
    RewardSpecification,
    BeforeValidator(lambda value: baseline(value) if isinstance(value, str) else value),
    AfterValidator(lambda reward: baseline(reward.source)),
    PlainSerializer(lambda reward: reward.source, return_type=str),
]
"""An environment's own reward, stored and sent as its source: the rest follows from its place."""
