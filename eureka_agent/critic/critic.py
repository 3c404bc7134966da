"""The critic: steps in the order of cost, up to the first error, and a model's review apart."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from eureka_agent.critic.allow_list import check_allow_list
from eureka_agent.critic.contract import check_contract
from eureka_agent.critic.memory import NOTHING_KNOWN, Memory, episode_order, find_same_source
from eureka_agent.critic.parse import finding, parse
from eureka_agent.critic.repair import repair
from eureka_agent.llm.budget import BudgetSpentError
from eureka_agent.records import (
    GIVEN_DESIGNER,
    Credit,
    EpisodeOrder,
    Finding,
    TaskDescription,
    Verdict,
)
from eureka_agent.rewards import (
    OBSERVATION_FUNCTION,
    CodeReward,
    Design,
    RewardSpecification,
)
from eureka_agent.settings import SearchSettings

if TYPE_CHECKING:
    from eureka_agent.critic.review import Reviewer
    from eureka_agent.fleet.dry_runner import DryRunner

REVIEW = "review"
DOUBTS = ("C307", "D313", "D315")
"""Warnings of a reward that may not say what its author meant: an unused argument, a total that
does not move, terms that do not make up the total. A component that does not move is none, since it
may act in skilled motion alone; a warning of speed is none, since it depends on the machine."""

OF_TERMS = ("D313", "D314", "D315", "D316", "D318")
"""Findings on a reward's total and terms."""


