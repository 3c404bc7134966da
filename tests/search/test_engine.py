from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
import scripted_search
from scripted_search import (
    BROKEN,
    IMPORTING,
    MISSPELT,
    ScriptedDesigner,
    ScriptedSearch,
    TableTrials,
    reward,
    rows,
)

from eureka_agent.archive.run_folder import Run, open_run
from eureka_agent.designer.interface import DesignRequest
from eureka_agent.errors import EnvironmentFaultError, EurekaError
from eureka_agent.journal.entries import IterationEnded, IterationStarted, Notice
from eureka_agent.llm.interface import LanguageModelError
from eureka_agent.records import Finding, Operator, Proposal, Verdict
from eureka_agent.rewards import RewardSpecification
from eureka_agent.search.search import SearchFailedError, first_error
from eureka_agent.search.summary import run_report
from eureka_agent.search.trial import Trial, TrialRequest

MakeRun = Callable[..., Run]


FITNESS: dict[str | tuple[str, int], float | str] = {
    **{reward(weight): float(weight) for weight in range(1, 7)},
    reward(100): 6.0,  # human
    reward(200): 1.0,  # sparse
}


class Unreachable(ScriptedDesigner):
    """Answers so many requests, and no more."""

    def __init__(self, sources: list[str], answers: int, **options: Any) -> None:
        super().__init__(sources, **options)
        self._answers = answers

    async def propose(self, request: DesignRequest) -> Proposal:
        if len(self.requests) == self._answers:
            raise EurekaError("the model is gone", "look for it")
        return await super().propose(request)


# ── generations in which all fail ─────────────────────────────────────────────────────────────────


async def test_a_generation_in_which_all_fail_is_tried_again_and_told_of_its_failures(
    make_run: MakeRun,
) -> None:
    run = make_run(iterations=2, samples=2, revisions=0, retry_rounds=2)
    designer = ScriptedDesigner([IMPORTING, reward(1), reward(2), reward(3), reward(4), reward(5)])
    results = ("went NaN", 1.5, "diverged", 1.0, 2.0)
    trials = TableTrials({reward(weight): each for weight, each in enumerate(results, 1)})
    events: list[Any] = []
    await ScriptedSearch(run, designer, trials, observer=events.append).engine.generations()
    assert rows(run) == [
        ("1-01", "rejected", IMPORTING, None),
        ("1-02", "failed", reward(1), None),
        # the second round: new sample numbers, the old attempts are kept
        ("1-03", "trained", reward(2), 1.5),
        ("1-04", "failed", reward(3), None),
        ("2-01", "trained", reward(4), 1.0),
        ("2-02", "trained", reward(5), 2.0),
    ]
    started = [
        (event.iteration, event.round) for event in events if isinstance(event, IterationStarted)
    ]
    assert started == [(0, 0), (0, 1), (1, 0)]
    told = [
        [(failure.id, failure.stage) for failure in request.failures]
        for request in designer.requests
    ]
    first_round = [("1-02", "failed"), ("1-01", "rejected")]  # newest first
    second_round = [("1-04", "failed"), *first_round]
    assert told == [[], [], first_round, first_round, second_round, second_round]
    diverged, went_nan, imported = designer.requests[4].failures
    assert (diverged.reward.source, diverged.reason) == (reward(3), "diverged")
    assert (went_nan.reward.source, went_nan.reason) == (reward(1), "went NaN")
    assert imported.reward.source == IMPORTING
    assert imported.reason.startswith("A201 ")
    assert len({request.seed for request in designer.requests}) == 6


async def test_a_search_fails_with_its_reasons_when_every_round_has_failed(
    make_run: MakeRun,
) -> None:
    run = make_run(iterations=2, samples=2, revisions=0, retry_rounds=1, novelty=False)
    trials = TableTrials({reward(1): "went NaN", reward(2): "diverged"})
    designer = ScriptedDesigner([reward(1), reward(2), reward(2), IMPORTING])
    why = "iteration 1 failed, in 2 rounds of 2: diverged; A201 "
    with pytest.raises(SearchFailedError, match=why) as caught:
        await ScriptedSearch(run, designer, trials).engine.generations()
    assert str(run.folder) in caught.value.hint
    assert [row[1] for row in rows(run)] == [*["failed"] * 3, "rejected"]
    # a resumption comes to the same end without asking or training anything
    again = ScriptedSearch(open_run(run.folder), ScriptedDesigner([]), TableTrials({}))
    with pytest.raises(SearchFailedError, match=why):
        await again.engine.generations()
    assert (again.designer.requests, again.trials.requests) == ([], [])


# ── repairs ───────────────────────────────────────────────────────────────────────────────────────


