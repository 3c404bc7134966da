"""The tools that agents get: all that a run can be asked, trainings within a budget."""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, create_model
from pydantic_core import PydanticCustomError

from eureka_agent.agents.budget import AgentBudget, state_of
from eureka_agent.agents.children import POLL_S, Child, printed, words
from eureka_agent.archive.files import is_held
from eureka_agent.archive.run_folder import Run, list_runs, open_run, runs_folder
from eureka_agent.base_record import Record
from eureka_agent.designer.interface import given_reward
from eureka_agent.errors import RunFolderError, did_you_mean
from eureka_agent.llm.interface import ImagePart
from eureka_agent.records import NOT_ASKED, Operator, RunStatus
from eureka_agent.report.as_json import attempt_to_json
from eureka_agent.report.progress import (
    env_steps_done,
    env_steps_total,
    leaderboard,
    phase,
    trainings_done,
    trainings_to_come,
)
from eureka_agent.search.asking import opened_bench
from eureka_agent.search.estimator import Estimator
from eureka_agent.text import printable
from eureka_agent.tools.bench import Bench, ToolAnswer, ToolError
from eureka_agent.tools.definitions import (
    FRAMES,
    TOOLS,
    Tool,
    bounded,
    checked_arguments,
    tool_named,
)

KEPT_BENCHES = 2
"""Runs whose workers stay warm, each with up to three of them."""
LONGEST_WAIT_S, STOPPING_S = 60.0, 60.0
CHANGING = frozenset({"search", "propose", "stop"})
"""Tools that are more than questions."""


def _plain(value: str) -> str:
    """A word for a command line. Raises a pydantic error for one that looks like an option."""
    if value.startswith("-") or printable(value) != value:
        raise PydanticCustomError("word", "must not begin with '-' or hold invisible characters")
    return value


Word = Annotated[str, AfterValidator(_plain), Field(max_length=4000)]


class NoArguments(Record):
    """The tool takes none."""


class RunArguments(Record):
    run: Word = Field(description="name of a run, or latest")


class ShowArguments(RunArguments):
    attempt: Word = Field("", description="id of an attempt, to see it in full")


class BriefArguments(RunArguments):
    parent: Word = Field("", description="id of a trained attempt; default: the best")
    operator: Word = Field(
        "",
        description="what to do: "
        + ", ".join(it.value.replace("_", "-") for it in Operator if it not in NOT_ASKED),
    )


class SearchArguments(Record):
    sentence: Word = Field(description="the task in plain words")
    env: Word = Field(description="name of an environment")
    task: Word = Field("", description="name of a task; default: the first one")
    iterations: int | None = Field(
        None, description="generations, 2 by default; 0 trains the baselines alone"
    )
    samples: int | None = Field(None, description="proposals of a generation, 8 by default")
    env_steps: int | None = Field(None, description="of one training; default: the task's")
    seed: int | None = None


class ProposeArguments(RunArguments):
    source: str = Field(description="the whole reward function as Python code")
    parent: Word = Field("", description="id of the attempt that it was made from")
    why: Word = Field("", description="reasoning, for the report")


class WaitArguments(RunArguments):
    seconds: float = Field(30.0, ge=0.0, le=LONGEST_WAIT_S)


class AgentAnswer(ToolAnswer):
    """The text that an agent reads, and pictures."""

    told: str
    shown: tuple[ImagePart, ...] = ()

    def text(self) -> str:
        return self.told

    def pictures(self) -> tuple[ImagePart, ...]:
        return self.shown


def _json(**document: object) -> AgentAnswer:
    return AgentAnswer(told=json.dumps(document))


@dataclass
class KeptBench:
    bench: Bench
    stack: AsyncExitStack
    users: int = 0


