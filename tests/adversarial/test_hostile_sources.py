"""The critic's reading rejects every hostile source, except those that are harmless when they
run."""

from __future__ import annotations

import resource
import subprocess
import sys
import types

import pytest
import torch
from hostile_code import ATTACKS, Attack, body, filled_in

from eureka_agent.boundary.events import TransitionsScored
from eureka_agent.critic.allow_list import check_allow_list
from eureka_agent.critic.critic import Critic
from eureka_agent.critic.parse import parse
from eureka_agent.designer.interface import given_reward
from eureka_agent.records import Finding, TaskDescription
from eureka_agent.rewards import RewardSpecification


class NotRun:
    """Stand-in for the dry runner: notes whether a reward would have been run."""

    def __init__(self) -> None:
        self.asked = False

    async def dry_run(self, reward: RewardSpecification) -> tuple[Finding, ...]:
        self.asked = True
        return ()

    async def score(self, reward: RewardSpecification, episodes: object) -> TransitionsScored:
        raise AssertionError("there are no episodes")


async def passes(source: str, description: TaskDescription) -> bool:
    """True if a source gets as far as a dry run."""
    runner = NotRun()
    verdict = await Critic(description, runner).judge(given_reward(source))
    assert runner.asked is verdict.accepted
    return runner.asked


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
async def test_what_the_reading_says(attack: Attack, description: TaskDescription) -> None:
    assert (
        await passes(filled_in(attack.source, "/tmp/canary", 1, 1), description)
        is not attack.static
    )


async def test_a_plain_reward_passes(description: TaskDescription) -> None:
    assert await passes(body(""), description)


# ── sources that are hard to read ─────────────────────────────────────────────────────────────────

HUGE = "0x" + "f" * 5000


@pytest.mark.parametrize(
    "source",
    [
        body(f"total = total * {HUGE}"),
        f"def compute_reward(actions={HUGE}):\n    return actions, {{}}\n",
        body("x" + ".a" * 12_000),
        body("-" * 20_000 + "1"),
        body("x = " + "lambda: " * 2_000 + "1"),
        body("f'{" * 90),
        body("x = '\ud800'"),
        body("x = '\0'"),
        body("x = 1") * 10_000,
    ],
    ids=range(9),
)
async def test_a_source_that_is_hard_to_read_is_rejected_and_nothing_falls_over(
    source: str, description: TaskDescription
) -> None:
    assert not await passes(source, description)


FINALLY = (
    "".join(f"{' ' * depth}try: pass\n{' ' * depth}finally:\n" for depth in range(1, 20))
    + " " * 20
    + "pass\n"
)
RETURNS = " try:\n" + "  return 1\n" * 2_500 + " finally:\n" + "  a = 1\n" * 2_500
READS = """
import sys
from eureka_agent.critic.allow_list import check_allow_list
from eureka_agent.critic.parse import parse

tree, _ = parse(sys.stdin.read())
assert tree is not None and check_allow_list(tree)
"""


@pytest.mark.parametrize("body_", [FINALLY, RETURNS], ids=["nested", "returns"])
def test_a_finally_is_not_copied_for_every_way_out_of_its_try(body_: str) -> None:
    """Python's compiler would copy it: the first source takes it over ten seconds and gigabytes, in
    the driver."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (8, 8))
        resource.setrlimit(resource.RLIMIT_DATA, (512 << 20, 512 << 20))

    source = "def compute_reward(a):\n" + body_
    read = subprocess.run(
        [sys.executable, "-c", READS],
        input=source,
        text=True,
        preexec_fn=limit,
        capture_output=True,
        check=False,
    )
    assert (read.returncode, read.stderr) == (0, "")


def test_no_path_within_torch_leads_to_a_module() -> None:
    """Torch itself is searched."""
    found = []
    for prefix, module in {
        "torch": torch,
        "torch.nn": torch.nn,
        "torch.nn.functional": torch.nn.functional,
        "torch.functional": torch.functional,
        "torch.linalg": torch.linalg,
        "torch.special": torch.special,
        "torch.fft": torch.fft,
    }.items():
        names = [
            name
            for name, value in vars(module).items()
            if isinstance(value, types.ModuleType) and name != "math"
        ]
        for path in (f"{prefix}.{name}" for name in names):
            tree, _ = parse(body(f"x = {path}\ny = {path}.torch\nz = {path}.os"))
            assert tree is not None
            refused = {finding.line for finding in check_allow_list(tree)}
            found += [path] if len(refused) < 3 else []
    assert found == []
