"""`eureka batch`: many searches from one file, started, watched and steered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import click

from eureka_agent.cli import completing
from eureka_agent.cli.batch_start import START, start
from eureka_agent.cli.command import Command, Group, UsageError
from eureka_agent.cli.output import FORMAT, print_json, say
from eureka_agent.invocation import command
from eureka_agent.wording import plural


class BatchGroup(Group):
    """A group of commands whose first word may also be a batch file."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        """Put `start` before a file."""
        first = next((word for word in args if not word.startswith("-")), None)
        if args and args[0] not in ("-h", "--help") and first not in self.commands:
            args = [START, *args]
        return super().parse_args(context, args)


@click.group(cls=BatchGroup)
def batch() -> None:
    """Run the searches of a batch file on one machine, over night if need be.

    The folder of a batch holds its queue, a run for each search, and the summaries. The same
    command goes on with it.

    \b
    eureka batch nightly.yaml --plan
    eureka batch nightly.yaml --detach
    eureka batch status nightly
    eureka batch pause nightly
    """


batch.add_command(start)


def _folder(function: Callable[..., None]) -> Callable[..., None]:
    return click.argument("folder", shell_complete=completing.batches)(function)


def _search(function: Callable[..., None]) -> Callable[..., None]:
    return click.argument("search", required=False)(function)


def _ask(folder: str, output_format: str, request: Mapping[str, Any]) -> None:
    """Send a request to the process of a batch and show how the batch stands then."""
    from eureka_agent.batch.folder import find_batch
    from eureka_agent.batch.session import ask_batch

    found = find_batch(folder)
    answer = ask_batch(found, request)
    if output_format == "json":
        print_json(answer)
        return
    for name, state in answer["searches"].items():
        if request.get("search") in (None, name):
            say(f"{name}: {state}")
    _say_held(answer, folder)


def _say_held(answer: Mapping[str, Any], folder: str) -> None:
    """Say that a batch is paused or at rest, or what it waits for before it ends."""
    if again := answer.get("again"):
        say(f"nobody works on the batch: go on with `{again}`")
    elif answer["stopping"]:
        waits_for = plural(answer["trainings"], "training")
        say(f"stopping: nothing new begins, and it ends after {waits_for} under way")
    elif answer["paused"]:
        say(f"paused: go on with `{command(f'batch resume {folder}')}`")


@batch.command(cls=Command)
@_folder
@FORMAT
def status(folder: str, output_format: str) -> None:
    """Show a batch: its searches, what they found, who works on it.

    \b
    eureka batch status nightly
    """
    from contextlib import closing, suppress
    from dataclasses import replace

    from eureka_agent.batch.control import NobodyListensError
    from eureka_agent.batch.folder import find_batch
    from eureka_agent.batch.lines import render_rows
    from eureka_agent.batch.queue import Queue
    from eureka_agent.batch.session import ask_batch
    from eureka_agent.batch.session import status as batch_status
    from eureka_agent.batch.summary import row_to_json, rows_of
    from eureka_agent.report.console import list_console

    found = find_batch(folder)
    facts = batch_status(found)
    with suppress(NobodyListensError):
        facts |= ask_batch(found, {"action": "status"})
    with closing(Queue(found, reading=True)) as queue:
        states = facts["searches"]
        rows = [replace(row, state=states.get(row.search, row.state)) for row in rows_of(queue)]
    if output_format == "json":
        print_json({**facts, "rows": [row_to_json(row) for row in rows]})
        return
    list_console().print(render_rows(rows))
    say("a process works on it" if facts["running"] else "nobody works on it now")
    if "stopping" in facts:
        _say_held(facts, folder)


@batch.command(cls=Command)
@_folder
@_search
@FORMAT
def pause(folder: str, search: str | None, output_format: str) -> None:
    """Begin nothing more in SEARCH, or in the whole batch; trainings under way go on.

    \b
    eureka batch pause nightly
    """
    _ask(folder, output_format, {"action": "pause", "search": search})


@batch.command(cls=Command)
@_folder
@_search
@FORMAT
def resume(folder: str, search: str | None, output_format: str) -> None:
    """Go on with SEARCH, also with a cancelled one, or with the whole batch.

    Where no process works on the batch, SEARCH waits in it, and the command that goes on is named.

    \b
    eureka batch resume nightly
    eureka batch resume nightly walkers-hopper-seed1
    """
    _ask(folder, output_format, {"action": "resume", "search": search})


@batch.command(cls=Command)
@_folder
@_search
@FORMAT
def cancel(folder: str, search: str | None, output_format: str) -> None:
    """End SEARCH, or all, now. What was trained is kept, and `resume` goes on with it.

    \b
    eureka batch cancel nightly walkers-hopper-seed1
    """
    _ask(folder, output_format, {"action": "cancel", "search": search})


@batch.command(cls=Command)
@_folder
@FORMAT
def stop(folder: str, output_format: str) -> None:
    """End the batch after the trainings under way; starting it again goes on.

    \b
    eureka batch stop nightly
    """
    _ask(folder, output_format, {"action": "stop"})


@batch.command(cls=Command)
@_folder
@click.argument("words", nargs=-1, required=True, metavar="[SEARCH] NAME=VALUE...")
@FORMAT
def retune(folder: str, words: tuple[str, ...], output_format: str) -> None:
    """Change limits of a running batch, or settings of one SEARCH in it.

    \b
    eureka batch retune nightly max_cost=30 until=08:00
    eureka batch retune nightly walkers-hopper-seed1 iterations=5
    """
    from eureka_agent.settings_files import read_value

    search = None if "=" in words[0] else words[0]
    changes = {}
    for word in words[search is not None :]:
        name, equals, value = word.partition("=")
        if not equals:
            raise UsageError(f"{word!r} is no change", "write it as name=value")
        changes[name.lstrip("-").replace("-", "_")] = read_value(value)
    _ask(folder, output_format, {"action": "retune", "search": search, "settings": changes})


@click.command(cls=Command)
@FORMAT
def batches(output_format: str) -> None:
    """List the batches in the runs folder.

    \b
    eureka batches
    """
    from eureka_agent.archive.run_folder import list_batches, shown_runs_folder
    from eureka_agent.batch.session import counted
    from eureka_agent.batch.session import status as batch_status
    from eureka_agent.errors import EurekaError

    found = []
    for folder in list_batches():
        try:
            found.append(batch_status(folder))
        except EurekaError as error:
            say(f"skipped {folder.name}: {error.message}", err=True)
    if output_format == "json":
        print_json({"batches": found})
    elif not found:
        say(f"no batch in {shown_runs_folder()} yet; start one: {command('batch FILE')}")
    for facts in found if output_format == "text" else ():
        at_work = "running" if facts["running"] else "at rest"
        say(f"{facts['batch']}: {at_work}, {counted(facts['searches'].values())}")
