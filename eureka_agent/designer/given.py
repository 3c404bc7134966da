"""The designer of a given reward, which the user wrote."""

from __future__ import annotations

from eureka_agent.designer.interface import DesignRequest
from eureka_agent.records import GIVEN_DESIGNER, Operator, Proposal, Verdict
from eureka_agent.rewards import CodeReward, RewardSpecification


def given_reward(source: str, *, trusted: bool = False) -> CodeReward:
    """A reward of the user's own. A `trusted` one may read private variables."""
    return CodeReward(source=source, author=GIVEN_DESIGNER, trusted=trusted)


def proposal_of(reward: RewardSpecification, request: DesignRequest) -> Proposal:
    """The proposal of a reward that a person wrote or changed, which no designer is asked for."""
    return Proposal(
        reward=reward,
        reasoning="Written by a person.",
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
        """The given reward."""
        reasoning = f"Taken from {self.origin}."
        return Proposal(
            reward=self.reward,
            reasoning=reasoning,
            operator=Operator.FRESH,
            reply=self.reward.source,
        )

    async def revise(
        self, request: DesignRequest, rejected: Proposal, verdict: Verdict
    ) -> Proposal:
        """The given reward again, since the user revises it."""
        return rejected
