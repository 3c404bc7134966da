"""Pairs that a model compares, and a search that its answers lead, killed at any point."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from planned_attempts import planned
from scripted_search import Fuse, Killed, ScriptedDesigner, ScriptedSearch, TableTrials, reward

from eureka_agent.analysis.standing import comparisons_of_model, sub_goals_of, what_ranks
from eureka_agent.archive.run_folder import Run, open_run
from eureka_agent.feedback_records import Comparison, Given, Grade, Judge, Judgement
from eureka_agent.journal.entries import FeedbackGiven, IterationEnded
from eureka_agent.llm.budget import BudgetSpentError
from eureka_agent.llm.interface import LanguageModelError
from eureka_agent.records import Attempt
from eureka_agent.search.seeing import Judging, next_pairs

MakeRun = Callable[..., Run]
SETTINGS = {"iterations": 3, "samples": 3, "finalists": 0}
SOURCES = [reward(number) for number in range(1, 10)]
# what the eye prefers has the lowest fitness
TABLE: dict[str | tuple[str, int], float | str] = {
    **{source: -float(number) for number, source in enumerate(SOURCES, 1)},
    reward(100): 0.0,
    reward(200): 0.0,
}


def trained(name: str) -> Attempt:
    iteration, sample = (int(part) - 1 for part in name.split("-"))
    made = planned(iteration, sample, 0.0)
    return made.model_copy(update={"id": name})


def judged(*comparisons: tuple[str, str, Grade | None]) -> Given:
    told = Judgement(
        comparisons=tuple(
            Comparison(first=first, second=second, grade=grade)
            for first, second, grade in comparisons
        )
    )
    return Given(number=1, time="", who="eye", feedback=told)


def test_every_attempt_is_compared_before_any_comes_twice() -> None:
    attempts = [trained(f"1-{number:02}") for number in range(1, 9)]
    chosen = next_pairs(attempts, (), 0)
    assert len(chosen) == 4
    assert {name for pair in chosen for name in pair} == {each.id for each in attempts}
    # two of a later generation, among which one was compared
    known = [judged(*((first, second, 1) for first, second in chosen), ("2-01", "1-01", 1))]
    chosen = next_pairs([*attempts, trained("2-01"), trained("2-02")], known, 0)
    assert "2-02" in chosen[0]


def test_the_pair_that_tells_most_comes_first() -> None:
    attempts = [trained(f"1-0{number}") for number in range(1, 4)]
    # the third has lost to both, clearly: the question is between the other two
    known = [judged(("1-01", "1-03", 2), ("1-02", "1-03", 2), ("1-01", "1-03", 2))]
    assert set(next_pairs(attempts, known, 0)[0]) == {"1-01", "1-02"}


def test_there_are_two_comparisons_for_each_and_no_question_comes_twice() -> None:
    attempts = [trained(f"1-0{number}") for number in range(1, 6)]
    feedback: list[Given] = []
    while chosen := next_pairs(attempts, feedback, 0):
        feedback.append(judged(*((*pair, None) for pair in chosen)))
    asked = [(each.first, each.second) for each in comparisons_of_model(feedback)]
    assert len(asked) == 10
    assert len(set(asked)) == 10
    # two have one pair, which may be asked in both orders
    assert [len(next_pairs(attempts[:2], [judged(("1-01", "1-02", None))], 0))] == [1]
    both = [judged(("1-01", "1-02", 1), ("1-02", "1-01", 1))]
    assert next_pairs(attempts[:2], both, 0) == ()
    assert next_pairs(attempts[:1], (), 0) == ()
    # a withdrawn answer is asked for again
    assert len(next_pairs(attempts, feedback[1:], 0)) == 4


def test_the_order_of_a_pair_is_drawn() -> None:
    attempts = [trained("1-01"), trained("1-02")]
    first = Counter(next_pairs(attempts, (), seed)[0][0] for seed in range(200))
    assert abs(first["1-01"] - 100) < 30  # four deviations of a fair coin
    assert next_pairs(attempts, (), 7) == next_pairs(attempts, (), 7)


class Eye:
    """Prefers rewards by their number, from the text that stands for a picture."""

    name = "openai/eye"

    def __init__(self, fuse: Fuse) -> None:
        self._fuse = fuse
        self.asked: list[tuple[bytes, bytes]] = []
        self.fails_at: dict[int, Exception] = {}
        self.goals_of: dict[bytes, tuple[str, ...]] = {}
        """Sub-goals over all processes, by the picture that was shown."""
        self.told: set[tuple[str, ...]] = set()
        """Sub-goals of the comparisons."""
        self.stored: dict[tuple[bytes, bytes], Grade] = {}
        """Answers over all processes, as the gateway keeps them."""

    async def sub_goals(self, picture: bytes) -> tuple[tuple[str, ...], str]:
        if picture not in self.goals_of:
            self._fuse("goals")
            await asyncio.sleep(0)
            # another picture would give others
            self.goals_of[picture] = ("it moves", f"it is better than {picture.decode()}")
        return self.goals_of[picture], ""

    async def compare(
        self, first: bytes, second: bytes, goals: tuple[str, ...]
    ) -> tuple[Grade | None, str]:
        self.told.add(goals)
        if (first, second) not in self.stored:
            self._fuse("asked")
            self.asked.append((first, second))
            error = self.fails_at.get(len(self.asked))
            await asyncio.sleep(0)
            if error is not None:
                raise error
            self.stored[first, second] = 1 if first > second else -1
        return self.stored[first, second], ""


class Camera:
    """Makes the text of the policy, `policy of 1-01`, its picture."""

    def __init__(self, fuse: Fuse) -> None:
        self._fuse = fuse
        self.titles: list[str] = []

    async def film(self, subjects: Any, settings: Any, *_: Any, sheet: Path) -> None:
        self._fuse("filmed")
        self.titles += [subject.title for subject in subjects]
        sheet.write_bytes(subjects[0].policy.read_bytes())


def search(run: Run, eye: Eye, camera: Camera, fuse: Fuse) -> ScriptedSearch:
    known = len(run.archive.attempts())
    if what_ranks(run.archive.state.feedback) == "fitness":
        run.archive.append(FeedbackGiven(who="--fitness judged", feedback=Judge(by="model")))

    def observe(entry: Any) -> None:
        if isinstance(entry, FeedbackGiven):
            fuse("told")
        if isinstance(entry, IterationEnded):
            fuse("ended")

    designer = ScriptedDesigner(SOURCES[known:], fuse=fuse)
    return ScriptedSearch(
        run,
        designer,
        TableTrials(TABLE, fuse),
        observer=observe,
        judge=lambda run, recorder: Judging(eye, run, camera, recorder),  # type: ignore[arg-type]
    )


def facts(run: Run) -> list[Any]:
    attempts = [(each.id, each.proposal.parents) for each in run.archive.attempts()]
    return [*attempts, *comparisons_of_model(run.archive.state.feedback)]


async def unbroken(run: Run) -> tuple[list[Any], Fuse, list[tuple[bytes, bytes]]]:
    fuse = Fuse()
    eye, camera = Eye(fuse), Camera(fuse)
    done = search(run, eye, camera, fuse)
    await done.see_through()
    assert set(camera.titles) == {"policy"}  # a picture names nobody
    return facts(run), fuse, eye.asked


async def test_parents_follow_the_eye_and_not_the_fitness(make_run: MakeRun) -> None:
    run = make_run(**SETTINGS)
    _, fuse, asked = await unbroken(run)
    # 6, 12 and 18 comparisons in all, of which at most four are asked together
    assert len(asked) == 18
    assert fuse.calls["told"] == 2 + 2 + 2
    by_generation = [run.archive.attempts(iteration) for iteration in range(3)]
    assert by_generation[1][0].proposal.parents[0] == "1-03"
    assert by_generation[2][0].proposal.parents[0] == "2-03"
    assert max(run.archive.attempts(), key=lambda each: each.fitness or -99.0).id == "1-01"


@pytest.mark.parametrize(
    ("kind", "number"),
    [
        *(("goals", 1), ("asked", 1), ("asked", 8), ("asked", 14)),
        *(("told", 1), ("told", 2), ("filmed", 5), ("trained", 5)),
    ],
)
async def test_killed_and_resumed_it_goes_on_as_the_unbroken_one(
    make_run: MakeRun, tmp_path: Path, kind: str, number: int
) -> None:
    expected, _, asked = await unbroken(make_run(**SETTINGS))
    run, fuse = make_run(**SETTINGS), Fuse(kind, number)
    eye = Eye(fuse)
    killed = False
    try:
        await search(run, eye, Camera(fuse), fuse).see_through()
    except* Killed:
        killed = True
    assert killed
    resumed, after = open_run(run.folder), Eye(Fuse())
    after.stored, after.goals_of = eye.stored, eye.goals_of
    await search(resumed, after, Camera(Fuse()), Fuse()).see_through()
    assert facts(resumed) == expected
    # sub-goals are asked for once, and hold for all comparisons
    assert len(after.goals_of) == 1
    assert eye.told | after.told == {*after.goals_of.values()}
    assert sub_goals_of(resumed.archive.state.feedback) == next(iter(after.goals_of.values()))
    # no question of the first process was asked in vain
    assert set(eye.asked) | set(after.asked) == set(asked)


@pytest.mark.parametrize(
    ("error", "why"),
    [(BudgetSpentError("spent"), ""), (LanguageModelError("the key is gone"), "the key is gone")],
)
async def test_a_judge_that_cannot_be_asked_ends_the_generations(
    make_run: MakeRun, error: Exception, why: str
) -> None:
    expected, _, _ = await unbroken(make_run(**SETTINGS))
    run, fuse = make_run(**SETTINGS), Fuse()
    eye = Eye(fuse)
    eye.fails_at = {8: error}  # in the second generation
    await search(run, eye, Camera(fuse), fuse).see_through()
    assert len(run.archive.attempts()) == 6
    assert why in run.archive.state.ended_early
    assert bool(run.archive.state.ended_early) == bool(why)
    assert run.archive.state.iterations_ended == {0}
    resumed = open_run(run.folder)
    eye.fails_at = {}
    await search(resumed, eye, Camera(fuse), fuse).see_through()
    assert facts(resumed) == expected
    assert resumed.archive.state.ended_early == ""
