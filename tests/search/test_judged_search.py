"""`--fitness judged`: a model behind real HTTP compares pictures of what was trained, and its
answers lead the search."""

from __future__ import annotations

import base64
import io
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from model_server import Answer, Asked, HttpFailure, ModelServer, Reply, Stall
from PIL import Image
from test_refinement import ANOTHER, LEAVE, scripted
from test_refinement_with_a_model import DRAW, Reading, copied

from eureka_agent.analysis.standing import comparisons_of_model, preferences_of, what_ranks
from eureka_agent.archive.run_folder import Run
from eureka_agent.cli.refine import _list
from eureka_agent.errors import SettingsError
from eureka_agent.feedback_records import Comparison, Grade
from eureka_agent.journal.entries import BaseEntry, Notice
from eureka_agent.llm.interface import LanguageModelError
from eureka_agent.records import RunStatus, Stage
from eureka_agent.report.markdown import markdown
from eureka_agent.report.progress import leaderboard
from eureka_agent.report.verdict import verdict
from eureka_agent.search.board import newest, trained_names
from eureka_agent.search.refinement import Refinement
from eureka_agent.search.session import resume, start
from eureka_agent.search.summary import run_report
from eureka_agent.web.refine.forms import parts
from eureka_agent.web.run_page import run_page

pytestmark = pytest.mark.slow
QUESTION = "Which colour has the square"
ORDER = "Which one does the task better?"
SMALL = {"iterations": 2, "samples": 3, "env_steps": 2048, "num_envs": 16, "workers": 1}
SMALL |= {"evaluation_episodes": 4, "video": False, "reviewer": "off", "analyst": "off"}
SUB_GOALS = "First name the sub-goals"
GOALS = ["the puck leaves the middle", "the puck ends far out"]
ROW = 24 + 24 + 192
"""Height of an episode: its title, the times, the pictures."""


def pictures(asked: Asked) -> list[np.ndarray]:
    found = []
    for part in asked.body["messages"][-1]["content"][1:]:
        data = base64.b64decode(part["image_url"]["url"].partition(",")[2])
        with Image.open(io.BytesIO(data)) as image:
            found.append(np.asarray(image.convert("RGB")).astype(int))
    return found


def distance(picture: np.ndarray) -> float:
    """Mean distance of the puck from the middle at the end of its episodes, in pixels."""
    ends = [picture[place + 48 : place + ROW, 5 * 256 :] for place in range(0, 3 * ROW, ROW)]
    found = []
    for end in ends:
        red = (end[..., 0] > 180) & (end[..., 1] < 90) & (end[..., 2] < 90)
        found.append(abs(float(np.nonzero(red)[1].mean()) - 127.5) if red.any() else 128.0)
    return float(np.mean(found))


