"""Interface of designers: requests and proposals of all designers, persons too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Protocol

from eureka_agent.feedback_records import Given
from eureka_agent.llm.interface import ImagePart, ToolSpec
from eureka_agent.records import (
    GIVEN_DESIGNER,
    Diagnosis,
    EpisodeOrder,
    Operator,
    Proposal,
    Score,
    TaskDescription,
    ToolCall,
    Verdict,
)
from eureka_agent.rewards import CodeReward, RewardSpecification
from eureka_agent.settings import SearchSettings


@dataclass(frozen=True)
class ParentSummary:
    """A trained attempt that the new proposal starts from."""

    id: str
    reward: RewardSpecification
    fitness: float | None
    diagnosis: Diagnosis | None
    reasoning: str
    fitness_per_seed: tuple[float, ...] = ()
    """Fitness of each of its trainings in the search; `fitness` is their mean."""
    analysis: str = ""
    exploits: tuple[str, ...] = ()
    episodes: int = 0
    """Number of episodes of a training's fitness; 0 if unknown."""
    order: EpisodeOrder | None = None
    changes: tuple[str, ...] = ()
    """Differences from its parent, and of its children, with the fitness before and after."""


@dataclass(frozen=True)
class FailureSummary:
    """A rejected or failed attempt, which is not to be repeated."""

    id: str
    reward: RewardSpecification
    stage: str
    """`eureka_agent.records.Stage` at which it ended."""
    reason: str


@dataclass(frozen=True)
class Rejection:
    """A rejected proposal with its verdict."""

    proposal: Proposal
    verdict: Verdict


@dataclass(frozen=True)
class Measured:
    """A wish's measure in attempts."""

    words: str
    values: Mapping[str, float]
    """By attempt, nearest to what is wanted first."""


@dataclass(frozen=True)
class Told:
    """A person's feedback, for a designer."""

    wishes: tuple[Given, ...] = ()
    """Standing `Wish`es, oldest first; a later one overrides an earlier one."""
    heeded: frozenset[int] = frozenset()
    """Numbers of the wishes that were known when all parents were designed."""
    measures: Mapping[int, Measured] = field(default_factory=dict)
    """Measures of wishes in the attempts, by the wish's number."""
    importance: tuple[Given, ...] = ()
    marks: tuple[Given, ...] = ()
    choices: int = 0
    strengths: tuple[tuple[str, float, float], ...] = ()
    """Attempts with mean and deviation of their strength, strongest first."""
    by_choices: bool = False
    """True: strengths rank the attempts, in place of the fitness."""
    judged: tuple[tuple[str, float, float], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.wishes or self.importance or self.marks or self.choices)

    @property
    def leads(self) -> bool:
        """True where the person's word counts, and not the fitness alone."""
        return bool(self) or self.by_choices


@dataclass(frozen=True)
class DesignRequest:
    """The input of a designer. A deterministic designer answers equal requests equally."""

    description: TaskDescription
    sentence: str
    """The task in the user's words, which count more than `description.sentence`."""
    operator: Operator
    parents: tuple[ParentSummary, ...]
    """Best first. Empty for `Operator.FRESH`; two for `Operator.CROSSOVER`."""
    failures: tuple[FailureSummary, ...]
    seed: int
    """Differs between a run's proposals."""
    _: KW_ONLY
    memory: tuple[ParentSummary, ...] = ()
    """Other attempts, best first, with compact code."""
    number: int = 1
    """Number of the proposal in its generation, from 1."""
    angle: int = 0
    """Number of the proposal in the run, from 0; chooses the angle that sets it apart."""
    seed_spread: float | None = None
    """Pooled standard deviation between trainings of one reward; None without repeats."""
    siblings: tuple[str, ...] = ()
    """Sources that were proposed earlier and have no result yet."""
    asked: tuple[str, ...] = ()
    """Answers of tools to what others have asked about the parents."""
    attempt: str = ""
    """Id of the attempt, for the ledger of costs. It is no part of the prompt."""
    revision: int = 0
    """Number of the revision: no part of the prompt, but it gives another reply."""
    rejections: tuple[Rejection, ...] = ()
    """Earlier rejected proposals, oldest first, without the one to be revised."""
    model: str = ""
    settings: SearchSettings | None = None
    references: tuple[Score, ...] = ()
    told: Told = Told()
    coverage: str = ""
    """Sentence on a lack of coverage, where the fitness cannot tell rewards apart; else empty."""
    given: RewardSpecification | None = None
    why: str = ""
    """Reasoning of whoever gave it."""
    drafts: tuple[Proposal, ...] = ()
    """For a revision: fresh drafts that were not taken, most promising first."""

    def from_nothing(self) -> DesignRequest:
        """The same request for a fresh reward, without parents."""
        return replace(self, operator=Operator.FRESH, parents=(), memory=())


class DesignTools(Protocol):
    """Tools that a model may call before it proposes."""

    specs: tuple[ToolSpec, ...]

    async def answer(self, attempt: str, key: str, call: ToolCall) -> ToolResult:
        """The answer to a call for this attempt, the same whenever this key is asked."""
        ...


@dataclass(frozen=True)
class ToolResult:
    """The answer to a call, as a model is told it."""

    text: str
    images: tuple[ImagePart, ...] = ()


class Designer(Protocol):
    """Writes reward functions. Raises EurekaError alone, for what a user can act on."""

    name: str
    """`"offline"`, or the model's name; stored with every proposal."""
    concurrent: bool
    """True: a generation is asked for at once. False: in order, with earlier ones as siblings."""

    async def propose(self, request: DesignRequest) -> Proposal:
        """A new proposal. Its source is empty if the reply held no code."""
        ...

    async def revise(
        self, request: DesignRequest, rejected: Proposal, verdict: Verdict
    ) -> Proposal: ...


def given_reward(source: str, *, trusted: bool = False) -> CodeReward:
    """A reward of the user's own. A `trusted` one may read private variables."""
    return CodeReward(source=source, author=GIVEN_DESIGNER, trusted=trusted)


def proposal_of(
    reward: RewardSpecification, request: DesignRequest, reasoning: str = "Written by a person."
) -> Proposal:
    """The proposal of a reward that a person wrote or changed, which no designer is asked for."""
    return Proposal(
        reward=reward,
        reasoning=reasoning,
        operator=request.operator,
        parents=tuple(parent.id for parent in request.parents),
        reply=reward.source,
    )


class GivenDesigner:
    """Proposes one given reward for every request."""

    name = GIVEN_DESIGNER
    concurrent = False

    def __init__(self, reward: RewardSpecification, origin: str) -> None:
        """`origin` names the reward's source for the record."""
        self.reward = reward
        self.origin = origin

    async def propose(self, request: DesignRequest) -> Proposal:
        return proposal_of(self.reward, request, f"Taken from {self.origin}.")

    async def revise(
        self, request: DesignRequest, rejected: Proposal, verdict: Verdict
    ) -> Proposal:
        return rejected