async def test_a_mended_reward_is_trained_and_kept_without_a_revision(make_run: MakeRun) -> None:
    run = make_run(iterations=1, samples=1, revisions=2)
    renamed = reward(1).replace("compute_reward", "compute_reward_v2")
    designer, trials = ScriptedDesigner([renamed]), TableTrials({reward(1): 1.0})
    await ScriptedSearch(run, designer, trials).engine.generations()
    assert rows(run) == [("1-01", "trained", reward(1), 1.0)]
    assert designer.revisions == []
    (attempt,) = run.archive.attempts()
    assert attempt.verdict is not None
    assert [(found.code, found.severity) for found in attempt.verdict.findings] == [
        ("M401", "note")
    ]
    assert (run.folder / "attempts" / "1-01" / "reward.py").read_text() == reward(1)


# ── revisions of what the critic rejects ──────────────────────────────────────────────────────────


async def test_a_rejected_proposal_goes_back_as_often_as_the_settings_say(
    make_run: MakeRun,
) -> None:
    run = make_run(iterations=1, samples=2, revisions=2)
    designer = ScriptedDesigner(
        [IMPORTING, reward(1)], mended={IMPORTING: MISSPELT, MISSPELT: BROKEN}
    )
    trials = TableTrials({reward(1): 1.0})
    await ScriptedSearch(run, designer, trials).engine.generations()
    assert rows(run) == [
        ("1-01", "rejected", IMPORTING, None),
        ("1-01-r1", "rejected", MISSPELT, None),
        ("1-01-r2", "rejected", BROKEN, None),
        ("1-02", "trained", reward(1), 1.0),
    ]
    handed = [
        (source, [found.code for found in verdict.findings])
        for _, source, verdict in designer.revisions
    ]
    assert handed == [(IMPORTING, ["A201"]), (MISSPELT, ["C303"])]
    first, second = (request for request, _, _ in designer.revisions)
    assert first == replace(designer.requests[0], attempt="1-01-r1", revision=1)
    assert second == replace(
        designer.requests[0], attempt="1-01-r2", revision=2, rejections=second.rejections
    )
    assert [each.proposal.reward.source for each in second.rejections] == [IMPORTING]
    assert [each.verdict.findings[0].code for each in second.rejections] == ["A201"]
    assert trials.labels == ["1-02"]
    for name, source in (("1-01", IMPORTING), ("1-01-r1", MISSPELT), ("1-01-r2", BROKEN)):
        assert (run.folder / "attempts" / name / "reward.py").read_text() == source


# ── parents and the best so far ───────────────────────────────────────────────────────────────────


async def test_parents_are_the_best_so_far_and_a_worse_generation_changes_nothing(
    make_run: MakeRun,
) -> None:
    run = make_run(iterations=3, samples=4, revisions=0)
    results = (1.0, 4.0, 2.0, "diverged", 3.0, 0.0, 3.5, 2.0, -1.0, 0.5, 1.0, 3.7)
    table = {reward(weight): result for weight, result in enumerate(results, 1)}
    designer, trials = ScriptedDesigner([*table]), TableTrials(table)
    events: list[Any] = []
    trained = await ScriptedSearch(
        run, designer, trials, observer=events.append
    ).engine.generations()
    asked = [
        (request.operator, [parent.id for parent in request.parents])
        for request in designer.requests
    ]
    assert asked == [
        *[(Operator.FRESH, [])] * 4,
        # after 1, 4, 2: the best is 1-02, the runner-up 1-03
        (Operator.IMPROVE, ["1-02"]),
        (Operator.RETUNE_WEIGHTS, ["1-02"]),
        (Operator.MUTATE_STRUCTURE, ["1-02"]),
        (Operator.CROSSOVER, ["1-02", "1-03"]),
        # after 3, 0, 3.5, 2, all below 4: the best is still 1-02, the runner-up is now 2-03 with
        # 3.5
        (Operator.IMPROVE, ["1-02"]),
        (Operator.RETUNE_WEIGHTS, ["1-02"]),
        (Operator.MUTATE_STRUCTURE, ["1-02"]),
        (Operator.CROSSOVER, ["1-02", "2-03"]),
    ]
    parents = designer.requests[11].parents
    found = [(each.reward.source, each.fitness) for each in parents]
    assert found == [(reward(2), 4.0), (reward(7), 3.5)]
    for parent in parents:
        archived = run.archive.attempt(parent.id)
        assert archived is not None
        assert parent.diagnosis is not None
        assert parent.diagnosis == archived.diagnosis
        assert parent.diagnosis.fitness == parent.fitness
    assert [event.best for event in events if isinstance(event, IterationEnded)] == ["1-02"] * 3
    # 4, 3.7, 3.5, 3, then the two with 2 and the two with 1 in the order in which they came, 0.5,
    # 0, -1
    assert [attempt.id for attempt in trained] == [
        *["1-02", "3-04", "2-03", "2-01", "1-03", "2-04", "1-01", "3-03", "3-02", "2-02", "3-01"]
    ]


