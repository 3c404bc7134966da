"""`eureka mcp` as a coding agent meets it: the SDK's own client, over standard input and output."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio
import pytest
from command_line import CommandLine
from mcp import Client, StdioServerParameters
from model_server import ModelServer, Reply

from eureka_agent.agents.budget import state_of
from eureka_agent.cli.mcp_server import mcp
from eureka_agent.errors import EurekaError
from eureka_agent.invocation import install_extra

# the server and what it starts are told apart by their parents
pytestmark = [pytest.mark.slow, pytest.mark.real_starts]
REWARD = """def compute_reward(pole_upright):
    upright = {scale} * pole_upright
    return upright, {{"upright": upright}}
"""
GOOD = REWARD.format(scale=1.0)
STEPS = 30_720
"""Length of a training that can be stopped, in whole updates."""
SMALL = ("--env", "cartpole", "--env-steps", "2048", "--no-video")


class Agent:
    """A scripted agent, which calls tools."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def __call__(self, tool: str, **arguments: object) -> Any:
        """The answer's document, or its text where it is none."""
        found = await self.client.call_tool(tool, arguments)
        text: str = found.content[0].text
        assert not found.is_error, text
        return json.loads(text) if text.startswith("{") else text

    async def refused(self, tool: str, **arguments: object) -> str:
        found = await self.client.call_tool(tool, arguments)
        text: str = found.content[0].text
        assert found.is_error, text
        assert "Traceback" not in text
        return text

    async def finished(self, run: str) -> Any:
        while (status := await self("wait", run=run, seconds=60))["status"] == "running":
            pass
        assert status["status"] == "finished", status
        return status


@asynccontextmanager
async def served(eureka: CommandLine, *flags: str) -> AsyncIterator[Agent]:
    words = ["-m", "eureka_agent.cli.main", "mcp", *flags]
    environment = {**eureka.environment, "XDG_STATE_HOME": os.environ["XDG_STATE_HOME"]}
    server = StdioServerParameters(
        command=sys.executable, args=words, env=environment, cwd=eureka.folder
    )
    async with Client(server) as client:
        yield Agent(client)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    """A run with one trained attempt, and an environment of the user's own."""
    eureka = CommandLine(tmp_path_factory.mktemp("served"))
    sizes = ("--iterations", "1", "--samples", "1", "--finalists", "0", "--confirm", "0")
    eureka("search", "balance the pole", *SMALL, *sizes)
    eureka("envs", "--new", "my_env", "--kind", "torch")
    return eureka


async def test_a_run_is_asked_as_its_designers_ask(trained: CommandLine) -> None:
    async with served(trained) as agent:
        tools = {each.name: each for each in (await agent.client.list_tools()).tools}
        assert tools["ask"].input_schema["required"] == ["run", "attempt", "expression"]
        asking = {name for name, each in tools.items() if each.annotations.read_only_hint}
        assert set(tools) - asking == {"search", "propose", "stop"}
        # nothing that the user alone decides
        taken = {name for each in tools.values() for name in each.input_schema["properties"]}
        assert not taken & {"sandbox", "model", "budget", "max_cost", "trust", "folder", "config"}
        assert "data" in (agent.client.instructions or "")
        run = trained.run_folder().name
        assert [each["run"] for each in (await agent("runs"))["runs"]] == [run]
        assert await agent("show", run=run) == trained.json("show", "latest")
        assert await agent("brief", run="latest") == trained.json("brief", "latest")
        asked = await agent("ask", run=run, attempt="1-01", expression="-pole_angle")
        assert asked.startswith("-pole_angle, attempt 1-01\n")
        refusal = await agent.refused(
            "ask", run=run, attempt="1-01", expression="torch.load(pole_angle)"
        )
        assert "`torch.load` is not allowed" in refusal
        picture = await agent.client.call_tool("frames", {"run": run, "attempt": "1-01"})
        assert [each.type for each in picture.content] == ["text", "image"]
        assert picture.content[1].mime_type == "image/jpeg"


async def test_a_draft_meets_the_critic_and_trains_nothing(trained: CommandLine) -> None:
    async with served(trained) as agent:
        assert "It would be accepted." in await agent("try_reward", run="latest", source=GOOD)
        for hostile in ("import os\n" + GOOD, GOOD.replace("1.0", "open('x').read()")):
            path = trained.folder / "hostile.py"
            path.write_text(hostile)
            critique = trained.popen("critique", str(path), "--env", "cartpole", "--format", "json")
            findings = json.loads(critique.communicate(timeout=120)[0])["findings"]
            codes = {each["code"] for each in findings if each["severity"] == "error"}
            told = await agent("try_reward", run="latest", source=hostile)
            assert codes
            assert all(f"- {code} error" in told for code in codes)
            proposed = await agent("propose", run="latest", source=hostile)
            assert not proposed["accepted"]
            assert codes <= {each["code"] for each in proposed["findings"]}
        assert len(trained.json("show", "latest")["attempts"]) == 1