class Critic:
    """Judges rewards for one environment and task."""

    def __init__(
        self,
        description: TaskDescription,
        runner: DryRunner,
        *,
        novelty: bool = True,
        reviewer: Reviewer | None = None,
        review_all: bool = True,
        design: Design | None = None,
    ) -> None:
        """With `novelty` a reward is compared with those of a memory. `reviewer` reads accepted
        rewards. Without `review_all` it reads only rewards with `doubts_of` them.
        `design`: what is proposed; None: a reward, and an observation where there is one."""
        self._description = description
        self._runner = runner
        self._novelty = novelty
        self._reviewer = reviewer
        self._review_all = review_all
        self._design = design

    async def judge(self, reward: RewardSpecification, memory: Memory = NOTHING_KNOWN) -> Verdict:
        """The verdict on a reward, of all steps but the review. `memory` is what it is compared
        with. The reward's own failures are findings. Raises EurekaError when the dry run cannot be
        made."""
        begin = time.monotonic()
        given = reward
        reward, findings, steps = self._check_source(reward)
        if not _rejected(findings) and self._novelty and memory.rewards:
            steps.append("novelty")
            findings += find_same_source(reward.source, memory.rewards)
        if not _rejected(findings):
            steps.append("dry run")
            # an observation's author cannot mend the terms of the kept reward
            kept = self._design == "observation" and reward.author != GIVEN_DESIGNER
            found = await self._runner.dry_run(reward)
            findings += [each for each in found if not (kept and each.code in OF_TERMS)]
        order = None if _rejected(findings) else await self._order(reward, memory)
        return Verdict(
            findings=tuple(findings),
            steps_run=tuple(steps),
            seconds=time.monotonic() - begin,
            repaired=None if reward is given else reward.source,
            order=order,
        )

    async def credits(
        self, rewards: Sequence[RewardSpecification], memory: Memory
    ) -> list[Credit | None]:
        """The credit that each reward gives to steps of practice, before it is judged. None where
        it fails the steps on its source, or has no values there."""
        checked = [self._check_source(reward)[:2] for reward in rewards]
        sound = [reward for reward, findings in checked if not _rejected(findings)]
        practice = {f"{each.attempt}-practice": each.path for each in memory.practice}
        found = iter(await self._runner.credits(sound, practice))
        return [None if _rejected(findings) else next(found) for _, findings in checked]

    def _check_source(
        self, reward: RewardSpecification
    ) -> tuple[RewardSpecification, list[Finding], list[str]]:
        """The repaired reward, with the findings and the steps on its source alone."""
        steps = ["parse"]
        tree, findings = parse(reward.source)
        if tree is not None:
            mended, notes = repair(tree, reward.source, self._description)
            tree, found = parse(mended) if notes else (tree, [])
            if tree is not None and notes:
                steps.append("repair")
                reward = reward.with_source(mended)
            findings = [*findings, *notes, *found]
        if tree is not None:
            steps.append("allow-list")
            findings += check_allow_list(tree)
            if not _rejected(findings):
                steps.append("contract")
                findings += check_contract(tree, self._description, reward.trusted)
                findings += self._check_design(reward)
        return reward, findings, steps

    def _check_design(self, reward: RewardSpecification) -> Iterator[Finding]:
        """Faults of a proposal with more or less than was asked for."""
        observes = reward.designs_observation
        if observes and self._design == "reward":
            message = f"{OBSERVATION_FUNCTION!r} is defined, and rewards alone are designed here"
            yield finding("C309", message, hint="leave it out (--design both asks for the two)")
        asked = self._design not in (None, "reward") and reward.author != GIVEN_DESIGNER
        if asked and not observes:
            message = f"there is no function {OBSERVATION_FUNCTION!r} at the top level"
            hint = "define it: it returns the policy's observation, of shape (batch, n)"
            yield finding("C309", message, hint=hint)

    async def review(self, reward: RewardSpecification, verdict: Verdict, attempt: str) -> Verdict:
        """The verdict on an accepted reward, with the review as a further step. The ledger of costs
        gets the id `attempt`. The verdict stays the same without a reviewer or a doubt, after an
        earlier review, and when the budget for models is spent. Raises LanguageModelError if the
        reviewer cannot be reached."""
        if (
            self._reviewer is None
            or REVIEW in verdict.steps_run
            or not (self._review_all or doubts_of(verdict))
        ):
            return verdict
        begin = time.monotonic()
        try:
            found = await self._reviewer.review(reward, attempt, doubts_of(verdict))
        except BudgetSpentError:
            return verdict
        return verdict.model_copy(
            update={
                "findings": (*verdict.findings, *found),
                "steps_run": (*verdict.steps_run, REVIEW),
                "seconds": verdict.seconds + time.monotonic() - begin,
            }
        )

    async def _order(self, reward: RewardSpecification, memory: Memory) -> EpisodeOrder | None:
        """Its order of stored episodes; None without enough, or where it has no values there."""
        if not memory.episodes:
            return None
        paths = {each.attempt: each.path for each in memory.episodes}
        scored = await self._runner.score(reward, paths)
        return None if scored.reason else episode_order(memory.episodes, scored.returns)


async def judge_alone(source: str, settings: SearchSettings) -> Verdict:
    """The verdict on a person's own reward, without a run, for these settings' environment, task,
    wall and timeout. Raises EurekaError where nothing can be checked."""
    from eureka_agent.fleet.dry_runner import DryRunner
    from eureka_agent.fleet.jobs import Problem
    from eureka_agent.sandbox.choose import choose_wall

    with tempfile.TemporaryDirectory(prefix="eureka-") as scratch:
        wall, problem = choose_wall(settings.sandbox), Problem(settings.env, settings.task)
        dry_runner = DryRunner(wall, problem, Path(scratch), settings.dry_run_timeout)
        try:
            critic = Critic(await dry_runner.start(), dry_runner)
            return await critic.judge(CodeReward(source=source, author=GIVEN_DESIGNER))
        finally:
            await dry_runner.close()


def _rejected(findings: Sequence[Finding]) -> bool:
    return any(finding.severity == "error" for finding in findings)


def doubts_of(verdict: Verdict) -> tuple[Finding, ...]:
    """The warnings that call for a review."""
    return tuple(finding for finding in verdict.findings if finding.code in DOUBTS)
