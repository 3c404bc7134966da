"""docs/reward-contract.md says what the critic does: its codes, its example, and the finding of
every mistake that it shows."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from reward_codes import CODES

import eureka_agent
from eureka_agent.critic.critic import Critic
from eureka_agent.designer.interface import given_reward
from eureka_agent.fleet.dry_runner import DryRunner
from eureka_agent.fleet.jobs import Problem
from eureka_agent.sandbox.choose import choose_wall

PAGE = (Path(__file__).parents[2] / "docs" / "reward-contract.md").read_text()
EXAMPLE = re.search(r"## The form\n\n```python\n(.*?)```", PAGE, re.DOTALL)
MISTAKES = re.findall(r"\*\*([^*]+): ([A-Z]\d{3})\*\*\n\n```python\n(.*?)```", PAGE, re.DOTALL)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def critic(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Critic]:
    runner = DryRunner(
        choose_wall("auto"), Problem("cartpole"), tmp_path_factory.mktemp("dry-runs")
    )
    yield Critic(await runner.start(), runner)
    await runner.close()


def test_the_table_has_every_code_that_a_verdict_may_hold() -> None:
    package = Path(eureka_agent.__file__).parent
    sources = "".join(
        path.read_text()
        for folder in ("critic", "worker", "sandbox", "cli")
        for path in (package / folder).rglob("*.py")
    )
    assert set(re.findall(r'"([PMACDNGR]\d{3})"', sources)) == CODES.keys()


@pytest.mark.asyncio(loop_scope="module")
async def test_the_example_has_no_findings(critic: Critic) -> None:
    assert EXAMPLE is not None
    assert (await critic.judge(given_reward(EXAMPLE[1]))).findings == ()


@pytest.mark.asyncio(loop_scope="module")
async def test_every_mistake_gives_the_finding_that_the_page_names(critic: Critic) -> None:
    assert len(MISTAKES) >= 10
    for title, code, source in MISTAKES:
        verdict = await critic.judge(given_reward(source))
        assert code in {finding.code for finding in verdict.findings}, (title, verdict.findings)
