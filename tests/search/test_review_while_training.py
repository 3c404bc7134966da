"""Reviews are made while trainings begin. They delay nothing, and a reward that they turn down
counts nowhere, whenever they come."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence

import pytest
from rung_trials import RUNGS, RungTrials
from scripted_search import Fuse, Killed, ScriptedDesigner, ScriptedSearch, reward, rows

from eureka_agent.archive.artefacts import attempt_folder
from eureka_agent.archive.run_folder import Run, open_run
from eureka_agent.journal.entries import BaseEntry
from eureka_agent.records import Finding, Stage
from eureka_agent.rewards import RewardSpecification
from eureka_agent.search.trial import Trial, TrialRequest

MakeRun = Callable[..., Run]

SETTINGS = {**RUNGS, "iterations": 1, "samples": 4}
FITNESS = {reward(1): 10.0, reward(2): 10.0, reward(3): 9.0, reward(4): 8.9, reward(20): 8.95}
SCRIPT = [reward(weight) for weight in (1, 2, 3, 4)]
ROWS = [
    ("1-01", "trained", reward(1), 10.0),
    ("1-02", "rejected", reward(2), None),
    ("1-02-r1", "trained", reward(20), 8.95),
    ("1-03", "trained", reward(3), 9.0),
    ("1-04", "trained", reward(4), 8.9),
]


class LateReviewer:
    """Turns down one source, and answers only when told to."""

    def __init__(self, blocks: str = reward(2)) -> None:
        self.asked: list[str] = []
        self.may_answer = asyncio.Event()
        self._blocks = blocks

    async def review(
        self, reward: RewardSpecification, attempt: str, doubts: Sequence[Finding] = ()
    ) -> tuple[Finding, ...]:
        self.asked.append(attempt)
        await self.may_answer.wait()
        if reward.source == self._blocks:
            return (Finding(code="R701", severity="error", message="it pays for falling"),)
        return (
            Finding(code="R702", severity="warning", message=f"a policy may shake in {attempt}"),
        )


class Trials(RungTrials):
    """Lets the reviewer answer once all four candidates have begun, or when the first begins."""

    def __init__(
        self, reviewer: LateReviewer, fuse: Fuse | None = None, *, late: bool = True
    ) -> None:
        super().__init__(FITNESS, fuse)
        self._reviewer = reviewer
        self._begun: set[str] = set()
        self._late = late
        self.withdrawn: dict[str, tuple[str, bool]] = {}

    async def run(self, request: TrialRequest) -> Trial:
        self._begun.add(request.label)
        if not self._late or len(self._begun) == 4:
            self._reviewer.may_answer.set()
        return await super().run(request)

    def withdraw(self, request: TrialRequest, reason: str, *, ended: bool) -> None:
        super().withdraw(request, reason, ended=ended)
        self.withdrawn[request.label] = (reason, ended)


def search_with(
    run: Run,
    reviewer: LateReviewer,
    fuse: Fuse,
    *,
    late: bool = True,
    view: Callable[[BaseEntry], None] = lambda event: None,
) -> ScriptedSearch:
    known = sum(attempt.revision == 0 for attempt in run.archive.attempts())
    designer = ScriptedDesigner(SCRIPT[known:], {reward(2): reward(20)}, concurrent=True, fuse=fuse)
    trials = Trials(reviewer, fuse, late=late)
    return ScriptedSearch(run, designer, trials, fuse=fuse, reviewer=reviewer, observer=view)


@pytest.mark.parametrize("late", [True, False])
async def test_when_it_comes_makes_no_difference(make_run: MakeRun, late: bool) -> None:
    """A late review comes after every training has begun, so a search that waits for reviews would
    hang."""
    run, reviewer = make_run(**SETTINGS), LateReviewer()
    search = search_with(run, reviewer, Fuse(), late=late)
    async with asyncio.timeout(10):
        await search.engine.generations()
    assert rows(run) == ROWS
    assert sorted(reviewer.asked) == ["1-01", "1-02", "1-02-r1", "1-03", "1-04"]
    turned_down = run.archive.attempt("1-02")
    assert turned_down is not None
    assert (turned_down.reason, turned_down.outcome, turned_down.rungs) == (
        "R701 it pays for falling",
        None,
        (),
    )
    # its score at the rung waits for the review, so it has not ended
    assert search.trials.withdrawn == {"1-02": ("R701 it pays for falling", False)}
    request, source, verdict = search.designer.revisions[0]
    assert (request.attempt, source) == ("1-02-r1", reward(2))
    assert [finding.message for finding in verdict.findings] == ["it pays for falling"]
    accepted = run.archive.attempt("1-03")
    assert accepted is not None
    assert accepted.verdict is not None
    assert accepted.verdict.steps_run[-1] == "review"
    assert [finding.severity for finding in accepted.verdict.findings] == ["warning"]
    stages = Counter(each.stage for each in run.archive.attempts())
    assert stages == {Stage.TRAINED: 4, Stage.REJECTED: 1}
    left = {path.name for path in attempt_folder(run.folder, "1-02").iterdir()}
    assert left == {"reward.py", "prompt.md", "reply.md", "verdict.json"}
    for attempt in run.archive.attempts():
        if attempt.stage is Stage.TRAINED:
            assert [score.env_steps for score in attempt.rungs] == [400, 700]


async def test_a_rejection_ends_a_training_that_goes_on(make_run: MakeRun) -> None:
    ended: list[str] = []

    class Endless(Trials):
        async def run(self, request: TrialRequest) -> Trial:
            if request.label != "1-02":
                return await super().run(request)
            self._reviewer.may_answer.set()
            try:
                return await asyncio.Future[Trial]()
            finally:
                ended.append(request.label)

    run, reviewer = make_run(**SETTINGS), LateReviewer()
    designer = ScriptedDesigner(SCRIPT, {reward(2): reward(20)}, concurrent=True)
    async with asyncio.timeout(10):
        await ScriptedSearch(
            run, designer, Endless(reviewer), reviewer=reviewer
        ).engine.generations()
    assert rows(run) == ROWS
    assert ended == ["1-02"]


@pytest.mark.parametrize(
    ("kind", "number"),
    [(kind, number) for kind in ("rung", "score", "judge") for number in (1, 4, 7, 11)],
)
async def test_killed_and_resumed_it_comes_to_the_same(
    make_run: MakeRun, kind: str, number: int
) -> None:
    run = make_run(**SETTINGS)
    try:
        async with asyncio.timeout(10):
            await search_with(run, LateReviewer(), Fuse(kind, number)).engine.generations()
    except* Killed:
        pass
    resumed, reviewer = open_run(run.folder), LateReviewer()
    reviewer.may_answer.set()
    reviewed = [
        each.id
        for each in resumed.archive.attempts()
        if each.verdict is not None and "review" in each.verdict.steps_run
    ]
    async with asyncio.timeout(10):
        await search_with(resumed, reviewer, Fuse()).engine.generations()
    assert rows(resumed) == ROWS
    assert not set(reviewer.asked) & set(reviewed)


async def test_the_next_generation_is_told_what_its_parents_were_warned_of(
    make_run: MakeRun,
) -> None:
    run, reviewer = make_run(**{**SETTINGS, "iterations": 2}), LateReviewer("")
    script = [reward(weight) for weight in (1, 2, 3, 4, 1.1, 1.2, 1.3, 1.4)]
    designer = ScriptedDesigner(script, concurrent=True)
    table = {source: FITNESS.get(source, 9.0) for source in script}
    reviewer.may_answer.set()
    async with asyncio.timeout(10):
        await ScriptedSearch(
            run, designer, RungTrials(table), reviewer=reviewer
        ).engine.generations()
    parents = [parent for request in designer.requests[4:] for parent in request.parents]
    assert parents
    assert {parent.exploits for parent in parents} == {
        (f"a policy may shake in {each.id}",) for each in parents
    }