class Judge(Reading):
    """A model that designs, and prefers the policy whose puck ends further from the middle, which
    the task's own fitness would not."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[Asked] = []
        self.colours = 0
        self.goals: list[Asked] = []
        self.goals_reply: Answer = f'```json\n{{"sub_goals": {GOALS}}}\n```'
        self.colour = "It is yellow."
        self.fails: Callable[[int], Any] = lambda number: None
        """The answer to the so manieth comparison, where it is another one."""

    def __call__(self, asked: Asked) -> Any:
        order = asked.turns[-1][1]
        if QUESTION in order:
            self.colours += 1
            return Reply(text=self.colour)
        if SUB_GOALS in order:
            self.goals.append(asked)
            return self.goals_reply
        if ORDER not in order:
            return super().__call__(asked)
        self.asked.append(asked)
        if (failure := self.fails(len(self.asked))) is not None:
            return failure
        first, second = map(distance, pictures(asked))
        better = "first" if first > second else "second"
        grades = '"first": [2, 1], "second": [1, 2], '
        return Reply(text=f'One is out.\n\n```json\n{{{grades}"better": "{better}"}}\n```')


class Searcher:
    """Starts judged searches, and keeps what was told."""

    def __init__(self, folder: Path, server: ModelServer) -> None:
        self.folder, self.server = folder, server
        self.notices: list[str] = []

    def __call__(self, entry: BaseEntry) -> None:
        if isinstance(entry, Notice):
            self.notices.append(entry.text)

    async def start(self, **changes: Any) -> Run:
        values = {"env": str(self.folder), "sentence": "bring the puck far out", **SMALL}
        models = {"model": ["openai/test"], "judge": "openai/eye", "fitness": "judged"}
        values |= {**models, "base_url": self.server.base_url, **changes}
        return await start(values, None, ["eureka", "search"], self)


@pytest.fixture
def judge() -> Judge:
    return Judge()


@pytest.fixture
def searcher(
    judge: Judge, puck: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Searcher]:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setenv("EUREKA_RUNS", str(tmp_path / "runs"))
    with ModelServer(judge) as server:
        yield Searcher(copied(puck, tmp_path / "puck", DRAW), server)


def trained(run: Run) -> list[str]:
    return [each.id for each in run.archive.attempts() if each.stage is Stage.TRAINED]


async def test_a_model_s_eye_leads_a_search(searcher: Searcher, judge: Judge) -> None:
    run = await searcher.start()
    attempts, feedback = run.archive.attempts(), run.archive.state.feedback
    compared = comparisons_of_model(feedback)
    assert judge.colours == 1
    assert {each.fitness for each in attempts if each.stage is Stage.TRAINED} == {0.0}
    # two pictures of three episodes with six moments each, and nothing else but the sentence
    (goals,) = judge.goals
    assert [each.shape for each in pictures(goals)] == [(3 * ROW, 6 * 256, 3)]
    told = f"by the sub-goals (1) {GOALS[0]}; (2) {GOALS[1]}"
    for asked in judge.asked:
        assert f"1. {GOALS[0]}\n2. {GOALS[1]}" in asked.turns[-1][1]
        assert asked.model == "eye"
        assert [each.shape for each in pictures(asked)] == [(3 * ROW, 6 * 256, 3)] * 2
        text = f"{asked.system} {asked.turns[-1][1]}"
        assert "bring the puck far out" in text
        for told in (*trained(run), "def compute_reward", "puck_position", "fitness"):
            assert told not in text
    # every attempt at least once, two comparisons for each, none twice in the same order
    assert len(judge.asked) == len(compared) == 2 * len(trained(run))
    assert {name for each in compared for name in (each.first, each.second)} == set(trained(run))
    assert len({(each.first, each.second) for each in compared}) == len(compared)
    # what it prefers is the parent of the next generation
    first = [each for each in attempts if each.iteration == 0 and each.stage is Stage.TRAINED]
    out = {each.id: distance(pictures_of(run, each.id)) for each in first}
    for each in run.archive.attempts(1):
        assert not each.proposal.parents or each.proposal.parents[0] == max(out, key=out.get)  # type: ignore[arg-type]
    assert any(each.proposal.parents for each in run.archive.attempts(1))
    assert any("# What ranks the attempts" in order for order in judge.designs)
    report = run_report(run)
    assert report.best is not None
    assert report.best.id == preferences_of(attempts, feedback, "model").in_order()[0][0]
    # and every place says whose word it is
    said = verdict(report)
    assert "judged by openai/eye in" in said.best
    assert "no baseline" in said.against
    assert "strengths are judged by openai/eye from pictures" in run.fitness_origin
    for page in (markdown(report), run_page(report)):
        assert "openai/eye judged" in page
        assert told in page
        assert "fitness 0" not in page
    roles = Counter(message.role for message in run.archive.messages())
    assert roles["judge"] == len(judge.asked) + 2


def pictures_of(run: Run, name: str) -> np.ndarray:
    with Image.open(run.folder / "attempts" / name / "judged.jpg") as image:
        return np.asarray(image.convert("RGB")).astype(int)


async def test_a_judge_that_goes_away_ends_the_search_and_is_asked_for_what_is_missing(
    searcher: Searcher, judge: Judge
) -> None:
    judge.fails = lambda number: HttpFailure(401, "revoked") if number > 3 else None
    run = await searcher.start(iterations=1)
    assert run.status is RunStatus.FINISHED
    assert "does not accept the key" in run.archive.state.ended_early
    assert run.archive.state.iterations_ended == set()
    stored = sum(each.role == "judge" for each in run.archive.messages())
    judge.fails = lambda number: None
    before = len(judge.asked)
    run = await resume(run.folder, searcher)
    compared = comparisons_of_model(run.archive.state.feedback)
    assert len(compared) == 2 * len(trained(run))
    # the three that came were not asked again, and neither were colour and sub-goals
    assert len(judge.asked) - before == len(compared) + 2 - stored
    assert judge.colours == len(judge.goals) == 1
    assert run.archive.state.ended_early == ""
    asked = len(judge.asked)
    await resume(run.folder, searcher)
    assert len(judge.asked) == asked


async def test_replies_that_say_nothing_count_for_nothing(searcher: Searcher, judge: Judge) -> None:
    contradiction = '{"first": [2, 2], "second": [2, 1], "better": "second"}'
    answers = {1: "Both wobble.", 2: Reply(text="No.", ending="refused"), 3: contradiction}
    judge.fails = answers.get
    judge.goals_reply = "First it moves, then it is far out."
    run = await searcher.start(iterations=1)
    compared = comparisons_of_model(run.archive.state.feedback)
    # without sub-goals there is nothing to contradict
    assert sum(each.grade is None for each in compared) == 2
    assert not any("sub-goals" in asked.turns[-1][1] for asked in judge.asked)
    unread = "openai/eye judges without sub-goals: the reply holds no sub-goals"
    assert searcher.notices.count(unread) == 1
    judge.fails = lambda number: None
    run = await resume(run.folder, searcher, {"iterations": 2})
    assert len(judge.goals) == 1  # that there are none was recorded, too
    faults = [each for each in searcher.notices if "cannot tell" in each]
    assert sorted(each.partition(": ")[2] for each in faults) == [
        "the model refused to answer: 'No.'",
        "the reply holds no grade: first, second, alike or cannot tell",
    ]


async def test_late_and_contradicting_replies_count_for_their_own_pair(
    searcher: Searcher, judge: Judge
) -> None:
    contradiction = 'So:\n```json\n{"first": [2, 2], "second": [2, 1], "better": "second"}\n```'
    first_better = '{"first": [0, 0], "second": [0, 0], "better": "first"}'

    def answer(number: int) -> Answer | None:
        if number == 2:  # it overtakes the first one
            searcher.server.release()
            return contradiction
        return Stall(first_better) if number == 1 else None

    judge.fails = answer
    run = await searcher.start(iterations=1)
    compared = comparisons_of_model(run.archive.state.feedback)
    late, contradicting = (pair_of(run, asked) for asked in judge.asked[:2])
    grades = {(each.first, each.second): each.grade for each in compared}
    assert grades[late] == 1
    assert [pair for pair, grade in grades.items() if grade is None] == [contradicting]
    (fault,) = [each for each in searcher.notices if "cannot tell" in each]
    assert fault.startswith(f"openai/eye cannot tell {contradicting[0]} from {contradicting[1]}: ")
    assert fault.endswith("it grades them [2, 2] and [2, 1], and calls 'second' better")


def pair_of(run: Run, asked: Asked) -> tuple[str, str]:
    """The attempts whose pictures a comparison shows."""
    known = {pictures_of(run, name).tobytes(): name for name in trained(run)}
    first, second = (known[each.tobytes()] for each in pictures(asked))
    return first, second


@pytest.mark.parametrize(
    ("changes", "colour", "message", "hint"),
    [
        ({"model": ["offline"]}, "", "needs a language model that sees", "--judge"),
        ({"schedule": "steady"}, "", "goes with generations, found --schedule 'steady'", "leave"),
        ({}, "It is blue.", "does not see: shown a yellow square", "--judge"),
    ],
)
async def test_nobody_who_sees_is_told_before_anything_is_trained(
    searcher: Searcher,
    judge: Judge,
    changes: dict[str, Any],
    colour: str,
    message: str,
    hint: str,
) -> None:
    judge.colour = colour
    if "model" in changes:
        changes = {**changes, "judge": "auto", "base_url": None}
    with pytest.raises((SettingsError, LanguageModelError), match=message) as caught:
        await searcher.start(**changes)
    assert hint in caught.value.hint
    assert not list((searcher.folder.parent / "runs").glob("[!.]*"))


async def test_a_person_goes_on_and_is_told_how_far_the_model_agrees(
    searcher: Searcher, judge: Judge, capsys: pytest.CaptureFixture[str]
) -> None:
    said = "it agrees with your choices in 4 of 5"
    run = await searcher.start(iterations=1)
    order = [
        name
        for name, _, _ in preferences_of(
            run.archive.attempts(), run.archive.state.feedback, "model"
        ).in_order()
    ]
    before = len(judge.asked)

    async def contradict(refinement: Refinement) -> None:
        def compare(first: str, second: str, grade: Grade) -> None:
            refinement.say(Comparison(first=first, second=second, grade=grade))

        # four answers as the model's, one against it, one that says nothing
        for _ in range(4):
            compare(order[0], order[1], 1)
        compare(order[0], order[1], 0)
        assert "agrees" not in markdown(run_report(refinement.run))
        compare(order[0], order[1], -2)
        assert what_ranks(refinement.run.archive.state.feedback) == "model"
        assert trained_names(refinement.run) == order
        assert "is much worse than" in refinement.undo()
        compare(order[1], order[0], 1)
        refinement.say(ANOTHER)

    async def look(refinement: Refinement) -> None:
        run, state = refinement.run, refinement.run.archive.state
        # the new ones are judged before the person sees them
        assert len(comparisons_of_model(state.feedback)) == 2 * len(trained(run))
        assert newest(state)[0].iteration == 1
        session: Any = SimpleNamespace(name=run.name, refinement=refinement)
        board = parts(session, ["board"])["board"]
        await _list(refinement, ())
        best = preferences_of(state.attempts(), state.feedback, "model")
        mean, deviation = best.strength(trained_names(run)[0])
        for text in (board, " ".join(capsys.readouterr().out.split())):
            assert "ranked by openai/eye, from pictures" in text
            assert said in text
            assert f"{mean:+.2f} ± {deviation:.2f}" in text
            assert "fitness 0" not in text
        refinement.say({"kind": "judge", "by": "choices"})
        strength = leaderboard(state)[0].strength
        assert strength is not None
        assert strength.by == "choices"
        refinement.say({"kind": "judge", "by": "model"})
        refinement.say(LEAVE)

    run = await resume(run.folder, searcher, person=scripted(contradict, look))
    assert len(judge.asked) > before
    report = run_report(run)
    for page in (markdown(report), run_page(report), (run.folder / "report.html").read_text()):
        assert said in page
