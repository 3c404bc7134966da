"""A person refines a run: what they say is recorded, decides what comes next, and survives."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from eureka_agent.analysis.standing import standing_wishes
from eureka_agent.archive.run_folder import Run, open_run
from eureka_agent.feedback_records import (
    Choice,
    Comparison,
    Decision,
    Edit,
    Judge,
    Wish,
    Withdrawal,
)
from eureka_agent.records import Operator, RunStatus, Stage
from eureka_agent.report.verdict import verdict
from eureka_agent.search.board import best_name, newest
from eureka_agent.search.refinement import Person, Refinement, Said, replayed
from eureka_agent.search.session import resume, start
from eureka_agent.search.summary import best_attempt, run_report

pytestmark = pytest.mark.slow
SMALL = {"iterations": 1, "samples": 3, "finalists": 0, "confirm": 0, "video": False}
SMALL |= {"env_steps": 2048, "num_envs": 16, "workers": 1, "evaluation_episodes": 8}
OWN = '''def compute_reward(puck_position):
    """A person's own."""
    near = 3.0 - puck_position.abs()
    return near, {"near": near}
'''
ANOTHER, FINISH = Decision(then="another"), Decision(then="finish")
LEAVE = Decision(then="leave")


def scripted(*rounds: Person | Sequence[Said]) -> Person:
    """A person who does one thing after each generation, or says a list of things."""
    left = list(rounds)

    async def speak(refinement: Refinement) -> None:
        now = left.pop(0)
        if isinstance(now, Sequence):
            for said in now:
                refinement.say(said)
        else:
            await now(refinement)

    return speak


@pytest.fixture
async def finished(puck: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A search of one generation."""
    monkeypatch.setenv("EUREKA_RUNS", str(tmp_path / "runs"))
    values = {"env": str(puck), **SMALL}
    return await start(values, None, ["eureka", "search"], lambda entry: None)


async def refined(run: Run, *rounds: Person | Sequence[Said]) -> Run:
    return await resume(run.folder, lambda entry: None, person=scripted(*rounds))


def names(attempts: Sequence[object]) -> list[str]:
    return [each.id for each in attempts]  # type: ignore[attr-defined]


def newest_of(refinement: Refinement) -> list[str]:
    return names(newest(refinement.run.archive.state))


async def test_what_a_person_says_decides_what_comes_next(finished: Run) -> None:
    trained = names([each for each in finished.archive.attempts() if each.stage is Stage.TRAINED])
    assert len(trained) == 3
    by_fitness = max(finished.archive.attempts(), key=lambda each: each.fitness or -1e9).id
    favourite = next(name for name in trained if name != by_fitness)
    others = [name for name in trained if name != favourite]

    async def speak(refinement: Refinement) -> None:
        for other in others:
            refinement.say(Comparison(first=favourite, second=other, grade=2))
        refinement.say(Judge(by="choices"))
        wish = Wish(attempt=favourite, saw="it drifts", wants="more velocity")
        read = await refinement.read(wish)
        assert read.reading is not None
        assert "velocity" in read.reading.text
        refinement.say(read)
        wrong = "def compute_reward(puck_speed):\n    return 1\n"
        verdict, answer = await refinement.give(wrong, favourite)
        assert not verdict.accepted
        assert not answer
        verdict, answer = await refinement.give(OWN, favourite)
        assert verdict.accepted
        assert "trained next" in answer
        assert best_name(refinement.run) == favourite
        refinement.say(ANOTHER)

    seen: list[list[str]] = []

    async def look(refinement: Refinement) -> None:
        seen.append(newest_of(refinement))
        refinement.say(ANOTHER if len(seen) < 2 else LEAVE)

    run = await refined(finished, speak, look, look)
    assert all(each.proposal.operator is not Operator.EDIT for each in run.archive.attempts(2))
    made = run.archive.attempts(1)
    assert seen[0] == [each.id for each in made if each.stage is Stage.TRAINED]
    own, *rest = made
    assert own.proposal.operator is Operator.EDIT
    assert own.proposal.reward.source == OWN
    assert own.proposal.parents == (favourite,)
    assert own.stage is Stage.TRAINED
    assert rest
    for each in rest:
        # of the favourite by choice, not of the best by fitness
        assert each.proposal.parents[0] == favourite
        assert "velocity" in each.proposal.reward.source
        assert "As the person wishes" in each.proposal.reasoning
    assert run.status is RunStatus.FINISHED
    assert run.settings.iterations == 3
    assert best_attempt(run) is not None
    assert best_attempt(open_run(run.folder, reading=True)).id == favourite  # type: ignore[union-attr]


async def test_after_a_wish_proposals_follow_attempts_that_know_it(finished: Run) -> None:
    """Every second one, from the first on; the wished term weighs more once, not each time."""

    run = await refined(finished, [Wish(wants="more velocity"), ANOTHER], [ANOTHER], [LEAVE])
    first = names(run.archive.attempts(0))
    second, third = run.archive.attempts(1), run.archive.attempts(2)
    assert all(each.proposal.parents[0] in first for each in second if each.proposal.parents)
    assert all("As the person wishes" in each.proposal.reasoning for each in second)
    knowing = [each for each in third if each.proposal.parents[0] in names(second)]
    assert {third[0].id, third[2].id} <= set(names(knowing))
    assert not any("As the person wishes" in each.proposal.reasoning for each in knowing)


async def test_what_was_said_stands_after_a_kill(finished: Run) -> None:
    async def speak(refinement: Refinement) -> None:
        first, second, _ = newest_of(refinement)
        refinement.say(Comparison(first=first, second=second, grade=1))
        answer = refinement.say(Wish(wants="be quick"))
        number = refinement.run.archive.state.feedback[-1].number
        assert answer.startswith(f"recorded as {number}: ")
        refinement.say(Wish(wants="be slow"))
        assert "wants: be quick" in refinement.say(Withdrawal(of=number))
        raise asyncio.CancelledError  # the process ends here

    with pytest.raises(asyncio.CancelledError):
        await refined(finished, speak)
    assert open_run(finished.folder, reading=True).status is RunStatus.STOPPED

    async def look(refinement: Refinement) -> None:
        state = refinement.run.archive.state
        (wish,) = standing_wishes(state.feedback)
        assert isinstance(wish.feedback, Wish)
        assert wish.feedback.wants == "be slow"
        assert all(each.who for each in state.feedback)
        assert "be slow" in refinement.undo()  # the last that stands
        assert standing_wishes(state.feedback) == ()
        refinement.say(LEAVE)

    run = await refined(finished, look)
    (comparison,) = run.archive.state.feedback
    assert isinstance(comparison.feedback, Comparison)


async def test_a_decision_before_a_kill_is_carried_out_and_not_asked_for_again(
    finished: Run,
) -> None:
    async def decide(refinement: Refinement) -> None:
        refinement.say(ANOTHER)
        raise asyncio.CancelledError  # the process ends here

    with pytest.raises(asyncio.CancelledError):
        await refined(finished, decide)
    killed = open_run(finished.folder, reading=True)
    assert killed.archive.attempts(1) == ()
    assert killed.is_own()
    seen: list[list[str]] = []

    async def look(refinement: Refinement) -> None:
        seen.append(newest_of(refinement))
        refinement.say(LEAVE)

    run = await refined(finished, look)
    made = run.archive.attempts(1)
    assert seen == [[each.id for each in made if each.stage is Stage.TRAINED]]
    await refined(run, look)  # who left is asked again
    assert len(seen) == 2


async def test_a_task_without_a_metric_is_searched_by_choices_alone(
    puck: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EUREKA_RUNS", str(tmp_path / "runs"))
    small = {name: SMALL[name] for name in ("samples", "env_steps", "num_envs", "workers")}
    values = {"env": str(puck), "fitness": "chosen", **small}
    run = await start(values, None, ["eureka", "search"], lambda entry: None)
    # one generation, and no number says anything of it
    assert {each.fitness for each in run.archive.attempts()} == {0.0}
    assert run.archive.trainings() == ()
    first = verdict(run_report(run))
    assert "after 0 choices" in first.best
    assert f"refine {run.folder}" in first.command
    names_of_first = names(run.archive.attempts())
    favourite = names_of_first[-1]

    async def leave(refinement: Refinement) -> None:
        for each in newest_of(refinement):
            refinement.say(Comparison(first=favourite, second=each, grade=2))
        refinement.say(LEAVE)

    choice = Choice(shown=tuple(names_of_first), best=favourite)
    run = await refined(run, [choice, ANOTHER], leave)
    assert all(each.proposal.parents[0] == favourite for each in run.archive.attempts(1))
    report = run_report(run)
    assert report.best is not None
    assert report.best.id == favourite
    told = verdict(report)
    assert "no baseline" in told.against
    assert "probability" in told.certainty
    assert "choices" in run.fitness_origin


async def test_what_was_said_can_be_replayed_on_an_equal_search(finished: Run) -> None:
    """Equal words give equal attempts, to the bit; withdrawn ones are withdrawn again."""

    async def speak(refinement: Refinement) -> None:
        first, second, _ = newest_of(refinement)
        refinement.say(Comparison(first=first, second=second, grade=1))
        refinement.say(Judge(by="choices"))
        taken_back = refinement.run.archive.state.feedback[-1].number
        refinement.say(Wish(attempt=second, wants="more velocity"))
        refinement.say(Withdrawal(of=taken_back))
        refinement.say(ANOTHER)

    rounds = ([Edit(source=OWN), ANOTHER], [Wish(wants="be quick"), LEAVE])
    first = await refined(finished, speak, *rounds)
    values = {"env": finished.settings.env, **SMALL}
    second = await start(values, None, ["eureka", "search"], lambda entry: None)
    person = replayed(first.archive.entries())
    second = await resume(second.folder, lambda entry: None, person=person)

    def made(run: Run) -> list[tuple[str, str, float | None]]:
        attempts = run.archive.attempts()
        return [(each.id, each.proposal.reward.source, each.fitness) for each in attempts]

    assert made(second) == made(first)
    assert len(made(second)) >= 9
    assert [each.feedback for each in second.archive.state.feedback] == [
        each.feedback for each in first.archive.state.feedback
    ]
    assert not isinstance(second.archive.state.feedback[1].feedback, Judge)
