"""The designer that hands in a reward function which a person wrote."""

from __future__ import annotations

from eureka_agent.designer.interface import DesignRequest
from eureka_agent.records import GIVEN_DESIGNER, Operator, Proposal, Verdict


class GivenDesigner:
    """Proposes one given source, whatever it is asked for."""

    name = GIVEN_DESIGNER
    concurrent = False

    def __init__(self, source: str, origin: str) -> None:
        """`origin` says where the source comes from, for the record."""
        self.source = source
        self.origin = origin

    async def propose(self, request: DesignRequest) -> Proposal:
        """The given source."""
        reasoning = f"Taken from {self.origin}."
        return Proposal(
            source=self.source,
            reasoning=reasoning,
            operator=Operator.FRESH,
            designer=self.name,
            reply=self.source,
        )

    async def revise(
        self, request: DesignRequest, rejected: Proposal, verdict: Verdict
    ) -> Proposal:
        """The given source again: a person mends it, not a designer."""
        return rejected
