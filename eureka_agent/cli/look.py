"""`eureka look`: a run's tools, the ones that models that design have, for people."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from eureka_agent.cli import completing
from eureka_agent.cli.command import Command, UsageError
from eureka_agent.cli.output import FORMAT, TRUST, print_json, say

if TYPE_CHECKING:
    from eureka_agent.archive.run_folder import Run
    from eureka_agent.tools.bench import ToolAnswer
    from eureka_agent.tools.definitions import Tool

FRAMES_FILE = "frames.jpg"


@click.command(cls=Command, context_settings={"ignore_unknown_options": True})
@click.argument("run", shell_complete=completing.runs)
@click.argument("tool", required=False)
@click.argument("arguments", nargs=-1)
@TRUST
@FORMAT
def look(
    run: str, tool: str | None, arguments: tuple[str, ...], trust: bool, output_format: str
) -> None:
    """Ask about a RUN what models that design may ask; without a TOOL, list the tools.

    ARGUMENTS come in the tool's order, or as NAME=VALUE. An attempt can be `best`; a source is the
    name of a file.

    \b
    eureka look latest
    eureka look latest ask best "ball_speed" where="goal_distance < 0.1"
    eureka look latest compare 1-03 2-01
    eureka look latest try_reward reward.py
    """
    from eureka_agent.archive.run_folder import find_run, open_run
    from eureka_agent.cli.questions import trust_to_evaluate
    from eureka_agent.tools.definitions import FRAMES, TOOLS, checked_arguments, tool_named

    opened = open_run(find_run(run), reading=True)
    tools = (*TOOLS, FRAMES)
    if tool is None:
        _list(tools, output_format)
        return
    found = tool_named(tool, tools)
    given = _arguments(opened, found, arguments)
    checked_arguments(found, given)
    trust_to_evaluate(opened, trust)
    answer = asyncio.run(_called(opened, found.name, given))
    if output_format == "json":
        print_json({"run": opened.name, "tool": found.name, **answer.model_dump(mode="json")})
        return
    for line in answer.text().splitlines():
        say(line)
    for picture in answer.pictures():
        Path(FRAMES_FILE).write_bytes(picture.data)
        say(f"written to {FRAMES_FILE}")


async def _called(run: Run, name: str, arguments: dict[str, Any]) -> ToolAnswer:
    from eureka_agent.search.asking import opened_bench
    from eureka_agent.tools.definitions import call

    async with opened_bench(run) as bench:
        return await call(bench, name, arguments)


def _list(tools: Sequence[Tool], output_format: str) -> None:
    if output_format == "json":
        specs = [{"name": it.name, "doc": it.doc, "schema": dict(it.spec.schema)} for it in tools]
        print_json({"tools": specs})
        return
    for each in tools:
        say(f"{each.name} {' '.join(map(str.upper, each.arguments.model_fields))}")
        say(f"  {each.doc}")


def _arguments(run: Run, tool: Tool, words: Sequence[str]) -> dict[str, Any]:
    """The arguments by name. Raises UsageError for too many, and for a file that cannot be read."""
    from eureka_agent.cli.critique import read_reward_file
    from eureka_agent.search.summary import best_attempt

    fields = list(tool.arguments.model_fields)
    given: dict[str, Any] = {}
    for word in words:
        name, sign, value = word.partition("=")
        left = [each for each in fields if each not in given]
        if not sign or name not in fields or value.startswith("="):
            if not left:
                what = f"{tool.name} takes no further argument {word!r}"
                raise UsageError(what, f"it takes {', '.join(fields) or 'none'}")
            name, value = left[0], word
        if name == tool.text_argument:
            given[name] = read_reward_file(Path(value))
        elif name == "attempt" and value == "best" and (best := best_attempt(run)) is not None:
            given[name] = best.id
        else:
            given[name] = _value(tool, name, value)
    return given


def _value(tool: Tool, name: str, word: str) -> Any:
    """A number or a list of numbers, where the tool expects one."""
    if tool.arguments.model_fields[name].annotation is str:
        return word
    try:
        return json.loads(f"[{word}]" if "," in word else word)
    except ValueError:
        return word