async def test_names_are_names_and_no_options(trained: CommandLine) -> None:
    run = trained.run_folder()
    search = {"sentence": "balance", "env": "cartpole"}
    async with served(trained, "--budget", "1k", "--env", "./my_env") as agent:
        for tool, arguments, message in (
            ("show", {"run": str(run)}, "there is no run"),
            ("ask", {"run": "runs/..", "attempt": "1-01", "expression": "1"}, "there is no run"),
            ("brief", {"run": f"../runs/{run.name}"}, "there is no run"),
            ("brief", {"run": "latest", "parent": "--help"}, "must not begin with '-'"),
            ("show", {"run": "--events"}, "must not begin with '-'"),
            ("show", {"run": "latest", "attempt": "--cost"}, "must not begin with '-'"),
            ("show", {"run": "latest", "attempt": "1\0"}, "invisible characters"),
            ("search", {**search, "sentence": "--sandbox=process"}, "must not begin with '-'"),
            ("search", {**search, "env": str(trained.folder / "my_env")}, "there is no environm"),
            ("search", {**search, "env": "gymnasium:CartPole-v1"}, "there is no environment"),
            ("search", {**search, "task": "-x"}, "must not begin with '-'"),
            ("search", {**search, "sandbox": "process"}, "Extra inputs are not permitted"),
            ("search", {**search, "iterations": -1}, "iterations"),
            ("propose", {"run": "latest", "source": GOOD, "why": "--trust"}, "must not begin"),
            ("propose", {"run": "latest", "source": GOOD, "parent": "7-77"}, "no trained attempt"),
            ("stop", {"run": "latest"}, "is not trained by this server"),
            ("dance", {}, "there is no tool 'dance'"),
        ):
            assert message in await agent.refused(tool, **arguments), (tool, arguments)
        # the user's own one is known by its name
        assert (await agent("environments"))["own"] == ["my_env"]
        refusal = await agent.refused("search", sentence="stay", env="my_env", env_steps=2048)
        assert "and 1,000 of this server's 1,000 are left" in refusal


async def test_what_is_trained_counts_against_the_budget(tmp_path: Path) -> None:
    eureka = CommandLine(tmp_path)
    async with served(eureka, "--budget", "23k") as agent:
        begun = await agent(
            "search", sentence="balance", env="cartpole", iterations=0, env_steps=2048
        )
        run = begun["run"]
        assert begun["trainings_at_most"] == 10
        assert begun["budget_left"] == 23_000 - 10 * 2048
        await agent.finished(run)
        proposed = await agent("propose", run=run, source=GOOD, why="upright")
        assert proposed["accepted"]
        status = await agent.finished(run)
        (attempt,) = status["attempts"]
        assert (attempt["id"], attempt["stage"], status["best"]) == ("1-01", "trained", "1-01")
        assert status["budget_left"] == 23_000 - 11 * 2048
        assert (await agent("show", run=run, attempt="1-01"))["reasoning"] == "upright"
        refusal = await agent.refused("propose", run=run, source=REWARD.format(scale=2.0))
        assert "this may train 2,048 env steps, and 472 of this server's 23,000" in refusal
    # a server of its own has a budget of its own
    async with served(eureka, "--budget", "5k") as agent:
        await agent("propose", run=run, source=REWARD.format(scale=2.0), parent="1-01")
        assert (await agent.finished(run))["budget_left"] == 5000 - 2048


async def test_searches_share_what_models_may_cost(tmp_path: Path) -> None:
    eureka = CommandLine(tmp_path)
    eureka.environment["OPENAI_API_KEY"] = "sk-test"
    search = {"sentence": "balance", "env": "cartpole", "env_steps": 2048, "samples": 1}
    answer = Reply(text=f"```python\n{GOOD}```", prompt_tokens=900, completion_tokens=100)
    with ModelServer([answer]) as server:
        model = ("--model", "openai/test", "--base-url", server.base_url)
        limits = ("--price", "openai/test=100,100", "--max-cost", "50")
        async with served(eureka, *model, *limits) as agent:
            run = (await agent("search", **search, iterations=1))["run"]
            assert "--max-cost 50, or it is in use" in await agent.refused("search", **search)
            assert (await agent("show", run=run))["settings"]["max_cost"] == "50"
            await agent.finished(run)
            spent = Decimal((await agent("show", run=run))["cost"]["money"])
            assert spent > 0
            second = (await agent("search", **search, iterations=0, seed=1))["run"]
            assert Decimal((await agent("show", run=second))["settings"]["max_cost"]) == 50 - spent
            await agent.finished(second)
            # both had their own limits, which together are more than what is left
            proposed = await agent("propose", run=second, source=REWARD.format(scale=2.0))
            assert proposed["accepted"]
            await agent.finished(second)
        async with served(eureka) as agent:
            refusal = await agent.refused("propose", run=run, source=GOOD)
            assert "asks openai/test, and was not begun by this server" in refusal


