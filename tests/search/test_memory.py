"""A search compares a reward with those that passed before it, whatever the timing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scripted_search import (
    Fuse,
    Killed,
    ScriptedDesigner,
    ScriptedSearch,
    TableTrials,
    reward,
    rows,
)
from stored_attempts import store_attempt

from eureka_agent.archive.run_folder import Run, open_run
from eureka_agent.critic.memory import Memory
from eureka_agent.journal.entries import Planned
from eureka_agent.records import Attempt, Operator, Stage
from eureka_agent.search.drafts import RunMemory

MakeRun = Callable[..., Run]
MakeAttempt = Callable[..., Attempt]


def commented(weight: float) -> str:
    """The same reward with a comment."""
    return f"# another layout\n{reward(weight)}"


def write_episodes(run: Run, attempt_id: str, **fitness: list[float]) -> None:
    folder = run.folder / "attempts" / attempt_id
    folder.mkdir(parents=True, exist_ok=True)
    arrays = {
        f"{name}/fitness": np.array(values, dtype=np.float32) for name, values in fitness.items()
    }
    np.savez_compressed(folder / "trajectories.npz", allow_pickle=False, **arrays)


def ids(memory: Memory) -> tuple[list[str], list[str]]:
    rewards = [each.attempt for each in memory.rewards]
    return rewards, [each.attempt for each in memory.episodes]


# ── repeats ───────────────────────────────────────────────────────────────────────────────────────


async def test_a_repeat_goes_back_to_the_designer_and_is_not_trained(make_run: MakeRun) -> None:
    run = make_run(iterations=2, samples=2)
    designer = ScriptedDesigner(
        [reward(1), commented(1), reward(3), commented(2)],
        # the first correction is itself a repeat
        {commented(1): reward(1), reward(1): reward(2), commented(2): reward(4)},
    )
    trials = TableTrials({reward(weight): float(weight) for weight in (1, 2, 3, 4)})
    await ScriptedSearch(run, designer, trials).engine.generations()
    assert rows(run) == [
        ("1-01", "trained", reward(1), 1.0),
        ("1-02", "rejected", commented(1), None),
        ("1-02-r1", "rejected", reward(1), None),
        ("1-02-r2", "trained", reward(2), 2.0),
        ("2-01", "trained", reward(3), 3.0),
        ("2-02", "rejected", commented(2), None),  # of an earlier generation
        ("2-02-r1", "trained", reward(4), 4.0),
    ]
    reasons = [
        attempt.reason for attempt in run.archive.attempts() if attempt.stage is Stage.REJECTED
    ]
    assert [reason[:31] for reason in reasons] == ["N501 the same reward as 1-01 up", "N501 the same reward as 1-01", "N501 the same reward as 1-02-r2"]  # fmt: skip


async def test_proposals_made_at_once_are_compared_with_earlier_generations_alone(
    make_run: MakeRun,
) -> None:
    run = make_run(iterations=2, samples=2)
    sources = [reward(1), commented(1), reward(2), commented(1)]
    designer = ScriptedDesigner(sources, {commented(1): reward(3)}, concurrent=True)
    trials = TableTrials({reward(1): 1.0, commented(1): 1.0, reward(2): 2.0, reward(3): 3.0})
    await ScriptedSearch(run, designer, trials).engine.generations()
    assert [row[:2] for row in rows(run)] == [
        ("1-01", "trained"),
        ("1-02", "trained"),  # who of the two comes first would depend on timing
        ("2-01", "trained"),
        ("2-02", "rejected"),
        ("2-02-r1", "trained"),
    ]


SCRIPT = [reward(1), commented(1), commented(2), reward(2), commented(4), reward(1)]
MENDED = {commented(1): reward(2), commented(2): reward(3), reward(2): reward(4)}
MENDED |= {commented(4): reward(5), reward(1): reward(6)}
TABLE: dict[str | tuple[str, int], float | str] = {
    reward(weight): float(weight) for weight in range(1, 7)
}


def search_with(run: Run, fuse: Fuse) -> ScriptedSearch:
    known = sum(attempt.revision == 0 for attempt in run.archive.attempts())
    designer = ScriptedDesigner(SCRIPT[known:], MENDED, fuse=fuse)
    return ScriptedSearch(run, designer, TableTrials(TABLE, fuse), fuse=fuse)


@pytest.mark.parametrize(
    ("kind", "number"),
    [
        *[("propose", 4), ("revise", 1), ("trial", 2), ("trained", 3)],
        *[("judge", 1), ("judge", 6), ("judge", 11)],
    ],
)
async def test_killed_and_resumed_it_rejects_the_same(
    make_run: MakeRun, kind: str, number: int
) -> None:
    settings = {"iterations": 1, "samples": 6, "revisions": 1, "finalists": 0}
    whole = make_run(**settings)
    await search_with(whole, Fuse()).engine.generations()
    # each first proposal but 1-01 is rejected: 1-03 is the correction of 1-02 in other words
    stages = [row[1] for row in rows(whole)]
    assert stages == ["trained", *["rejected", "trained"] * 5]
    run = make_run(**settings)
    with pytest.raises(BaseExceptionGroup) as caught:
        await search_with(run, Fuse(kind, number)).engine.generations()
    assert caught.value.subgroup(Killed) is not None
    await search_with(open_run(run.folder), Fuse()).engine.generations()
    assert rows(run) == rows(whole)


# ── what is known when ────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def run(make_run: MakeRun, make_attempt: MakeAttempt) -> Run:
    """Two generations of three samples, the first one in two rounds; the last attempt is to be
    judged."""
    made = make_run(iterations=2, samples=3)
    stages: list[tuple[tuple[int, int, float | None], dict[str, Any]]] = [
        ((0, 0, None), {"stage": Stage.FAILED}),
        ((0, 1, None), {"stage": Stage.REJECTED}),
        ((0, 2, None), {"stage": Stage.REJECTED}),
        ((0, 3, 1.0), {}),
        ((0, 4, 2.0), {}),
        ((0, 5, None), {"stage": Stage.FAILED}),
        ((1, 0, 3.0), {}),
        ((1, 1, None), {"stage": Stage.ACCEPTED}),
        ((1, 2, None), {"stage": Stage.PROPOSED}),
    ]
    for place, fields in stages:
        attempt = make_attempt(*place, **fields)
        store_attempt(made.archive, attempt)
        if attempt.stage is Stage.TRAINED:
            write_episodes(made, attempt.id, worst=[0.5, 0.25], best=[1.0, 2.0, 3.0])
    return made


def test_known_is_what_the_plan_was_made_from(run: Run, make_attempt: MakeAttempt) -> None:
    """The journal: first 1-01 to 1-06, then a plan for 2-03 is made, then come 2-01 to 2-03."""
    seen = max(each.number for each in run.archive.entries() if each.entry.of_attempt == "1-06")
    plan = Planned(iteration=1, sample=2, operator=Operator.FRESH, seen=seen)
    run.archive.append(plan)
    judged = make_attempt(1, 2, stage=Stage.PROPOSED)
    before = ["1-01", "1-04", "1-05", "1-06"]
    assert ids(RunMemory(run, in_order=True).before(judged.iteration, judged.sample)) == (
        [*before, "2-01", "2-02"],
        ["1-04", "1-05"],
    )
    assert ids(RunMemory(run, in_order=False).before(judged.iteration, judged.sample)) == (
        before,
        ["1-04", "1-05"],
    )


def test_files_that_are_gone_or_broken_are_left_out(run: Run, make_attempt: MakeAttempt) -> None:
    (run.folder / "attempts/1-04/trajectories.npz").unlink()
    (run.folder / "attempts/1-05/trajectories.npz").write_bytes(b"PK\x03\x04")
    assert RunMemory(run, in_order=True).before(1, 0).episodes == ()
