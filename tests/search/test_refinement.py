"""A person refines a run: what they say is recorded, decides what comes next, and survives."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from eureka_agent.archive.run_folder import Run, open_run
from eureka_agent.errors import EurekaError
from eureka_agent.feedback_records import (
    Choice,
    Comparison,
    Edit,
    Importance,
    Judge,
    Mark,
    Reading,
    Wish,
)
from eureka_agent.journal.entries import (
    BaseEntry,
    FeedbackGiven,
    IterationEnded,
    IterationStarted,
)
from eureka_agent.journal.state import Recorded
from eureka_agent.records import Operator, RunStatus, Stage
from eureka_agent.report.verdict import verdict
from eureka_agent.search.replayed_person import ReplayedPerson
from eureka_agent.search.session import refine, start
from eureka_agent.search.summary import best_attempt, run_report
from eureka_agent.search.table import Decision, Table

pytestmark = pytest.mark.slow
SMALL = {
    "iterations": 1,
    "samples": 3,
    "finalists": 0,
    "confirm": 0,
    "env_steps": 2048,
    "num_envs": 16,
    "workers": 1,
    "evaluation_episodes": 8,
    "video": False,
}
OWN = '''def compute_reward(puck_position):
    """A person's own."""
    near = 3.0 - puck_position.abs()
    return near, {"near": near}
