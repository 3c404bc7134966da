"""What a designer is asked and what it answers with. The offline designer and every LLM stand
behind this."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Protocol

from eureka_agent.records import Diagnosis, Operator, Proposal, Score, TaskDescription, Verdict
from eureka_agent.rewards import RewardSpecification
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
    """Of its trainings in the search; `fitness` is their mean."""
    progress: float = 1.0
    """Part of a training after which that fitness was taken; below 1 in a search that works
    ahead."""
    analysis: str = ""
    """What the trajectory analyst made of its training; empty without one."""
    exploits: tuple[str, ...] = ()
    """Ways to cheat it that its reviewer saw, a sentence each."""
    episodes: int = 0
    """Over which a training's fitness is a mean; 0 where that is not known."""
    changes: tuple[str, ...] = ()
    """A line for each difference from its own parent, and of each child from it, with the fitness
    before and after."""
    stopped: str = ""
    """Reason for which racing stopped its training; `fitness` is then the score at that rung. Empty
    for one that came to its end."""


@dataclass(frozen=True)
class TunedReward:
    """A trained attempt as data for tuning: what it is, and what it was worth."""

    id: str
    reward: RewardSpecification
    fitness: float


@dataclass(frozen=True)
class FailureSummary:
    """An attempt that was turned down or broke off, so that it is not made again."""

    id: str
    reward: RewardSpecification
    stage: str
    """`eureka_agent.records.Stage` at which it ended."""
    reason: str


@dataclass(frozen=True)
class Rejection:
    """An answer that was sent back, and why."""

    proposal: Proposal
    verdict: Verdict


@dataclass(frozen=True)
class DesignRequest:
    """All that a designer is told. Equal requests give equal proposals from a designer that can
    promise it."""

    description: TaskDescription
    sentence: str
    """The task in the searcher's words; it counts more than `description.sentence`."""
    operator: Operator
    parents: tuple[ParentSummary, ...]
    """Best first. Empty for `Operator.FRESH`; two for `Operator.CROSSOVER`; for
    `Operator.REASON_OVER_PATH` one and its ancestors, nearest first."""
    failures: tuple[FailureSummary, ...]
    seed: int
    """Derived from the run's seed, the iteration and the sample, so it differs between the
    proposals of a run."""
    _: KW_ONLY
    memory: tuple[ParentSummary, ...] = ()
    """Other attempts, best first, then those that racing stopped, shown with their code in
    short."""
    number: int = 1
    """Number of the proposal in its generation, from 1; with the angle it makes the requests of a
    generation differ."""
    angle: int = 0
    """Number of the proposal in the run, from 0: it chooses the angle, or the focus, that tells it
    from its neighbours."""
    seed_spread: float | None = None
    """Standard deviation between trainings of the same reward from different seeds, pooled over
    this run's attempts and baselines; None where none was repeated.
    """
    siblings: tuple[str, ...] = ()
    """Sources already proposed in this iteration, not to be repeated. Empty where proposals are
    asked for concurrently."""
    attempt: str = ""
    """Id of the attempt that the answer becomes, for the ledger; no part of the prompt."""
    revision: int = 0
    """How often this proposal was sent back; no part of the prompt, but the same conversation is
    then asked for another answer."""
    rejections: tuple[Rejection, ...] = ()
    """Earlier answers that were sent back, oldest first, without the one that is to be revised
    now."""
    model: str = ""
    """Which of several models is to answer; empty where there is one."""
    settings: SearchSettings | None = None
    """The run's; None: the task's own."""
    references: tuple[Score, ...] = ()
    """Scores of the baselines, where they are known and may be told."""
    trained: tuple[TunedReward, ...] = ()
    """For `Operator.TUNE_WEIGHTS`: all that has been trained so far, in the order of attempts."""
    misleading: tuple[str, ...] = ()
    """Sources of all rewards of this run that the trajectory gate refused; no part of the
    prompt."""


def prefers_failures(verdict: Verdict | None) -> bool:
    """True where the trajectory gate refused the reward: it pays worse recorded episodes more than
    better ones."""
    findings = () if verdict is None else verdict.findings
    return any(finding.code.startswith("G") and finding.severity == "error" for finding in findings)


class Designer(Protocol):
    """Writes reward functions. Raises EurekaError for what a person can act on (a key, a budget),
    nothing else."""

    name: str
    """`"offline"`, or the model's name; stored with every proposal."""
    concurrent: bool
    """True: a generation's proposals are asked for at once, without siblings. False: one after the
    other, each told of those before it."""

    async def propose(self, request: DesignRequest) -> Proposal:
        """A new proposal. Its source may be empty when the designer's reply held no code."""
        ...

    async def revise(
        self, request: DesignRequest, rejected: Proposal, verdict: Verdict
    ) -> Proposal:
        """The proposal again, mended where `verdict` (the critic's) found it broken."""
        ...
