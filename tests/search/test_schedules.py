"""A steady search plans each proposal as soon as there is room, and keeps to what is recorded;
reviews are made while trainings begin, and count whenever they come."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from rung_trials import RUNGS, SIZES, Jittery, RungTrials
from scripted_search import IMPORTING, Fuse, Killed, ScriptedDesigner, ScriptedSearch, reward, rows

from eureka_agent.archive.artefacts import attempt_folder
from eureka_agent.archive.run_folder import Run, open_run
from eureka_agent.journal.entries import (
    AttemptEnded,
    BaseEntry,
    ConfirmationStarted,
    Planned,
    Proposed,
)
from eureka_agent.records import Finding, Operator, Stage
from eureka_agent.rewards import RewardSpecification
from eureka_agent.search.search import SearchFailedError
from eureka_agent.search.trial import Trial, TrialRequest

MakeRun = Callable[..., Run]
SETTINGS: dict[str, Any] = {**SIZES, "schedule": "steady", "iterations": 3, "samples": 4}
SETTINGS |= {"confirm": 1, "finalists": 0, "revisions": 0}
SCRIPT = [reward(weight) for weight in range(1, 13)]
FITNESS = {source: float(number) for number, source in enumerate(SCRIPT, 1)}


def search_with(
    run: Run, trials: RungTrials, fuse: Fuse | None = None, **options: Any
) -> ScriptedSearch:
    known = sum(attempt.revision == 0 for attempt in run.archive.attempts())
    designer = ScriptedDesigner(SCRIPT[known:], concurrent=True, fuse=fuse)
    return ScriptedSearch(run, designer, trials, fuse=fuse, **options)


class Counting(Jittery):
    """Counts how many candidates are on their way at a time."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.at_once = self.most = 0

    async def run(self, request: TrialRequest) -> Trial:
        if request.kind != "search":
            return await super().run(request)
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        trial = await super().run(request)
        self.at_once -= 1
        return trial


async def test_a_proposal_takes_the_place_of_one_that_has_ended(make_run: MakeRun) -> None:
    run = make_run(**SETTINGS, rungs=())
    trials = Counting(1, FITNESS)
    async with asyncio.timeout(30):
        await search_with(run, trials).engine.generations()
    assert trials.most == 4  # as many as a generation has, and never all of them at an end
    entries = [each.entry for each in run.archive.entries()]
    first_end = next(i for i, each in enumerate(entries) if isinstance(each, AttemptEnded))
    planned = [i for i, each in enumerate(entries) if isinstance(each, Planned)]
    assert sum(i < first_end for i in planned) == 4
    last_of_four = [i for i, each in enumerate(entries) if isinstance(each, AttemptEnded)][3]
    assert planned[4] < last_of_four  # nobody waits for a generation
    assert all(each.stage is Stage.TRAINED for each in run.archive.attempts())
    assert len(run.archive.attempts()) == 12


async def test_a_plan_sees_what_had_ended_and_its_request_has_nothing_later(
    make_run: MakeRun,
) -> None:
    run = make_run(**SETTINGS)
    search = search_with(run, Jittery(2, FITNESS))
    async with asyncio.timeout(30):
        await search.engine.generations()
    entries = list(run.archive.entries())
    plans = [each.entry for each in entries if isinstance(each.entry, Planned)]
    for plan in plans:
        ended = {
            each.entry.attempt
            for each in entries
            if isinstance(each.entry, AttemptEnded) and each.number <= plan.seen
        }
        assert set(plan.parents) <= ended
        assert (plan.operator is Operator.FRESH) is (not ended)
    requests = {request.attempt: request for request in search.designer.requests}
    for plan in plans:
        shown = requests[f"{plan.iteration + 1}-{plan.sample + 1:02d}"]
        assert tuple(parent.id for parent in shown.parents) == plan.parents


async def test_no_later_proposal_is_asked_for_before_there_is_something_new_to_see(
    make_run: MakeRun,
) -> None:
    run = make_run(**{**SETTINGS, "samples": 4, "iterations": 2})
    ended: list[int] = []
    """Ended attempts at each request of the second generation."""

    class Watching(ScriptedDesigner):
        async def propose(self, request: Any) -> Any:
            if request.operator is not Operator.FRESH or len(self.requests) >= 4:
                stages = [each.stage for each in run.archive.attempts()]
                ended.append(stages.count(Stage.TRAINED))
                # all that are on their way are told, and no one leads at its rung unseen
                assert len(request.siblings) == stages.count(Stage.ACCEPTED)
            return await super().propose(request)

    designer = Watching(SCRIPT, concurrent=True)
    async with asyncio.timeout(30):
        await ScriptedSearch(run, designer, Jittery(5, FITNESS)).engine.generations()
    assert len(run.archive.attempts()) == 8
    assert all(request.parents for request in designer.requests[4:])
    assert len(ended) == 4
    assert all(known > before for before, known in enumerate(ended))


