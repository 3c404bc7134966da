"""Specifications of rewards: what is designed, judged, stored, sent to workers and trained.

All are code with a total and its components; the kind says what a training makes of them.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, PlainSerializer

from eureka_agent.base_record import Record

ENVIRONMENT = "environment"
"""Author of the baselines."""


Design = Literal["reward", "observation", "both"]
"""Subject of a proposal: a reward, an observation beside the environment's own reward, or both."""
DESIGN_WORDS: dict[str, str] = {
    "observation": "the policy's observation, beside the environment's own reward",
    "both": "the reward together with the policy's observation",
}
"""Words for what is designed, where it is more or other than the reward."""
OBSERVATION_FUNCTION = "design_observation"
MOST_OBSERVATIONS = 64
"""Most numbers of a designed observation."""

_OBSERVATION = re.compile(rf"^def\s+{OBSERVATION_FUNCTION}\b", re.MULTILINE)

RewardKind = Literal["code", "latent", "blend", "labels"]
"""Pay of a training: the total of the code; what fits the episodes' fitness best, with the
components as factors (`training/latent.py`); each step's part of the fitness, and as much of the
total as helps it (`training/blend.py`); or the total, and what a model says of the states that are
reached (`training/labels.py`)."""

KIND_WORDS: dict[str, str] = {
    "latent": "what a step is paid is learned from the fitness of whole episodes, with the terms of"
    " the reward as factors",
    "blend": "a step is paid its part of the fitness, and as much of the reward as pulls the policy"
    " the same way",
    "labels": "a step is paid the reward, and what a model says of the state that it reaches",
}
"""Words for the kinds that are more than code."""


class CodeReward(Record):
    """A reward in Python."""

    kind: RewardKind = "code"
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

    @property
    def designs_observation(self) -> bool:
        """True where the source also defines the policy's observation."""
        return _OBSERVATION.search(self.source) is not None

    def of_kind(self, kind: RewardKind) -> CodeReward:
        """The same code as a reward of this kind."""
        return self.model_copy(update={"kind": kind})


RewardSpecification: TypeAlias = CodeReward
"""A reward of any kind."""


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