# ── one after the other, or at once ───────────────────────────────────────────────────────────────


async def test_a_concurrent_designer_is_asked_in_waves_and_told_of_those_before(
    make_run: MakeRun,
) -> None:
    together = asyncio.Barrier(2)  # nobody passes before both of a wave have been asked

    class MeetingDesigner(ScriptedDesigner):
        async def propose(self, request: DesignRequest) -> Proposal:
            proposal = await super().propose(request)
            await together.wait()
            return proposal

    run = make_run(iterations=2, samples=6)
    sources = [reward(weight) for weight in range(12)]
    designer = MeetingDesigner(sources, concurrent=True)
    trials = TableTrials({source: float(place) for place, source in enumerate(sources)})
    async with asyncio.timeout(10):
        await ScriptedSearch(run, designer, trials).engine.generations()
    # three waves of two, each of which knows the waves of its generation before it
    for generation in (0, 6):
        told = [request.siblings for request in designer.requests[generation : generation + 6]]
        own = sources[generation : generation + 6]
        assert told == [(), (), *[tuple(own[:2])] * 2, *[tuple(own[:4])] * 2]
    # whoever is asked n-th of a generation has its n-th place
    assert [row[2] for row in rows(run)] == sources


@pytest.mark.parametrize("concurrent", [False, True])
async def test_a_designer_that_cannot_go_on_ends_the_search_with_what_is_trained(
    make_run: MakeRun, concurrent: bool
) -> None:
    run = make_run(iterations=3, samples=2, finalists=1, final_seeds=1)
    designer = Unreachable([reward(1), reward(2), reward(3)], 3, concurrent=concurrent)
    told: list[Any] = []
    await ScriptedSearch(run, designer, TableTrials(FITNESS), observer=told.append).see_through()
    assert rows(run) == [
        ("1-01", "trained", reward(1), 1.0),
        ("1-02", "trained", reward(2), 2.0),
        ("2-01", "trained", reward(3), 3.0),  # it was there when the next could not be had
    ]
    assert [training.name for training in run.archive.trainings()] == ["2-01", "human", "sparse"]
    (warning,) = (event.text for event in told if isinstance(event, Notice))
    assert warning.startswith(
        "the search ended with generation 2: the model is gone; what was trained until then"
    )
    (remark,) = run_report(run).remarks
    assert remark == warning
    # a resumed search asks again, for what is missing
    again = open_run(run.folder)
    designer = Unreachable([reward(4), reward(5), reward(6)], 9, concurrent=concurrent)
    await ScriptedSearch(again, designer, TableTrials(FITNESS)).see_through()
    assert [row[0] for row in rows(again)] == ["1-01", "1-02", "2-01", "2-02", "3-01", "3-02"]
    finals = {training.name for training in again.archive.trainings()}
    assert finals == {"2-01", "3-02", "human", "sparse"}
    assert run_report(again).remarks == ()


class EndlessTrials(TableTrials):
    """Trainings that nobody sees the end of."""

    async def run(self, request: TrialRequest) -> Trial:
        self.requests.append(request)
        await asyncio.Event().wait()
        raise AssertionError("nobody sets the event")


async def test_where_the_first_generation_cannot_be_designed_no_baseline_is_waited_for(
    make_run: MakeRun,
) -> None:
    trials, told = EndlessTrials({}), list[Any]()
    search = ScriptedSearch(
        make_run(samples=2), Unreachable([], 0, concurrent=True), trials, observer=told.append
    )
    with pytest.raises(BaseExceptionGroup) as caught:
        async with asyncio.timeout(20):
            await search.see_through()
    (error,) = caught.value.exceptions
    assert isinstance(error, EurekaError)
    assert error.message == "the model is gone"
    # which were under way, and end with the search
    assert set(trials.labels) <= {"human", "sparse"}
    assert not [event for event in told if isinstance(event, IterationEnded)]