def below(process: int) -> list[int]:
    """Processes that a process started, and those that these did."""
    found: list[int] = []
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        with suppress(OSError):
            for child in map(int, task.read_text().split()):
                found += [child, *below(child)]
    return found


def is_alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def server_of(mark: str) -> int:
    """The server with this word on its command line."""
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if f"\0mcp\0--budget\0{mark}\0" in file.read_text():
                return int(file.parent.name)
    raise AssertionError(mark)


async def until(condition: Callable[[], object]) -> None:
    with anyio.fail_after(120):
        while not condition():
            await anyio.sleep(0.02)


@pytest.fixture
def begun(long_run: Path, tmp_path: Path) -> CommandLine:
    """A copy of it."""
    shutil.copytree(long_run, tmp_path / "runs")
    return CommandLine(tmp_path)


@pytest.fixture(scope="module")
def long_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of baselines alone, whose trainings take seconds."""
    eureka = CommandLine(tmp_path_factory.mktemp("long"))
    sizes = ("--iterations", "0", "--baseline-seeds", "1", "--train-baselines", "--no-video")
    eureka("search", "balance", "--env", "cartpole", "--env-steps", str(STEPS), *sizes)
    return eureka.folder / "runs"


async def propose_and_see_it_train(agent: Agent, eureka: CommandLine) -> None:
    assert (await agent("propose", run="latest", source=GOOD))["accepted"]
    busy = await agent.refused("propose", run="latest", source=REWARD.format(scale=2.0))
    assert "trains" in busy
    folder = eureka.run_folder()
    await until(lambda: any(it.env_steps for it in state_of(folder).under_way.running.values()))


def trainings(eureka: CommandLine, kind: str) -> list[str]:
    """Names of the trainings in the journal's entries of this kind."""
    entries = eureka.json("show", "latest", "--events")["entries"]
    return [it["fields"]["label"] for it in entries if it["kind"] == kind]


async def test_what_a_killed_server_trained_goes_on(begun: CommandLine) -> None:
    processes: list[int] = []
    with suppress(BaseExceptionGroup):  # the client loses its server
        async with served(begun, "--budget", "1234567") as agent:
            await propose_and_see_it_train(agent, begun)
            server = server_of("1234567")
            processes = below(server)
            os.kill(server, signal.SIGKILL)
            await until(lambda: not any(map(is_alive, processes)))
    assert len(processes) > 1  # a driver and its workers
    shown = begun.json("show", "latest")
    assert shown["status"] == "stopped"
    assert [each["stage"] for each in shown["attempts"]] == ["accepted"]
    ended = trainings(begun, "training-ended")
    assert len(ended) == 2
    async with served(begun, "--budget", str(3 * STEPS)) as agent:
        # the training that was stopped counts here, beside the new one
        second = await agent("propose", run="latest", source=REWARD.format(scale=2.0))
        assert second["budget_left"] == STEPS
        status = await agent.finished("latest")
    assert {each["id"]: each["stage"] for each in status["attempts"]} == {
        "1-01": "trained",
        "2-01": "trained",
    }
    assert trainings(begun, "training-ended") == [*ended, "1-01", "2-01"]


async def test_a_stopped_run_is_saved_and_counts(begun: CommandLine) -> None:
    async with served(begun, "--budget", str(2 * STEPS)) as agent:
        await propose_and_see_it_train(agent, begun)
        stopped = await agent("stop", run="latest")
        assert (stopped["status"], stopped["budget_left"]) == ("stopped", STEPS)
        await agent("propose", run="latest", source=REWARD.format(scale=2.0))
        status = await agent.finished("latest")
        assert status["budget_left"] == 0
    assert trainings(begun, "training-ended")[2:] == ["1-01", "2-01"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_beside_an_open_input(begun: CommandLine, number: signal.Signals) -> None:
    (begun.folder / "tmp").mkdir()
    begun.environment["TMPDIR"] = str(begun.folder / "tmp")
    command = [sys.executable, "-m", "eureka_agent.cli.main", "mcp"]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, cwd=begun.folder, env=begun.environment, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write('{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
        process.stdin.flush()
        assert process.stdout.readline()
        process.send_signal(number)
        assert process.wait(60) == 0
    assert not list((begun.folder / "tmp").iterdir())


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    assert mcp.callback is not None
    with pytest.raises(EurekaError) as error:
        mcp.callback(1, ())
    assert error.value.hint == f"install it: {install_extra('mcp')}"