class AgentService:
    """Answers the calls of one agent. An async context manager: it ends its workers at its end."""

    def __init__(
        self,
        budget: AgentBudget,
        settings: Mapping[str, Any],
        built_in: Collection[str],
        own: Mapping[str, str],
        trust: Callable[[Run], None],
    ) -> None:
        """`settings`: of every search; `built_in` and `own`: environments by name, the user's with
        their places; `trust` raises EurekaError for a run that is not the user's."""
        self._budget, self._settings, self._trust = budget, settings, trust
        self._environments = {**{name: name for name in built_in}, **own}
        self._own = tuple(own)
        self._benches: dict[str, KeptBench] = {}
        self._stack = AsyncExitStack()
        self._starting = asyncio.Lock()
        self._number = count()

    async def __aenter__(self) -> AgentService:
        scratch = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="eureka-"))
        self._scratch = Path(scratch)
        return self

    async def __aexit__(self, *error: object) -> None:
        for each in self._benches.values():
            await each.stack.aclose()
        await self._stack.aclose()

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolAnswer:
        """Call a tool. Raises EurekaError, with a reason that an agent can act on."""
        tool = tool_named(name, AGENT_TOOLS)
        return await tool.run(self, checked_arguments(tool, arguments))

    # ── reading ───────────────────────────────────────────────────────────────────────────────────

    async def environments(self, asked: NoArguments) -> AgentAnswer:
        document = json.loads(await printed(words("envs", format="json")))
        return _json(**document, own=self._own)

    async def runs(self, asked: NoArguments) -> AgentAnswer:
        return AgentAnswer(told=await printed(words("runs", format="json")))

    async def show(self, asked: ShowArguments) -> AgentAnswer:
        attempt = [asked.attempt] if asked.attempt else []
        folder = str(self._folder(asked.run))
        return AgentAnswer(told=await printed(words("show", folder, *attempt, format="json")))

    async def brief(self, asked: BriefArguments) -> AgentAnswer:
        options = {"parent": asked.parent, "operator": asked.operator, "format": "json"}
        folder = str(self._folder(asked.run))
        return AgentAnswer(told=await printed(words("brief", folder, **options)))

    @asynccontextmanager
    async def bench(self, word: str) -> AsyncIterator[Bench]:
        """The bench of a run, with workers that stay warm."""
        folder = self._folder(word)
        if (kept := self._benches.pop(folder.name, None)) is None:
            run, stack = open_run(folder, reading=True), AsyncExitStack()
            stack.callback(run.archive.close)
            self._trust(run)
            kept = KeptBench(await stack.enter_async_context(opened_bench(run)), stack)
        self._benches[folder.name] = kept  # the last one used comes last
        kept.users += 1
        try:
            yield kept.bench
        finally:
            kept.users -= 1
            for name, each in list(self._benches.items()):
                is_old = each.bench.run.archive.stands_still
                if not each.users and (is_old or len(self._benches) > KEPT_BENCHES):
                    await self._benches.pop(name).stack.aclose()

    # ── training ──────────────────────────────────────────────────────────────────────────────────

    async def search(self, asked: SearchArguments) -> AgentAnswer:
        """Start a search; answers once its run is there."""
        if asked.env not in self._environments:
            hint = did_you_mean(asked.env, self._environments)
            raise ToolError(f"there is no environment {asked.env!r}", hint)
        given = {name: value for name, value in dict(asked).items() if value not in (None, "")}
        # a further round would train more than is reserved
        given |= {"env": self._environments[asked.env], "retry_rounds": 0, **self._settings}
        async with self._starting:
            limit = None
            if self._settings.get("model", ("offline",)) != ("offline",):
                limit = self._budget.money_left()
            given |= {} if limit is None else {"max_cost": limit}
            async with Estimator() as estimator:
                plan = await estimator.plan(given, timed=False)
            trainings = plan.counts.most(plan.settings.iterations)
            each = plan.settings.steps_of_a_training
            with self._budget.reserved(trainings * each) as begun:
                begun.max_cost, sentence = limit, given.pop("sentence")
                begun.child = self._child(words("search", sentence, **given, format="json"))
                begun.folder = runs_folder() / await begun.child.run_name()
        return _json(
            run=begun.folder.name,
            trainings_at_most=trainings,
            env_steps_of_a_training=each,
            notes=plan.notes,
            budget_left=self._budget.left,
        )

    async def propose(self, asked: ProposeArguments) -> AgentAnswer:
        """Have a reward judged, and start its training where the critic accepts it."""
        async with self._starting:
            folder = self._folder(asked.run)
            begun = self._budget.of(folder.name)
            if self._works_on(folder):
                raise ToolError(f"the run {folder.name!r} trains", "`wait` for it, or `stop` it")
            async with self.bench(folder.name) as bench:
                settings = bench.run.settings
                self._budget.check_models(folder.name, settings)
                if asked.parent:
                    bench.attempt(asked.parent)
                verdict = await bench.critic.judge(given_reward(asked.source))
            findings = [each.model_dump(mode="json") for each in verdict.findings]
            if not verdict.accepted:
                return _json(run=folder.name, accepted=False, findings=findings)
            state = state_of(folder)
            left = begun is None and state.status is not RunStatus.FINISHED
            trainings = 1 + (trainings_to_come(state) if left else 0)
            source = self._scratch / f"reward-{next(self._number)}.py"
            source.write_text(asked.source, encoding="utf-8", errors="replace")
            with self._budget.reserved(trainings * settings.steps_of_a_training, begun) as going:
                if begun is None:
                    going.folder, going.before = folder, trainings_done(state)
                options = {"parent": asked.parent, "why": asked.why, "format": "json"}
                going.child = self._child(words("propose", str(folder), str(source), **options))
                await going.child.run_name()
        return _json(
            run=folder.name, accepted=True, findings=findings, budget_left=self._budget.left
        )

    async def wait(self, asked: WaitArguments) -> AgentAnswer:
        """Wait for the end of a run's work; its status then."""
        folder = self._folder(asked.run)
        return await self._status(folder, asked.seconds)

    async def stop(self, asked: RunArguments) -> AgentAnswer:
        """Stop a run; answers once it is saved."""
        folder = self._folder(asked.run)
        begun = self._budget.of(folder.name)
        if begun is None or begun.child is None or not begun.is_running:
            raise ToolError(
                f"the run {folder.name!r} is not trained by this server", "there is nothing to stop"
            )
        begun.child.stop()
        return await self._status(folder, STOPPING_S)

    async def _status(self, folder: Path, seconds: float) -> AgentAnswer:
        until = time.monotonic() + seconds
        while self._works_on(folder) and time.monotonic() < until:
            await asyncio.sleep(POLL_S)
        folder = self._folder(folder.name)  # it may have come to nothing
        state, begun = state_of(folder), self._budget.of(folder.name)
        error = begun.child.error if begun is not None and begun.child is not None else None
        best = leaderboard(state)[:1]
        return _json(
            run=folder.name,
            status=state.status.value,
            phase=phase(state),
            env_steps=env_steps_done(state),
            env_steps_in_all=env_steps_total(state),
            attempts=[
                {name: told[name] for name in ("id", "stage", "reason", "fitness")}
                for told in map(attempt_to_json, state.by_id.values())
            ],
            best=best[0].id if best else None,
            error=error and str(error),
            budget_left=self._budget.left,
        )

    def _works_on(self, folder: Path) -> bool:
        begun = self._budget.of(folder.name)
        return is_held(folder) or (begun is not None and begun.is_running)

    def _child(self, arguments: list[str]) -> Child:
        return Child(arguments, self._scratch / f"log-{next(self._number)}.txt")

    def _folder(self, word: str) -> Path:
        """Folder of a run, by its name alone. Raises RunFolderError."""
        folders = {each.name: each for each in list_runs()}
        if word == "latest" and folders:
            return list(folders.values())[-1].absolute()
        if word in folders:
            return folders[word].absolute()
        if (begun := self._budget.of(word)) and begun.child and begun.child.error:
            raise begun.child.error
        raise RunFolderError(f"there is no run {word!r}", did_you_mean(word, folders))