@pytest.mark.parametrize("concurrent", [False, True])
async def test_an_environment_at_fault_ends_the_run_whatever_is_trained(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch, concurrent: bool
) -> None:
    class Failing(scripted_search.CleanDryRun):
        async def dry_run(self, specification: RewardSpecification) -> tuple[Finding, ...]:
            if specification.source == reward(3):
                raise EnvironmentFaultError("the simulator raised", "mend it, then start a new run")
            return ()

    monkeypatch.setattr(scripted_search, "CleanDryRun", Failing)
    run = make_run(iterations=2, samples=2)
    designer = ScriptedDesigner([reward(weight) for weight in (1, 2, 3, 4)], concurrent=concurrent)
    with pytest.raises(EnvironmentFaultError, match="the simulator raised"):
        await ScriptedSearch(run, designer, TableTrials(FITNESS)).engine.generations()
    assert [row[1] for row in rows(run)][:2] == ["trained", "trained"]
    assert run.archive.state.ended_early == ""


async def test_a_reviewer_and_a_second_answer_that_cannot_be_had_lose_nothing(
    make_run: MakeRun,
) -> None:
    class GoneReviewer:
        async def review(
            self, reward: RewardSpecification, attempt: str, doubts: Sequence[Finding] = ()
        ) -> tuple[Finding, ...]:
            raise LanguageModelError("the reviewer is gone", "")

    class NoRevisions(ScriptedDesigner):
        async def revise(
            self, request: DesignRequest, rejected: Proposal, verdict: Verdict
        ) -> Proposal:
            raise LanguageModelError("the model is gone", "")

    run = make_run(iterations=2, samples=3, finalists=1, final_seeds=1)
    designer = NoRevisions([reward(1), reward(3), IMPORTING], concurrent=True)
    told: list[Any] = []
    trials = TableTrials(FITNESS)
    await ScriptedSearch(
        run, designer, trials, observer=told.append, reviewer=GoneReviewer()
    ).see_through()
    assert [row[:2] for row in rows(run)] == [
        ("1-01", "trained"),
        ("1-02", "trained"),
        ("1-03", "rejected"),  # nobody is asked after it
    ]
    warnings = [event.text for event in told if isinstance(event, Notice)]
    assert warnings[:-1] == [
        f"{name} goes on without a review: the reviewer is gone" for name in ("1-01", "1-02")
    ]
    assert {training.name for training in run.archive.trainings()} == {"1-02", "human", "sparse"}


async def test_a_generation_that_comes_to_nothing_leads_to_the_finals_of_what_there_is(
    make_run: MakeRun,
) -> None:
    rounds = {"revisions": 0, "retry_rounds": 1, "finalists": 2, "final_seeds": 1}
    run = make_run(iterations=3, samples=2, novelty=False, **rounds)
    sources = [reward(1), reward(2), IMPORTING, MISSPELT, IMPORTING, reward(7)]
    table = {**FITNESS, reward(7): "went NaN"}
    await ScriptedSearch(run, ScriptedDesigner(sources), TableTrials(table)).see_through()
    stages = [row[1] for row in rows(run)]
    assert stages == ["trained", "trained", *["rejected"] * 3, "failed"]
    finals = {training.name for training in run.archive.trainings()}
    assert finals == {"1-02", "human", "sparse"}  # twice as good
    (remark,) = run_report(run).remarks
    assert "generation 2: every proposal of iteration 2 failed, in 2 rounds of 2: A201 " in remark
    assert "--retry-rounds 2` tries again" in remark
    # it ends the same when it is resumed, without asking or training anything
    again = ScriptedSearch(open_run(run.folder), ScriptedDesigner([]), TableTrials({}))
    await again.see_through()
    assert (again.designer.requests, again.trials.requests) == ([], [])
    # a further round, which a person asks for, goes on with it
    longer = open_run(run.folder)
    longer.settings = longer.settings.model_copy(update={"retry_rounds": 2})
    more = ScriptedDesigner([reward(3), reward(4), reward(5), reward(6)])
    await ScriptedSearch(longer, more, TableTrials(FITNESS)).see_through()
    assert [row[:2] for row in rows(longer)][6:] == [
        (name, "trained") for name in ("2-05", "2-06", "3-01", "3-02")
    ]
    assert run_report(longer).remarks == ()


@pytest.mark.parametrize("nested", [False, True])
def test_an_error_of_one_task_comes_out_of_the_group_by_itself(nested: bool) -> None:
    """This holds in every version of Python: Debian's 3.11.2 makes a group of what is raised in
    `except*`."""
    error = EurekaError("the engine went away")
    group = ExceptionGroup("tasks", [error, EurekaError("so it did for me")])
    with pytest.raises(EurekaError, match="the engine went away"), first_error(), first_error():
        raise ExceptionGroup("outer", [group]) if nested else group
    with pytest.raises(ExceptionGroup), first_error():
        raise ExceptionGroup("tasks", [error, KeyError("a defect of ours")])
