"""The critic: its steps, cheapest first, up to the first one with an error."""

from __future__ import annotations

import time
from typing import Protocol

from eureka_agent.critic.allow_list import check_allow_list
from eureka_agent.critic.contract import check_contract
from eureka_agent.critic.parse import parse
from eureka_agent.records import Finding, TaskDescription, Verdict


class RunsDry(Protocol):
    """Something that runs a reward behind the wall: `eureka_agent.sandbox.dry_runner.DryRunner`."""

    async def dry_run(self, source: str, trusted: bool = False) -> tuple[Finding, ...]:
        """Findings of the dry run."""
        ...


class Critic:
    """Judges rewards for one environment and task."""

    def __init__(self, description: TaskDescription, dry_runner: RunsDry) -> None:
        self._description = description
        self._dry_runner = dry_runner

    async def judge(self, source: str, trusted: bool = False) -> Verdict:
        """The verdict on a reward's source. `trusted`: private variables may be read.

        Never raises for what the source does; EurekaError when the dry run itself cannot be made.
        """
        begin = time.monotonic()
        findings: list[Finding] = []
        steps: list[str] = []

        def rejected() -> bool:
            return any(finding.severity == "error" for finding in findings)

        steps.append("parse")
        tree, found = parse(source)
        findings += found
        if tree is not None:
            steps.append("allow-list")
            findings += check_allow_list(tree)
            if not rejected():
                steps.append("contract")
                findings += check_contract(tree, self._description, trusted)
            if not rejected():
                steps.append("dry run")
                findings += await self._dry_runner.dry_run(source, trusted)
        return Verdict(findings=tuple(findings), steps_run=tuple(steps), seconds=time.monotonic() - begin)
