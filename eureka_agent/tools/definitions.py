"""The tools: one definition each, for the models that design, for people, and for programs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from eureka_agent.base_record import Record
from eureka_agent.llm.interface import ToolSpec
from eureka_agent.text import clipped, printable
from eureka_agent.tools import drafting, looking
from eureka_agent.tools.bench import Bench, ToolAnswer, ToolError

LONGEST_ANSWER = 6_000
"""Most characters of an answer that are told."""


@dataclass(frozen=True)
class Tool:
    """A tool, with the one line of documentation that everybody reads."""

    name: str
    doc: str
    arguments: type[Record]
    run: Callable[[Any, Any], Awaitable[ToolAnswer]]
    """Takes a bench, or what else these tools work with, and the arguments."""
    text_argument: str = ""
    """Argument with code; empty for none."""

    @property
    def spec(self) -> ToolSpec:
        """The tool as models get it."""
        schema = self.arguments.model_json_schema()
        properties = {
            name: {key: value for key, value in about.items() if key not in ("title", "default")}
            for name, about in schema.get("properties", {}).items()
        }
        shape = {"type": "object", "properties": properties, "required": schema.get("required", [])}
        return ToolSpec(self.name, self.doc, shape, self.text_argument)


TOOLS = (
    Tool(
        "describe",
        "Shape, unit, frame, range and meaning of a variable.",
        looking.DescribeArguments,
        looking.describe,
    ),
    Tool(
        "episodes",
        "Fitness, length and end of every evaluated episode of a trained attempt.",
        looking.OfAttemptArguments,
        looking.episodes,
    ),
    Tool(
        "events",
        "Moments of an episode at which variables jump (a goal set anew, a contact), with their"
        " values.",
        looking.EventsArguments,
        looking.events,
    ),
    Tool(
        "ask",
        "Statistics of an expression over all evaluated episodes of a trained attempt: mean or"
        " share, quantiles, over an episode, between jumps, in good and in bad episodes, and the"
        " fitness a step where the condition holds and elsewhere.",
        looking.AskArguments,
        looking.ask,
    ),
    Tool(
        "compare",
        "Differences of two trained attempts: fitness, terms, code and behaviour.",
        looking.CompareArguments,
        looking.compare,
    ),
    Tool(
        "try_reward",
        "The critic's verdict on a draft, and what it would have paid: each term with random"
        " actions and in recorded bad and good episodes, its agreement with the fitness, and the"
        " nearest trained reward. No training.",
        drafting.DraftArguments,
        drafting.try_reward,
        text_argument="source",
    ),
)
FRAMES = Tool(
    "frames",
    "Pictures of the best and the worst evaluated episode of a trained attempt at some moments.",
    looking.FramesArguments,
    looking.frames,
)
"""For those who see."""


def bounded(text: str) -> str:
    """An answer's text as a model or an agent is told it."""
    return printable(clipped(text, LONGEST_ANSWER))


def tools_of(bench: Bench) -> tuple[Tool, ...]:
    """The tools that work here."""
    return TOOLS if bench.photograph is None else (*TOOLS, FRAMES)


def checked_arguments(tool: Tool, arguments: Mapping[str, Any]) -> Record:
    """The arguments of a call. Raises ToolError."""
    try:
        return tool.arguments.model_validate(arguments)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"])) or "the arguments"
        expected = ", ".join(tool.arguments.model_fields)
        what = f"{tool.name}: {name}: {first['msg']}"
        raise ToolError(what, f"it takes {expected}") from None


def tool_named(name: str, tools: Sequence[Tool]) -> Tool:
    """The tool of this name. Raises ToolError."""
    found = next((each for each in tools if each.name == name), None)
    if found is None:
        known = ", ".join(each.name for each in tools)
        raise ToolError(f"there is no tool {name!r}", f"expected one of {known}")
    return found


async def call(bench: Bench, name: str, arguments: Mapping[str, Any]) -> ToolAnswer:
    """Call a tool. Raises EurekaError, with a reason that whoever called it can act on."""
    tool = tool_named(name, tools_of(bench))
    return await tool.run(bench, checked_arguments(tool, arguments))