def _on_run(tool: Tool) -> Tool:
    """A tool on a run, which is its first argument."""

    async def answer(service: AgentService, asked: Any) -> AgentAnswer:
        async with service.bench(asked.run) as bench:
            found = await tool.run(bench, asked)
        return AgentAnswer(told=bounded(found.text()), shown=found.pictures())

    bases = (tool.arguments, RunArguments)
    return Tool(tool.name, tool.doc, create_model(tool.name, __base__=bases), answer)


AGENT_TOOLS = (
    Tool(
        "environments",
        "The environments and their tasks; `own`: the user's.",
        NoArguments,
        AgentService.environments,
    ),
    Tool(
        "runs", "The runs, oldest first, with their best fitness.", NoArguments, AgentService.runs
    ),
    Tool("show", "A run, or one attempt in full.", ShowArguments, AgentService.show),
    Tool(
        "brief",
        "All that a designer is told for the next proposal to a run: environment, task, form of a"
        " reward, and what was tried, with its results.",
        BriefArguments,
        AgentService.brief,
    ),
    *map(_on_run, (*TOOLS, FRAMES)),
    Tool(
        "search",
        "Start a search for a reward, in the background; `wait` tells how it goes. To propose"
        " rewards yourself, begin with 0 iterations.",
        SearchArguments,
        AgentService.search,
    ),
    Tool(
        "propose",
        "Have a reward judged, and where it is accepted start its training as an attempt of a run,"
        " in the background.",
        ProposeArguments,
        AgentService.propose,
    ),
    Tool(
        "wait",
        "Wait until a run's trainings have ended, or so many seconds; its status, attempts and"
        " progress then.",
        WaitArguments,
        AgentService.wait,
    ),
    Tool(
        "stop",
        "Stop what this server trains in a run. It is saved: a proposal to it goes on.",
        RunArguments,
        AgentService.stop,
    ),
)
