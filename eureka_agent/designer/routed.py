"""Routing of requests between designers."""

from __future__ import annotations

from eureka_agent.designer.interface import Designer, DesignRequest
from eureka_agent.records import Operator, Proposal, Verdict


class RoutedDesigner:
    """Sends tuning of weights to one designer, everything else to the other. A person's reward
    needs neither."""

    def __init__(self, designer: Designer, tuning: Designer) -> None:
        self.name = designer.name
        self.concurrent = designer.concurrent
        self._designer = designer
        self._tuning = tuning

    async def propose(self, request: DesignRequest) -> Proposal:
        """A new proposal."""
        if request.given is not None:
            return Proposal(
                reward=request.given,
                reasoning="Written by a person.",
                operator=request.operator,
                parents=tuple(parent.id for parent in request.parents),
                reply=request.given.source,
            )
        return await self._for(request).propose(request)

    async def revise(
        self, request: DesignRequest, rejected: Proposal, verdict: Verdict
    ) -> Proposal:
        """A revision, by the designer of the proposal."""
        return await self._for(request).revise(request, rejected, verdict)

    def _for(self, request: DesignRequest) -> Designer:
        return self._tuning if request.operator is Operator.TUNE_WEIGHTS else self._designer
