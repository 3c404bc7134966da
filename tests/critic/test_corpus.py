"""The critic judges rewards as language models publish them: it passes those that work, and none
that does not.

`pytest -s tests/critic/test_corpus.py` prints the shares, and the findings on those that were
refused.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from pathlib import Path

import pytest
from corpus_files import SHARED, CorpusFile, corpus_files, environment_folder

from eureka_agent.critic.critic import Critic
from eureka_agent.designer.interface import given_reward
from eureka_agent.fleet.dry_runner import DryRunner
from eureka_agent.fleet.problem import Problem
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


def error_codes(verdict: Verdict) -> list[str]:
    return [finding.code for finding in verdict.findings if finding.severity == "error"]


def table(judged: Judged) -> str:
    """A line for each style, and one for each refused reward with its findings."""
    lines = [f"{'style':14s} accepted  codes of the errors"]
    for style in sorted({reward.style for reward, _ in judged}):
        of_style = [verdict for reward, verdict in judged if reward.style == style]
        codes = Counter(code for verdict in of_style for code in set(error_codes(verdict)))
        counted = ", ".join(f"{code} × {count}" for code, count in codes.most_common())
        lines.append(
            f"{style:14s} {sum(verdict.accepted for verdict in of_style):3d} / {len(of_style):2d} "
            f" {counted}"
        )
    accepted = sum(verdict.accepted for _, verdict in judged)
    lines.append(f"{'all':14s} {accepted:3d} / {len(judged):2d}  {accepted / len(judged):.0%}")
    for reward, verdict in sorted(judged, key=lambda pair: pair[0].name):
        for finding in verdict.findings:
            if finding.severity == "error":
                lines.append(
                    f"  {reward.name}, line {finding.line}: {finding.code} {finding.message[:160]}"
                )
    return "\n".join(lines)


def test_most_working_rewards_are_accepted(judged: Judged) -> None:
    working = [(reward, verdict) for reward, verdict in judged if not reward.reason]
    found = table(working)
    print("\n" + found)
    assert sum(verdict.accepted for _, verdict in working) >= LET_THROUGH * len(working), found


def test_no_broken_reward_is_accepted(judged: Judged) -> None:
    broken = sorted(
        ((reward, verdict) for reward, verdict in judged if reward.reason),
        key=lambda pair: pair[0].name,
    )
    print()
    for reward, verdict in broken:
        print(
            f"  {reward.name:28s}"
            f" {', '.join(dict.fromkeys(error_codes(verdict))) or 'ACCEPTED':12s} {reward.reason}"
        )
    assert [(reward.name, reward.reason) for reward, verdict in broken if verdict.accepted] == []
