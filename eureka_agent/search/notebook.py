"""Functions of `eureka_agent` for notebooks and scripts: the commands of the same names, without a
terminal."""

from __future__ import annotations

import asyncio
import io
import os
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from eureka_agent.archive.artefacts import BEST, POLICY, stored_policy
from eureka_agent.archive.run_folder import Run, reading
from eureka_agent.critic.critic import judge_alone
from eureka_agent.designer.interface import GivenDesigner, given_reward
from eureka_agent.errors import SettingsError, did_you_mean
from eureka_agent.parameters import check_distribution, parse_distribution
from eureka_agent.records import Attempt, Verdict, WrittenFitness
from eureka_agent.report.as_json import best_to_json, to_json
from eureka_agent.report.live import LogFile
from eureka_agent.report.run_report import RunReport
from eureka_agent.report.screen import LastingConsole, Screen, shown
from eureka_agent.report.tables import render_end
from eureka_agent.search.scoring import evaluated
from eureka_agent.search.session import start, train_given
from eureka_agent.search.summary import run_report
from eureka_agent.search.trust import check_to_evaluate
from eureka_agent.search.written_fitness import Acceptance, nobody_to_ask
from eureka_agent.settings import OF_ONE_REWARD, SearchSettings, parse_settings

ResultT = TypeVar("ResultT")
ORIGIN = "the arguments"


@dataclass(frozen=True)
class BestReward:
    """The best reward of a run."""

    attempt: str
    source: str = field(repr=False)
    policy: Path | None
    """The best policy trained on it; None where there is none."""
    fitness: float | None
    """Mean over fresh seeds, in the task's unit; without finals over the search's own seeds."""


@dataclass(frozen=True)
class Finished:
    """A run that has ended."""

    run: str
    folder: Path
    best: BestReward | None
    """None where nothing was trained."""
    report: Mapping[str, Any] = field(repr=False)
    """The document of `eureka show RUN --format json` (docs/json.md)."""
    attempts: tuple[Attempt, ...] = field(repr=False)
    """All of the run, oldest first: each with its reward, verdict, outcome and diagnosis."""


def search(
    sentence: str | None = None, *, show: bool = False, yes: bool = False, **settings: Any
) -> Finished:
    """Search a reward function for the task that the sentence describes, as `eureka search` does.

    `settings` are its flags, with underscores: `env="hopper"`, `iterations=2`, `budget="10m"`.
    `show` shows what the command shows; `yes` takes the fitness of `fitness="written"` unread.
    Raises EurekaError, and KeyboardInterrupt once a search that Ctrl-C stops is saved.
    """
    values = _given({"sentence": sentence, **settings})

    async def confirm(fitness: WrittenFitness, verdict: Verdict, kept: Path) -> Acceptance:
        if not yes:
            raise nobody_to_ask(fitness, kept)
        return "accepted by --yes at the start"

    words = ["search", *([] if sentence is None else [sentence])]
    typed = _typed(words, {name: values[name] for name in values if name != "sentence"})
    return _watched(lambda screen: start(values, None, typed, screen, confirm), show)


def train(source: str, *, show: bool = False, **settings: Any) -> Finished:
    """Train the reward function with this source and score it, as `eureka train` does.

    `settings` and `show` are those of `search`. Raises EurekaError; a RewardRejectedError, with its
    `verdict`, where the critic rejects the reward.
    """
    for name in settings:
        if name not in OF_ONE_REWARD:
            what = f"train does not take the setting {name!r}"
            raise SettingsError(what, did_you_mean(name, OF_ONE_REWARD))
    values, given = _given(settings), GivenDesigner(given_reward(source), "the given source")
    typed = _typed(["train", "reward.py"], values)
    return _watched(lambda screen: train_given(values, given, typed, screen), show)


def critique(source: str, env: str | Path, task: str | None = None) -> Verdict:
    """The critic's verdict on the reward function with this source, as `eureka critique` gives it.
    Raises EurekaError where nothing can be checked."""
    settings = parse_settings(SearchSettings, _given({"env": env, "task": task}), ORIGIN)
    return _in_a_thread(lambda: judge_alone(source, settings))


def evaluate(
    run: str | Path = "latest",
    attempt: str | None = None,
    *,
    episodes: int = 64,
    seed: int = 0,
    parameters: str | None = None,
    trust: bool = False,
) -> dict[str, Any]:
    """Score the best policy of a run, or of an attempt, on fresh episodes: the document of
    `eureka evaluate --format json` (docs/json.md).

    `run` is a folder, a name, the beginning of one, or `latest`; `parameters` are those of the
    command, such as "mass=0.5..2". Raises EurekaError, also for a run that is not your own; `trust`
    takes that one at its word.
    """

    async def scored() -> dict[str, Any]:
        distribution = {} if parameters is None else parse_distribution(parameters)
        with reading(str(run)) as opened:
            described = opened.description
            check_distribution(distribution, described.parameters, described.environment)
            policy = stored_policy(opened, attempt)
            if not trust:
                check_to_evaluate(opened)
            return await evaluated(opened, attempt, policy, seed, episodes, distribution)

    return _in_a_thread(scored)


def _given(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that are not None, with paths as text."""
    return {
        name: os.fspath(value) if isinstance(value, os.PathLike) else value
        for name, value in settings.items()
        if value is not None
    }


def _typed(words: list[str], settings: Mapping[str, Any]) -> list[str]:
    """The command that does the same, for the run's record."""
    typed = ["eureka", *words]
    for name, value in settings.items():
        flag = name.replace("_", "-")
        several = value if isinstance(value, list | tuple) else (value,)
        if isinstance(value, bool):
            typed.append(f"--{flag}" if value else f"--no-{flag}")
        elif all(isinstance(each, str) for each in several):
            typed += [word for each in several for word in (f"--{flag}", each)]
        else:
            typed += [f"--{flag}", ",".join(map(str, several))]
    return typed


def _watched(work: Callable[[Screen], Coroutine[Any, Any, Run]], show: bool) -> Finished:
    console = LastingConsole() if show else LastingConsole(file=io.StringIO(), quiet=True)

    async def reported() -> RunReport:
        screen = Screen(console, LogFile())
        run = await shown(lambda: work(screen), screen)
        with closing(run.archive):
            return run_report(run)

    report = _in_a_thread(reported)
    console.print(render_end(report))
    best = None
    if report.best is not None and (told := best_to_json(report)) is not None:
        policy = report.folder / BEST / POLICY
        best = BestReward(
            attempt=report.best.id,
            source=report.best.proposal.reward.source,
            policy=policy if policy.is_file() else None,
            fitness=told["search_fitness"] if told["mean"] is None else told["mean"],
        )
    return Finished(report.run_name, report.folder, best, to_json(report), report.all_attempts)


def _in_a_thread(work: Callable[[], Coroutine[Any, Any, ResultT]]) -> ResultT:
    """Run a coroutine in a thread of its own: the caller's may run an event loop, as a notebook's
    does. Ctrl-C cancels the coroutine, and is raised when that has ended."""
    begun: Future[asyncio.Task[Any]] = Future()

    async def noted() -> ResultT:
        task = asyncio.current_task()
        assert task is not None  # this is a coroutine of asyncio.run
        begun.set_result(task)
        return await work()

    with ThreadPoolExecutor(1, "eureka") as thread:
        result = thread.submit(lambda: asyncio.run(noted()))
        try:
            return result.result()
        except KeyboardInterrupt:
            task = begun.result()
            with suppress(RuntimeError):  # its loop has just ended
                task.get_loop().call_soon_threadsafe(task.cancel)
            raise
