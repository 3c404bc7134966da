"""The bench at which a run is asked: that of a search, whose models call its tools, and one with
workers of its own."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from eureka_agent.archive.files import write_file
from eureka_agent.archive.run_folder import Run
from eureka_agent.archive.safe_files import inside
from eureka_agent.critic.critic import Critic
from eureka_agent.designer.interface import ToolResult
from eureka_agent.errors import EurekaError
from eureka_agent.fleet.dry_runner import DryRunner
from eureka_agent.fleet.evaluator import Evaluator
from eureka_agent.fleet.jobs import Problem
from eureka_agent.fleet.warm_worker import FilmMaker
from eureka_agent.journal.entries import Observer, ToolAnswered
from eureka_agent.llm.interface import ImagePart
from eureka_agent.llm.tool_calls import arguments_of
from eureka_agent.records import Attempt, ToolCall
from eureka_agent.sandbox.choose import choose_wall
from eureka_agent.search.drafts import RunMemory
from eureka_agent.search.seeds import derive_seed
from eureka_agent.search.seeing import sheet_of
from eureka_agent.tools.bench import Bench
from eureka_agent.tools.definitions import bounded, call, tools_of

TIMEOUT_S = 30.0
PICTURES = "frames"
"""Folder of the pictures that models asked for."""


def bench_of(
    run: Run, runner: DryRunner, evaluator: Evaluator, critic: Critic, maker: FilmMaker | None
) -> Bench:
    """The bench of a run with these workers. `maker` draws pictures; None: there are none."""

    async def play(attempt: Attempt, policy: Path, path: Path) -> None:
        seed, episodes = derive_seed("evaluation", attempt.seed), run.settings.evaluation_episodes
        await evaluator.evaluate(policy, seed, episodes, path, recorded="all")

    async def photograph(attempt: Attempt, moments: Sequence[float]) -> ImagePart:
        assert maker is not None
        return await sheet_of(run, attempt.id, maker, moments)

    memory = RunMemory(run, in_order=False)
    return Bench(run, runner, critic, memory.now, play, photograph if maker is not None else None)


@asynccontextmanager
async def opened_bench(run: Run) -> AsyncIterator[Bench]:
    """A bench with workers of its own, which start when they are needed."""
    with tempfile.TemporaryDirectory(prefix="eureka-") as scratch:
        problem = Problem(run.settings.env, run.description.task, run.written_fitness)
        wall, folder = choose_wall(run.settings.sandbox), Path(scratch)
        runner = DryRunner(wall, problem, folder / "asked", TIMEOUT_S)
        evaluator = Evaluator(wall, problem, folder / "evaluated")
        maker = FilmMaker(wall, problem, folder / "filmed")
        try:
            critic = Critic(run.description, runner, design=run.settings.design)
            yield bench_of(run, runner, evaluator, critic, maker)
        finally:
            await runner.close()
            await evaluator.close()
            await maker.close()


class RunTools:
    """The tools of a search's designers. Each answer is recorded before a model reads it, so that a
    resumed run tells the same."""

    def __init__(self, bench: Bench, observer: Observer) -> None:
        self._bench, self._observer = bench, observer
        # a draft of an observation alone is paid nothing
        left_out = "try_reward" if bench.run.settings.design == "observation" else ""
        self.specs = tuple(each.spec for each in tools_of(bench) if each.name != left_out)

    async def answer(self, attempt: str, key: str, call: ToolCall) -> ToolResult:
        """The recorded answer to this call, or a new one; what has none is told why."""
        known = self._bench.run.archive.state.answers.get(key)
        if known is None:
            text, pictures = await self._called(key, call)
            known = ToolAnswered(attempt=attempt, key=key, call=call, text=text, pictures=pictures)
            self._observer(known)
        return ToolResult(known.text, tuple(map(self._picture, known.pictures)))

    async def _called(self, key: str, asked: ToolCall) -> tuple[str, tuple[str, ...]]:
        try:
            answer = await call(self._bench, asked.name, arguments_of(asked))
        except EurekaError as error:
            hint = f" ({error.hint})" if error.hint else ""
            return bounded(f"No answer: {error.message}{hint}"), ()
        names = []
        for place, picture in enumerate(answer.pictures()):
            names.append(f"{PICTURES}/{key[:16]}-{place}.jpg")
            path = inside(self._bench.run.folder, names[-1])
            path.parent.mkdir(exist_ok=True)
            write_file(path, partial(Path.write_bytes, data=picture.data))
        return bounded(answer.text()), tuple(names)

    def _picture(self, name: str) -> ImagePart:
        return ImagePart(inside(self._bench.run.folder, name).read_bytes(), name)