'''
Step = Callable[[Table], Awaitable[Decision]]


class ScriptedPerson:
    """Does one step of a script at each decision."""

    def __init__(self, *steps: Step) -> None:
        self._steps = list(steps)

    async def decide(self, table: Table) -> Decision:
        return await self._steps.pop(0)(table)


@pytest.fixture
async def finished(puck: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A search of one generation."""
    monkeypatch.setenv("EUREKA_RUNS", str(tmp_path / "runs"))
    values = {"env": str(puck), **SMALL}
    return await start(values, None, ["eureka", "search"], lambda entry: None)


async def refined(run: Run, *steps: Step) -> Run:
    return await refine(run.folder, lambda entry: None, ScriptedPerson(*steps))


def names(attempts: Sequence[object]) -> list[str]:
    return [each.id for each in attempts]  # type: ignore[attr-defined]


async def test_what_a_person_says_decides_what_comes_next(finished: Run) -> None:
    trained = names([each for each in finished.archive.attempts() if each.stage is Stage.TRAINED])
    assert len(trained) == 3
    by_fitness = max(finished.archive.attempts(), key=lambda each: each.fitness or -1e9).id
    favourite = next(name for name in trained if name != by_fitness)
    others = [name for name in trained if name != favourite]

    async def speak(table: Table) -> Decision:
        for other in others:
            table.compare(favourite, other, 2)
        table.say(Judge(by="choices"))
        wish = Wish(attempt=favourite, saw="it drifts", wants="more velocity")
        reading = await table.read(wish)
        assert "velocity" in reading.text
        table.say(wish.model_copy(update={"reading": reading}))
        verdict = await table.check_reward("def compute_reward(puck_speed):\n    return 1\n")
        assert not verdict.accepted
        assert (await table.check_reward(OWN)).accepted
        table.say(Edit(attempt=favourite, source=OWN))
        assert table.attempts()[0].id == favourite
        return "another"

    seen: list[list[str]] = []

    async def look(table: Table) -> Decision:
        seen.append(names(table.newest()))
        return "another" if len(seen) < 2 else "leave"

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

    async def wish(table: Table) -> Decision:
        table.say(Wish(wants="more velocity"))
        return "another"

    async def go_on(table: Table) -> Decision:
        return "another"

    async def leave(table: Table) -> Decision:
        return "leave"

    run = await refined(finished, wish, go_on, leave)
    first = names(run.archive.attempts(0))
    second, third = run.archive.attempts(1), run.archive.attempts(2)
    assert all(each.proposal.parents[0] in first for each in second if each.proposal.parents)
    assert all("As the person wishes" in each.proposal.reasoning for each in second)
    knowing = [each for each in third if each.proposal.parents[0] in names(second)]
    assert {third[0].id, third[2].id} <= set(names(knowing))
    assert not any("As the person wishes" in each.proposal.reasoning for each in knowing)


async def test_what_was_said_stands_after_a_kill(finished: Run) -> None:
    async def speak(table: Table) -> Decision:
        first, second, _ = names(table.newest())
        table.compare(first, second, 1)
        number = table.say(Wish(wants="be quick"))
        table.say(Wish(wants="be slow"))
        table.withdraw(number)
        raise asyncio.CancelledError  # the process ends here

    with pytest.raises(asyncio.CancelledError):
        await refined(finished, speak)
    assert open_run(finished.folder, reading=True).status is RunStatus.STOPPED

    async def look(table: Table) -> Decision:
        assert [each.feedback.wants for each in table.wishes] == ["be slow"]  # type: ignore[union-attr]
        (comparison,) = [each for each in table.feedback if isinstance(each.feedback, Comparison)]
        assert comparison.who
        assert table.undo() is not None  # the last that stands: the second wish
        assert table.wishes == ()
        with pytest.raises(EurekaError, match="no standing feedback 1"):
            table.withdraw(1)
        with pytest.raises(EurekaError, match="'9-99' is no trained attempt"):
            table.compare("9-99", comparison.feedback.first, 1)
        return "leave"

    run = await refined(finished, look)
    assert len(run.archive.state.feedback) == 1


async def test_finals_are_trained_when_they_are_asked_for(finished: Run) -> None:
    async def finish(table: Table) -> Decision:
        return "finish"

    run = await refine(
        finished.folder,
        lambda entry: None,
        ScriptedPerson(finish),
        {"finalists": 1, "final_seeds": 1},
    )
    trained = {each.name for each in run.archive.trainings()}
    assert {"human", "sparse"} < trained
    (finalist,) = trained - {"human", "sparse"}
    assert finalist == best_attempt(run).id  # type: ignore[union-attr]


async def test_an_environment_without_pictures_is_told_and_nothing_is_lost(finished: Run) -> None:
    path = Path(finished.settings.env) / "env.py"
    assert "def draw" not in path.read_text()

    async def without_pictures(table: Table) -> Decision:
        with pytest.raises(EurekaError, match="it has no `draw`"):
            await table.clips(names(table.newest()))
        return "leave"

    await refined(finished, without_pictures)


def test_records_of_feedback_are_bounded_and_plain() -> None:
    wish = Wish(saw="it\x1b[2J drifts\u202e", wants="bleib in der Mitte, 请保持居中")
    assert "\x1b" not in wish.saw
    assert wish.wants == "bleib in der Mitte, 请保持居中"
    with pytest.raises(ValueError, match="at most 4,000"):
        Wish(wants="x" * 1_000_000)
    with pytest.raises(ValueError, match="at least 1"):
        Importance(of="terms", order=())
    with pytest.raises(ValueError, match="greater than or equal to 0"):
        Mark.model_validate({"clip": {"attempt": "1-01", "seed": 0, "episode": 0}, "second": -1.0})
    assert Reading(text=" so ").text == "so"


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

    async def choose(table: Table) -> Decision:
        table.say(Choice(shown=tuple(names_of_first), best=favourite))
        return "another"

    async def leave(table: Table) -> Decision:
        for each in table.newest():
            table.compare(favourite, each.id, 2)
        return "leave"

    run = await refined(run, choose, leave)
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

    async def speak(table: Table) -> Decision:
        first, second, _ = names(table.newest())
        table.compare(first, second, 1)
        taken_back = table.say(Judge(by="choices"))
        table.say(Wish(attempt=second, wants="more velocity"))
        table.withdraw(taken_back)
        return "another"

    async def give(table: Table) -> Decision:
        table.say(Edit(source=OWN))
        return "another"

    async def leave(table: Table) -> Decision:
        table.say(Wish(wants="be quick"))
        return "leave"

    first = await refined(finished, speak, give, leave)
    values = {"env": finished.settings.env, **SMALL}
    second = await start(values, None, ["eureka", "search"], lambda entry: None)
    person = ReplayedPerson(first.archive.entries())
    second = await refine(second.folder, lambda entry: None, person)

    def made(run: Run) -> list[tuple[str, str, float | None]]:
        attempts = run.archive.attempts()
        return [(each.id, each.proposal.reward.source, each.fitness) for each in attempts]

    assert made(second) == made(first)
    assert len(made(second)) >= 9
    assert [each.feedback for each in second.archive.state.feedback] == [
        each.feedback for each in first.archive.state.feedback
    ]
    assert not isinstance(second.archive.state.feedback[1].feedback, Judge)

    fewer = await start({**values, "samples": 2}, None, ["eureka", "search"], lambda entry: None)
    about = Comparison(first="1-01", second="1-03", grade=1)
    ended = Recorded(1, "", 0.0, IterationEnded(iteration=0, best=None))
    told = Recorded(2, "", 0.0, FeedbackGiven(who="ada", feedback=about))
    with pytest.raises(EurekaError, match="the attempt '1-03', which this run does not have"):
        await refine(fewer.folder, lambda entry: None, ReplayedPerson([ended, told]))


async def test_a_run_of_an_older_version_that_is_killed_in_a_new_generation_stays_ones_own(
    finished: Run,
) -> None:
    """A new generation rewrites the settings, and with them one that the older version lacked."""
    path = finished.folder / "settings.yaml"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line for line in lines if not line.startswith("judge:")))
    older = open_run(finished.folder)
    older.sign()
    own = []

    async def train(table: Table) -> Decision:
        return "another"

    def observer(entry: BaseEntry) -> None:
        if isinstance(entry, IterationStarted):  # a kill would find the files so
            own.append(open_run(finished.folder, reading=True).is_own())

    async def leave(table: Table) -> Decision:
        return "leave"

    await refine(finished.folder, observer, ScriptedPerson(train, leave))
    assert own == [True]