@pytest.mark.parametrize(
    ("kind", "number"),
    [("propose", 1), ("propose", 12), ("judge", 5), ("rung", 4), ("score", 7), ("trained", 8)],
)
async def test_killed_and_resumed_nothing_is_lost_or_made_twice(
    make_run: MakeRun, kind: str, number: int
) -> None:
    run, fuse = make_run(**SETTINGS), Fuse(kind, number)
    with pytest.raises(BaseExceptionGroup) as caught:
        async with asyncio.timeout(30):
            await search_with(run, Jittery(3, FITNESS, fuse), fuse).engine.generations()
    assert caught.group_contains(Killed)
    before = open_run(run.folder)
    plans = dict(before.archive.state.plans)
    stages = {each.id: each for each in before.archive.attempts()}
    trials = Jittery(4, FITNESS)
    async with asyncio.timeout(30):
        await search_with(before, trials).engine.generations()
    state = before.archive.state
    # what was recorded is kept
    assert {place: state.plans[place] for place in plans} == plans
    for name, attempt in stages.items():
        now = state.by_id[name]
        assert now.rungs[: len(attempt.rungs)] == attempt.rungs
        if attempt.stage is Stage.TRAINED:
            assert (now.stage, now.outcome) == (attempt.stage, attempt.outcome)
            assert name not in trials.labels or now.repeats
    # nothing is lost, nothing made twice
    entries = [each.entry for each in before.archive.entries()]
    proposed = Counter(each.attempt for each in entries if isinstance(each, Proposed))
    ended = Counter(each.attempt for each in entries if isinstance(each, AttemptEnded))
    assert len(proposed) == 12
    assert set(proposed.values()) == set(ended.values()) == {1}
    for each in state.by_id.values():
        assert [score.env_steps for score in each.rungs] == [700]
    confirmed = [
        name for each in entries if isinstance(each, ConfirmationStarted) for name in each.attempts
    ]
    assert len(confirmed) == len(set(confirmed))
    assert all(len(state.by_id[name].repeats) == 1 for name in confirmed)


async def test_it_ends_where_nothing_can_be_trained(make_run: MakeRun) -> None:
    run = make_run(**{**SETTINGS, "iterations": 1, "samples": 2, "retry_rounds": 1})
    designer = ScriptedDesigner([IMPORTING] * 4, concurrent=True)
    with pytest.raises(SearchFailedError, match="none of 4 proposals was trained: A201"):
        async with asyncio.timeout(30):
            await ScriptedSearch(run, designer, RungTrials({})).engine.generations()


async def test_no_more_are_trained_again_than_generations_would(make_run: MakeRun) -> None:
    """Each proposal is better than those before it, so that the best two change all the time."""
    settings = {**SETTINGS, "confirm": 2, "finalists": 1, "strategy": "greedy"}
    run = make_run(**settings)
    async with asyncio.timeout(30):
        await search_with(run, Jittery(4, FITNESS)).engine.generations()
    ended, asked = 0, list[str]()
    for each in run.archive.entries():
        if isinstance(each.entry, AttemptEnded):
            ended += 1
        if isinstance(each.entry, ConfirmationStarted):
            asked += each.entry.attempts
            # two for each four that have ended, the last four left out
            assert len(asked) <= 2 * min(ended // 4, 2)
    assert len(set(asked)) == len(asked) == 4


SETTINGS_REVIEW = {**RUNGS, "iterations": 1, "samples": 4}
FITNESS_REVIEW = {reward(1): 10.0, reward(2): 10.0, reward(3): 9.0, reward(4): 8.9}
FITNESS_REVIEW[reward(20)] = 8.95
SCRIPT_REVIEW = [reward(weight) for weight in (1, 2, 3, 4)]
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
        super().__init__(FITNESS_REVIEW, fuse)
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


def search_with_review(
    run: Run,
    reviewer: LateReviewer,
    fuse: Fuse,
    *,
    late: bool = True,
    view: Callable[[BaseEntry], None] = lambda event: None,
) -> ScriptedSearch:
    known = sum(attempt.revision == 0 for attempt in run.archive.attempts())
    designer = ScriptedDesigner(
        SCRIPT_REVIEW[known:], {reward(2): reward(20)}, concurrent=True, fuse=fuse
    )
    trials = Trials(reviewer, fuse, late=late)
    return ScriptedSearch(run, designer, trials, fuse=fuse, reviewer=reviewer, observer=view)


@pytest.mark.parametrize("late", [True, False])
async def test_when_it_comes_makes_no_difference(make_run: MakeRun, late: bool) -> None:
    """A late review comes after every training has begun, so a search that waits for reviews would
    hang."""
    run, reviewer = make_run(**SETTINGS_REVIEW), LateReviewer()
    search = search_with_review(run, reviewer, Fuse(), late=late)
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

    run, reviewer = make_run(**SETTINGS_REVIEW), LateReviewer()
    designer = ScriptedDesigner(SCRIPT_REVIEW, {reward(2): reward(20)}, concurrent=True)
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
    run = make_run(**SETTINGS_REVIEW)
    try:
        async with asyncio.timeout(10):
            await search_with_review(run, LateReviewer(), Fuse(kind, number)).engine.generations()
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
        await search_with_review(resumed, reviewer, Fuse()).engine.generations()
    assert rows(resumed) == ROWS
    assert not set(reviewer.asked) & set(reviewed)


async def test_the_next_generation_is_told_what_its_parents_were_warned_of(
    make_run: MakeRun,
) -> None:
    run, reviewer = make_run(**{**SETTINGS_REVIEW, "iterations": 2}), LateReviewer("")
    script = [reward(weight) for weight in (1, 2, 3, 4, 1.1, 1.2, 1.3, 1.4)]
    designer = ScriptedDesigner(script, concurrent=True)
    table = {source: FITNESS_REVIEW.get(source, 9.0) for source in script}
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
