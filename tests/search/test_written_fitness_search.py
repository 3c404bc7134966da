"""A search for a sentence that has no metric, on the real command line and a model behind real
HTTP: written, shown, accepted or not, kept."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import CommandLine
from model_server import Asked, ModelServer

from eureka_agent.archive.artefacts import stored_policy
from eureka_agent.archive.database import Archive
from eureka_agent.archive.run_folder import open_run
from eureka_agent.search.scoring import evaluation_summary, rescore

pytestmark = pytest.mark.slow

SENTENCE = "keep the puck fast"
SOURCE = """def compute_reward(puck_velocity, previous_puck_velocity):
    speed = 0.1 * puck_velocity.abs().clamp(0.0, 3.0)
    change = 0.01 * (puck_velocity - previous_puck_velocity).abs().clamp(0.0, 1.0)
    return speed + change, {"speed": speed, "change": change}
"""
WORDS = {"doc": "metres that the puck covers", "unit": "m", "reduction": "sum", "success": 2.5}
FITNESS = (
    f"Distance is speed by time.\n\n```python\n{SOURCE}```\n```json\n{json.dumps(WORDS)}\n```\n"
)
REWARD = (
    "Push.\n\n```python\ndef compute_reward(puck_velocity):\n    speed = puck_velocity.abs()\n   "
    " return speed, {'speed': speed}\n```\n"
)
OTHER_REWARD = (
    "Push on.\n\n```python\ndef compute_reward(puck_velocity):\n    power ="
    " puck_velocity.square()\n    return power, {'power': power}\n```\n"
)
WORDS_KEPT = {"sentence": SENTENCE, "unit": "m", "accepted": "accepted by --yes at the start"}
BY_YES = "fitness written by openai/tiny, accepted by --yes at the start"
BY_PERSON = "fitness written by openai/tiny, accepted by a person at the start"
QUESTION = "Take this fitness for the run? [y/N]"
Arguments = Callable[..., tuple[str, ...]]


ORDER = "Write the fitness function for the task."


class FitnessServer(ModelServer):
    """Writes a fitness where one is asked for; else its rewards one after the other, the last one
    again and again."""

    def __init__(self, fitness: str, *rewards: str) -> None:
        super().__init__(self.answer)
        self.fitness, self._rewards = fitness, list(rewards)

    def answer(self, asked: Asked) -> str:
        if any(ORDER in text for _, text in asked.turns):
            return self.fitness
        return self._rewards.pop(0) if len(self._rewards) > 1 else self._rewards[0]


class Searcher:
    """The command line, with a model of its own behind it."""

    def __init__(self, folder: Path, puck: Path, fitness: str, *rewards: str) -> None:
        self.server = FitnessServer(fitness, *rewards)
        self.eureka = CommandLine(folder)
        size = {"COLUMNS": "200", "LINES": "60"}
        self.eureka.environment |= {"OPENAI_API_KEY": "sk-secret-of-the-test", **size}
        self._puck = puck

    def search(self, *flags: str) -> tuple[str, ...]:
        text = (
            f"--env {self._puck} --fitness written --model openai/tiny --reviewer off --analyst off"
            f" --base-url {self.server.base_url} --iterations 1 --samples 1 --finalists 1"
            " --final-seeds 2 --no-novelty --env-steps 2048 --confirm 0"
        )
        return ("search", SENTENCE, *text.split(), *flags)

    @property
    def prompts(self) -> list[str]:
        """Every request so far, as text."""
        return [f"{asked.system}\n{asked.prompt}" for asked in self.server.requests]

    def runs(self) -> list[Path]:
        return [path.parent for path in (self.eureka.folder / "runs").glob("[!.]*/archive.sqlite")]


@pytest.fixture
def searcher(tmp_path: Path, puck: Path) -> Iterator[Searcher]:
    searcher = Searcher(tmp_path, puck, FITNESS, REWARD)
    yield searcher
    searcher.server.close()


@pytest.fixture(scope="module")
def found(
    tmp_path_factory: pytest.TempPathFactory, puck: Path
) -> Iterator[tuple[Searcher, dict[str, Any]]]:
    """One search that --yes let begin, for the tests that read it; and what it printed."""
    searcher = Searcher(tmp_path_factory.mktemp("found"), puck, FITNESS, REWARD, OTHER_REWARD)
    yield searcher, searcher.eureka.json(*searcher.search("--yes"))
    searcher.server.close()


Found = tuple[Searcher, dict[str, Any]]


def test_it_is_asked_for_once_and_told_nothing_of_the_environment_s_own_metric(
    found: Found,
) -> None:
    searcher, result = found
    fitness_prompt, reward_prompt = searcher.prompts[:2]
    assert SENTENCE in fitness_prompt
    assert "puck_velocity: Tensor" in fitness_prompt
    for hidden in ("within 0.1 m", "move the puck to the middle", "at_the_middle"):
        assert hidden not in fitness_prompt + reward_prompt
    # the designer is told the written one's words, and not its code
    assert "metres that the puck covers" in reward_prompt
    assert "clamp(0.0, 3.0)" not in reward_prompt
    assert result["status"] == "finished"
    assert result["task"]["fitness_doc"] == "metres that the puck covers"
    task = result["task"]
    assert (task["fitness_author"], task["fitness_origin"]) == ("openai/tiny", BY_YES)
    # the expert's reward is for another task; the sparse one is the fitness
    assert result["human"] is None
    assert len(result["sparse"]["seeds"]) == 2
    assert result["best"]["human_normalized"] is None


def test_the_run_folder_holds_it(found: Found) -> None:
    (folder,) = found[0].runs()
    assert (folder / "fitness.py").read_text() == SOURCE
    words = json.loads((folder / "fitness.json").read_text())
    assert {**words, **WORDS_KEPT} == words
    assert (folder / "baselines" / "sparse" / "reward.py").read_text() == SOURCE
    assert not (folder / "baselines" / "human").exists()
    # what it cost is in the run's own account
    run = open_run(folder)
    assert [message.role for message in run.archive.messages()].count("metric") == 1
    run.archive.close()


def test_a_policy_is_scored_by_it_also_when_the_run_is_over(found: Found, tmp_path: Path) -> None:
    searcher, _ = found
    (folder,) = searcher.runs()
    npz, by_hand = tmp_path / "two.npz", []
    run = open_run(folder, reading=True)
    again = asyncio.run(rescore(run, stored_policy(run, None), 5, 2, {}, npz))
    summary = evaluation_summary(again, run.description)
    with np.load(npz) as episodes:
        for name in ("worst", "best"):
            # 0 is the velocity after a reset, before the first step
            velocity = np.concatenate([[0.0], episodes[f"{name}/puck_velocity"]])
            speed = np.abs(velocity[1:]).clip(0.0, 3.0)
            change = np.abs(np.diff(velocity)).clip(0.0, 1.0)
            by_hand.append((0.1 * speed + 0.01 * change).sum())
            assert episodes[f"{name}/fitness"].sum() == pytest.approx(by_hand[-1], abs=1e-5)
    assert summary["mean"] == pytest.approx(np.mean(by_hand), abs=1e-5)
    assert summary["success_rate"] == np.mean([value >= 2.5 for value in by_hand])
    told = searcher.eureka.json("evaluate", str(folder), "--episodes", "2", "--seed", "5")
    assert told["mean"] == summary["mean"]
    assert (told["unit"], told["fitness_origin"]) == ("m", BY_YES)
    assert BY_YES in searcher.eureka("evaluate", str(folder), "--episodes", "1")


def one_line(text: str) -> str:
    return " ".join(text.split())


def test_everything_that_tells_a_score_says_once_whose_measure_it_is(
    found: Found, tmp_path: Path
) -> None:
    searcher, result = found
    (folder,) = searcher.runs()
    sentence = (
        f"F{BY_YES[1:]}: metres that the puck covers. The scores hold for that fitness only, and"
        " there is no human reward to compare them with."
    )
    report = (folder / "report.md").read_text()
    told = {
        "report": report,
        "show": searcher.eureka("show", str(folder)),
        "attempt": searcher.eureka("show", str(folder), result["best"]["id"]),
        "log": (folder / "log.txt").read_text(),
    }
    for name, text in told.items():
        assert one_line(text).lower().count(BY_YES) == 1, name
    for name in ("report", "show"):
        assert sentence in one_line(told[name])
    assert f"```python\n{SOURCE}```" in report
    runs = searcher.eureka("runs")
    assert re.search(r"± \S+ m \*", runs)
    assert "* by a fitness that a language model wrote" in runs
    searcher.eureka("export", str(folder), "--out", str(tmp_path / "out"))
    for name in ("README.md", "reward.py"):
        exported = (tmp_path / "out" / name).read_text().replace("# ", "")
        assert one_line(exported).count(BY_YES) == 1
    in_full = searcher.eureka.json("show", str(folder), result["best"]["id"])
    assert in_full["fitness_origin"] == BY_YES


def test_a_resumed_run_keeps_it_and_asks_nobody(found: Found) -> None:
    searcher, before = found
    (folder,) = searcher.runs()
    settings = folder / "settings.yaml"
    settings.write_text(settings.read_text().replace("iterations: 1", "iterations: 2"))
    shutil.rmtree(folder.parent / ".fitness")  # the run is all that is needed
    asked = len(searcher.server.requests)
    after = searcher.eureka.json("resume", str(folder))
    log = (folder / "log.txt").read_text().splitlines()
    # times go on where the first process ended
    (resumed,) = (float(line[1:].partition(" s]")[0]) for line in log if " resumes: " in line)
    assert resumed >= before["seconds"] - 0.1 > 0.0
    assert [f"{SENTENCE}\n" in prompt for prompt in searcher.prompts[asked:]] == [True]
    assert sum(ORDER in prompt for prompt in searcher.prompts) == 1
    assert after["task"] == before["task"]
    assert [entry["id"] for entry in after["attempts"]] == ["1-01", "2-01"]
    assert after["sparse"] == before["sparse"]  # not trained again
    assert (folder / "fitness.py").read_text() == SOURCE


def test_a_fitness_that_is_another_than_the_run_began_with_is_refused(
    found: Found, tmp_path: Path
) -> None:
    searcher, _ = found
    (folder,) = searcher.runs()
    copy = tmp_path / folder.name
    shutil.copytree(folder, copy)
    archive = Archive(copy)
    began = archive.state.began
    assert began.written_fitness is not None
    other = began.written_fitness.model_copy(update={"source": SOURCE.replace("3.0", "4.0")})
    archive.append(began.model_copy(update={"written_fitness": other}))
    archive.close()
    # not what was signed
    assert "run the fitness function in it" in searcher.eureka("resume", str(copy), status=2)
    assert "has changed since the run" in searcher.eureka("resume", str(copy), "--trust", status=2)


def test_without_a_terminal_it_is_kept_for_who_adds_yes(searcher: Searcher) -> None:
    errors = searcher.eureka(*searcher.search(), status=2)
    assert "there is no terminal to ask" in errors
    assert "--yes" in errors
    (kept,) = re.findall(r"'(\S*fitness\.py)'", errors)
    assert (searcher.eureka.folder / kept).read_text() == SOURCE
    assert searcher.runs() == []
    assert "no run in" in searcher.eureka("runs")  # the hidden folder is none


# ── at a terminal ─────────────────────────────────────────────────────────────────────────────────


class Terminal:
    """A command at a terminal of its own, and everything that it has shown."""

    def __init__(self, eureka: CommandLine, *arguments: str) -> None:
        self._own, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "eureka_agent.cli.main", *arguments],
            cwd=eureka.folder,
            env={**eureka.environment, "TERM": "xterm"},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        os.set_blocking(self._own, False)
        self._shown = b""

    @property
    def shown(self) -> str:
        """The text shown, without cursor moves or colours."""
        try:
            while chunk := os.read(self._own, 65536):
                self._shown += chunk
        except OSError:  # nothing more for now, or ever
            pass
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self._shown.decode(errors="replace"))

    def answer(self, text: str) -> None:
        os.write(self._own, text.encode())

    def until(self, text: str) -> None:
        wait_for(lambda: text in self.shown or self.process.poll() is not None, text)
        assert text in self.shown, self.shown

    def end(self) -> int:
        """Exit status."""
        wait_for(lambda: bool(self.shown) and self.process.poll() is not None, "end")
        status = self.process.returncode
        assert "Traceback" not in self.shown
        return status

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._own)


def wait_for(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 90.0
    while not condition():
        assert time.monotonic() < deadline, f"no {what!r} in time"
        time.sleep(0.02)


def test_a_person_who_declines_pays_once_and_leaves_no_run(searcher: Searcher) -> None:
    terminal = Terminal(searcher.eureka, *searcher.search())
    try:
        terminal.until(QUESTION)
        # what it measures, how, and what the critic remarks
        for part in ("metres that the puck covers", "2.50 m", "def compute_reward(puck_velocity"):
            assert part in terminal.shown
        terminal.answer("what?\n")
        terminal.until("y or n, please")
        terminal.answer("n\n")
        assert terminal.end() == 1
        last = [line for line in terminal.shown.splitlines() if line.strip()][-1]
        assert last.startswith("the fitness was not taken, and nothing was started")
        assert "error" not in terminal.shown
    finally:
        terminal.close()
    assert searcher.runs() == []
    assert len(searcher.server.requests) == 1
    # and again: the same fitness is shown, and nobody is asked for it; this time it is taken
    terminal = Terminal(searcher.eureka, *searcher.search())
    try:
        terminal.until(QUESTION)
        assert len(searcher.server.requests) == 1
        terminal.answer("y\n")
        terminal.until(f"{BY_PERSON}: metres that the puck covers")  # in the live view's head
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.end() == 130
    finally:
        terminal.close()
    (folder,) = searcher.runs()
    run = open_run(folder)
    assert run.fitness_origin == BY_PERSON
    run.archive.close()
    assert BY_PERSON in one_line(searcher.eureka("show", str(folder))).lower()


def test_a_model_that_writes_no_fitness_is_asked_four_times_and_then_told_of(
    searcher: Searcher,
) -> None:
    misspelt = json.dumps({**WORDS, "reduction": "median"})
    searcher.server.fitness = (
        f"```python\n{SOURCE.replace('puck_velocity', 'pukc_velocity')}```\n{misspelt}"
    )
    errors = searcher.eureka(*searcher.search("--yes"), status=2)
    assert len(searcher.server.requests) == 4
    assert (
        "openai/tiny wrote no fitness for 'keep the puck fast' that the critic accepts, in 4 tries"
        in errors
    )
    assert "C303 line 1: unknown variable 'pukc_velocity'" in errors
    assert "F705: 'reduction' in the JSON block is \"median\"" in errors
    assert searcher.runs() == []
