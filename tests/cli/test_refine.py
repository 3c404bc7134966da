"""`eureka refine` in a real terminal: words, choices and an edited reward, and a kill."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import av
import pexpect
import pytest
from command_line import CommandLine

from eureka_agent.analysis.trajectories import read_trajectories
from eureka_agent.archive.run_folder import open_run
from eureka_agent.feedback_records import Comparison, Edit, Mark, Wish
from eureka_agent.records import Operator
from eureka_agent.value_ranges import short_number

ENVIRONMENT = Path(__file__).parents[2] / "envs/_templates/torch"
PROMPT = "refine> "
pytestmark = pytest.mark.slow
SEARCH = (
    *("search", "--env", "./puck", "--iterations", "1", "--samples", "2", "--finalists", "0"),
    *("--confirm", "0", "--env-steps", "2048", "--num-envs", "16", "--evaluation-episodes", "4"),
)


@pytest.fixture(scope="module")
def eureka(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    folder = tmp_path_factory.mktemp("refine")
    shutil.copytree(ENVIRONMENT, folder / "puck", ignore=shutil.ignore_patterns("__pycache__"))
    found = CommandLine(folder)
    found(*SEARCH)
    return found


class Terminal:
    """A session of the command in a terminal."""

    def __init__(self, eureka: CommandLine, editor: str = "true") -> None:
        environment = {**eureka.environment, "EDITOR": editor, "NO_COLOR": "1"}
        self.process = pexpect.spawn(
            sys.executable,
            ["-m", "eureka_agent.cli.main", "refine", str(eureka.run_folder())],
            cwd=str(eureka.folder),
            env=environment,
            dimensions=(60, 200),
            encoding="utf-8",
            timeout=90,
            echo=False,
        )

    def until(self, text: str) -> str:
        """The output before a text, without styles and line ends."""
        self.process.expect_exact(text)
        return " ".join(re.sub(r"\x1b\[[0-9;]*m", "", str(self.process.before)).split())

    def tell(self, text: str, then: str = PROMPT) -> str:
        """Type a line; the output until the next question."""
        self.process.sendline(text)
        return self.until(then)

    def quit(self) -> None:
        self.process.sendline("quit")
        self.process.expect(pexpect.EOF)
        self.process.close()
        assert self.process.exitstatus == 0


@pytest.fixture
def terminal(eureka: CommandLine) -> Iterator[Terminal]:
    # an editor that changes the first constant
    editor = "sed -i '0,/_WEIGHT = /s/_WEIGHT = .*/_WEIGHT = 0.123/'"
    found = Terminal(eureka, editor)
    yield found
    found.process.close(force=True)


def test_words_choices_and_an_edit_refine_a_run(eureka: CommandLine, terminal: Terminal) -> None:
    greeting = terminal.until(PROMPT)
    assert "2 trained attempts, ranked by fitness" in greeting
    assert "mark ATTEMPT SECOND" in terminal.tell("help")
    # choices: an answer, its undoing, another answer
    terminal.tell("pair", "Which is better?")
    terminal.tell("9", "Which is better?")
    terminal.tell("1", "Which is better?")
    terminal.tell("u", "Which is better?")
    terminal.tell("5", "Which is better?")
    terminal.tell("q")
    terminal.tell("best", "- for none)")
    assert "1-02 is best, none is worst" in terminal.tell("1-02")
    assert "counts no more" in terminal.tell("undo")
    # words, with a reading that is corrected first
    terminal.tell("say", "What did you see?")
    terminal.tell("it overshoots \x1b[31m", "What do you want changed?")
    reading = terminal.tell("use less effort", "Right?")
    assert "I take this as" in reading
    terminal.tell("n", "What do you mean?")
    terminal.tell("less energy", "Right?")
    assert "recorded as" in terminal.tell("y")
    # an edit
    assert "accepted" in terminal.tell("edit 1-01")
    marked = terminal.tell("mark 1-01 0.25 too fast")
    assert re.search(r"recorded as \d+: .* marks 1-01 at 0.25 s: too fast; step 5 of \d+: ", marked)
    # what is wrong is told in a line, and nothing is lost
    assert "there is no 'dance'" in terminal.tell("dance")
    assert "'9-99' is no trained attempt" in terminal.tell("see 9-99")
    assert "expected an attempt and a second" in terminal.tell("mark 1-01 soon")
    assert "no standing feedback 1" in terminal.tell("withdraw 1")
    assert "cannot read this" in terminal.tell('see "1-01')
    listed = terminal.tell("train")
    assert "4 trained attempts" in listed
    terminal.quit()

    run = open_run(eureka.run_folder(), reading=True)
    said = [each.feedback for each in run.archive.state.feedback]
    kinds = [type(each) for each in said]
    assert kinds == [Comparison, Wish, Edit, Mark]
    comparison, wish, edit, _ = said
    assert isinstance(comparison, Comparison)
    assert comparison.grade == -2
    assert isinstance(wish, Wish)
    assert "\x1b" not in wish.saw
    assert wish.reading is not None
    own, other = run.archive.attempts(1)
    assert own.proposal.operator is Operator.EDIT
    assert isinstance(edit, Edit)
    assert own.proposal.reward.source == edit.source
    assert "_WEIGHT = 0.123" in edit.source
    assert "wishes" in other.proposal.reasoning
    events = eureka("show", str(run.folder), "--events")
    for part in (
        "is much worse than",
        "wants: use less effort (that is: less energy)",
        "gives a reward made from 1-01",
    ):
        assert part in events
    document = json.loads(eureka("show", str(run.folder), "--format", "json"))
    assert document["status"] == "finished"


def test_a_killed_session_goes_on_with_all_that_was_said(eureka: CommandLine) -> None:
    first = Terminal(eureka)
    first.until(PROMPT)
    first.tell("say", "What did you see?")
    first.tell("", "What do you want changed?")
    first.tell("a small distance from the goal", "Right?")
    first.tell("y")
    os.kill(first.process.pid, signal.SIGKILL)
    first.process.wait()
    second = Terminal(eureka)
    greeting = second.until(PROMPT)
    assert "wants: a small distance from the goal" in greeting
    assert "takes another session" not in greeting
    second.quit()


def test_clips_show_three_starts_and_a_mark_tells_one_of_them(eureka: CommandLine) -> None:
    terminal = Terminal(eureka)
    terminal.until(PROMPT)
    seen = terminal.tell("see 1-01")
    path = Path(re.search(r"1-01\s+(\S+\.mp4)", seen)[1])  # type: ignore[index]
    with av.open(str(path)) as container:
        frame = next(container.decode(video=0))
    assert frame.width == 3 * 320 + 2 * 4  # side by side, without fitness or terms below
    assert frame.height == 24 + 240 + 24
    states = read_trajectories(path.with_suffix(".npz"))
    first = int(min(states, key=lambda name: int(name[2:]))[2:])
    told = terminal.tell("mark 1-01 0.25:3")
    # the fifth step of 0.05 s, in the third start state
    x, y = states[f"0-{first + 2}"]["position"][4]
    assert f"position {short_number(float(x))}, {short_number(float(y))}" in told
    assert "no place in a clip" in terminal.tell("mark 1-01 0.25:4")
    assert "no place in a clip" in terminal.tell("mark 1-01 -1")
    terminal.quit()
