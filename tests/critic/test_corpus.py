"""The critic judges rewards as language models publish them: it passes those that work, and none
that does not.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from corpus_files import SHARED, CorpusFile, corpus_files, environment_folder

from eureka_agent.critic.critic import Critic
from eureka_agent.designer.interface import given_reward
from eureka_agent.fleet.dry_runner import DryRunner
from eureka_agent.fleet.jobs import Problem
from eureka_agent.records import Verdict
from eureka_agent.sandbox.process_wall import ProcessWall

pytestmark = pytest.mark.slow

LET_THROUGH = 0.9
"""Share of the working rewards that must have no error."""
DRY_RUN_SECONDS = 5.0

Judged = list[tuple[CorpusFile, Verdict]]


async def judge(rewards: list[CorpusFile], scratch: Path) -> Judged:
    """The critic's verdict on each, with one warm worker for each environment, one after the
    other."""
    judged: Judged = []
    for environment in sorted({reward.environment for reward in rewards}):
        dry_runner = DryRunner(
            ProcessWall(), Problem(str(environment_folder(environment))), scratch, DRY_RUN_SECONDS
        )
        try:
            critic = Critic(await dry_runner.start(), dry_runner)
            judged += [
                (reward, await critic.judge(given_reward(reward.source)))
                for reward in rewards
                if reward.environment == environment
            ]
        finally:
            await dry_runner.close()
    return judged


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Judged:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(
            "PYTHONPATH", os.pathsep.join(filter(None, (str(SHARED), os.environ.get("PYTHONPATH"))))
        )
        return asyncio.run(
            judge(
                corpus_files("working") + corpus_files("broken"), tmp_path_factory.mktemp("corpus")
            )
        )


def test_most_working_rewards_are_accepted(judged: Judged) -> None:
    working = {reward.name: verdict for reward, verdict in judged if not reward.reason}
    refused = {
        name: [each for each in verdict.findings if each.severity == "error"]
        for name, verdict in working.items()
        if not verdict.accepted
    }
    assert len(refused) <= (1.0 - LET_THROUGH) * len(working), refused


def test_no_broken_reward_is_accepted(judged: Judged) -> None:
    broken = [(reward, verdict) for reward, verdict in judged if reward.reason]
    assert len(broken) >= 26
    assert [(reward.name, reward.reason) for reward, verdict in broken if verdict.accepted] == []
