"""The search finishes what is paid for, and nothing else, when the budget for models is spent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from scripted_search import (
    MISSPELT,
    Fuse,
    Killed,
    ScriptedDesigner,
    ScriptedSearch,
    TableTrials,
    reward,
    rows,
)

from eureka_agent.archive.run_folder import Run, open_run
from eureka_agent.designer.interface import DesignRequest
from eureka_agent.llm.budget import BudgetSpentError
from eureka_agent.records import Proposal, Verdict
from eureka_agent.search.search import SearchFailedError

MakeRun = Callable[..., Run]
SETTINGS = {"iterations": 3, "samples": 3, "finalists": 2, "final_seeds": 2}
TABLE: dict[str | tuple[str, int], float | str] = {
    **{reward(number): float(number) for number in range(1, 12)},
    reward(100): 6.0,  # human
    reward(200): 1.0,  # sparse
}


class PoorDesigner(ScriptedDesigner):
    """Has money for a number of requests, over all processes of a run."""

    def __init__(self, run: Run, sources: list[str], requests: int, **options: Any) -> None:
        super().__init__(sources, concurrent=True, **options)
        self.left = requests - len(run.archive.attempts())
        self.closed = False

    def spent(self) -> bool:
        return self.closed

    async def propose(self, request: DesignRequest) -> Proposal:
        self._pay()
        return await super().propose(request)

    async def revise(
        self, request: DesignRequest, rejected: Proposal, verdict: Verdict
    ) -> Proposal:
        self._pay()
        return await super().revise(request, rejected, verdict)

    def _pay(self) -> None:
        if self.left <= 0 or self.closed:
            self.closed = True
            raise BudgetSpentError("no more requests")
        self.left -= 1


def search(
    run: Run,
    sources: list[str],
    requests: int,
    fuse: Fuse | None = None,
    mended: dict[str, str] | None = None,
) -> ScriptedSearch:
    known = sum(attempt.revision == 0 for attempt in run.archive.attempts())
    designer = PoorDesigner(run, sources[known:], requests, fuse=fuse, mended=mended)
    return ScriptedSearch(run, designer, TableTrials(TABLE, fuse), fuse=fuse, spent=designer.spent)


async def test_what_is_paid_for_is_trained_and_scored_and_no_generation_follows(
    make_run: MakeRun,
) -> None:
    run = make_run(**SETTINGS)
    done = search(run, [reward(number) for number in range(1, 10)], requests=4)
    await done.see_through()
    assert [(row[0], row[3]) for row in rows(run)] == [
        ("1-01", 1.0),
        ("1-02", 2.0),
        ("1-03", 3.0),
        ("2-01", 4.0),
    ]
    finals = Counter(training.name for training in run.archive.trainings())
    assert [finals[name] for name in ("2-01", "human", "sparse")] == [2, 2, 2]


async def test_a_rejected_proposal_that_cannot_be_mended_any_more_stays_rejected(
    make_run: MakeRun,
) -> None:
    run = make_run(**SETTINGS)
    await search(
        run, [reward(1), MISSPELT, reward(2)], requests=3, mended={MISSPELT: reward(3)}
    ).see_through()
    assert [(row[0], row[1]) for row in rows(run)] == [
        ("1-01", "trained"),
        ("1-02", "rejected"),
        ("1-03", "trained"),
    ]


async def test_without_money_for_one_request_the_error_says_so(make_run: MakeRun) -> None:
    run = make_run(**SETTINGS)
    with pytest.raises(SearchFailedError, match="left no room for a single request") as caught:
        await search(run, [reward(1)], requests=0).engine.generations()
    assert "--max-cost" in caught.value.hint


@pytest.mark.parametrize(
    "point",
    [("propose", 4), ("judge", 2), ("trial", 1), ("trained", 3), ("trial", 4), ("trained", 6)],
)
async def test_killed_and_resumed_it_ends_the_same(
    make_run: MakeRun, point: tuple[str, int]
) -> None:
    sources = [reward(number) for number in range(1, 10)]
    unbroken, broken = make_run(**SETTINGS), make_run(**SETTINGS)
    await search(unbroken, sources, requests=5).see_through()
    assert len(rows(unbroken)) == 5
    with pytest.raises(BaseExceptionGroup) as caught:
        await search(broken, sources, requests=5, fuse=Fuse(*point)).see_through()
    assert caught.group_contains(Killed)
    broken.archive.close()
    again = open_run(broken.folder)
    await search(again, sources, requests=5).see_through()
    assert rows(again) == rows(unbroken)
    scores = [
        [(each.name, each.seed) for each in run.archive.trainings()] for run in (again, unbroken)
    ]
    assert scores[0] == scores[1]
