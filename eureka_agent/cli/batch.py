"""`eureka batch`: many searches from one file, started, watched and steered."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from eureka_agent.cli import completing
from eureka_agent.cli.command import FILE, Command, Group, UsageError
from eureka_agent.cli.output import FORMAT, TRUST, print_json, say
from eureka_agent.invocation import command

if TYPE_CHECKING:
    from eureka_agent.batch.file import BatchFile
    from eureka_agent.batch.matrix import PlannedSearch

START = "start"


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


def _folder(function: Callable[..., None]) -> Callable[..., None]:
    return click.argument("folder", shell_complete=completing.batches)(function)


def _search(function: Callable[..., None]) -> Callable[..., None]:
    return click.argument("search", required=False)(function)


@batch.command(cls=Command, name=START)
@click.argument("file", type=FILE)
@click.option(
    "--folder",
    type=FILE,
    help="Folder of the batch.  [default: one in the runs folder, by the file's name]",
)
@click.option("--plan", is_flag=True, help="Show what would be searched, and start nothing.")
@click.option(
    "--detach",
    is_flag=True,
    help="Go on in the background; return once the batch runs, with one JSON line.",
)
@click.option(
    "--install-service",
    is_flag=True,
    help="Print a systemd unit that goes on with the batch after a reboot; install nothing.",
)
@click.option("--until", help="Time of the day at which all is saved and stopped, such as 07:30.")
@click.option("--retries", type=int, help="Further tries of a search that failed.")
@click.option("--at-once", type=int, help="Searches under way at a time.")
@click.option("--max-cost", help="US dollars that all searches together may spend on models.")
@click.option("--max-time", help="Wall time of this call, such as 9h.")
@click.option("--ready-fd", type=int, hidden=True)
@TRUST
@FORMAT
def start(
    file: Path,
    folder: Path | None,
    plan: bool,
    detach: bool,
    install_service: bool,
    ready_fd: int | None,
    trust: bool,
    output_format: str,
    **limits: Any,
) -> None:
    """Run the searches of FILE that have not ended.

    The first Ctrl-C saves what is under way and waits for replies that are paid for; the second one
    ends at once. A file STOP in the folder ends the batch after the trainings under way.

    \b
    eureka batch start nightly.yaml
    eureka batch nightly.yaml --until 07:30 --max-cost 20
    """
    from eureka_agent.archive.run_folder import runs_folder
    from eureka_agent.batch.file import BatchSettings, read_batch_file, with_limits
    from eureka_agent.batch.matrix import expand
    from eureka_agent.settings import THE_FLAGS, parse_settings

    given = {name: value for name, value in limits.items() if value is not None}
    parse_settings(BatchSettings, given, THE_FLAGS, "batch start --help")
    read = with_limits(read_batch_file(file), given)
    searches = expand(read)
    target = runs_folder() / file.stem if folder is None else folder
    if plan:
        _show_plan(read, searches, target, output_format)
    elif install_service:
        from eureka_agent.batch.service import unit

        click.echo(unit(_arguments(file, target, given, trust), target), nl=False)
    elif detach:
        from eureka_agent.batch.detach import detach as start_detached

        click.echo(start_detached(_arguments(file, target, given, trust), target))
    else:
        _run(read, searches, target, trust, ready_fd, output_format)


def _show_plan(
    file: BatchFile, searches: tuple[PlannedSearch, ...], folder: Path, output_format: str
) -> None:
    from eureka_agent.batch.plan import plan_as_json, render_plan
    from eureka_agent.report.console import list_console

    if output_format == "json":
        print_json(plan_as_json(file, searches, folder))
    else:
        list_console().print(render_plan(file, searches, folder))


def _run(
    file: BatchFile,
    searches: tuple[PlannedSearch, ...],
    folder: Path,
    trust: bool,
    ready_fd: int | None,
    output_format: str,
) -> None:
    import os

    from eureka_agent.archive.run_folder import command_line
    from eureka_agent.batch.lines import event_line, render_end
    from eureka_agent.batch.session import run_batch
    from eureka_agent.cli.watch import run_stoppable
    from eureka_agent.report.console import list_console

    as_json = output_format == "json"

    def ready(facts: Mapping[str, Any]) -> None:
        say(f"batch {facts['id']} in {facts['folder']}", err=as_json)
        if ready_fd is not None:
            import json

            with os.fdopen(ready_fd, "w") as stream:
                stream.write(json.dumps(dict(facts)) + "\n")

    try:
        end = run_stoppable(
            lambda: run_batch(
                file,
                searches,
                folder,
                command_line(),
                lambda event: say(event_line(event), err=as_json),
                trust=trust,
                ready=ready,
            )
        )
    except (KeyboardInterrupt, click.exceptions.Abort):
        again = command(f"batch {file}")
        say(f"Stopped. Go on with:  {again}", err=as_json)
        raise click.exceptions.Abort from None
    if as_json:
        print_json({"folder": str(folder), "states": end.states, "message": end.message})
    else:
        list_console().print(render_end(end, folder))
    say("done", err=as_json)
    if end.failed:
        sys.exit(1)


def _arguments(file: Path, folder: Path, given: Mapping[str, Any], trust: bool) -> list[str]:
    """Arguments of the same command for another process."""
    arguments = ["batch", START, str(file.resolve()), "--folder", str(folder.resolve())]
    for name, value in given.items():
        arguments += [f"--{name.replace('_', '-')}", str(value)]
    return [*arguments, *(["--trust"] if trust else [])]


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
    if answer.get("paused"):
        say(f"paused: go on with `{command(f'batch resume {folder}')}`")


@batch.command(cls=Command)
@_folder
@FORMAT
def status(folder: str, output_format: str) -> None:
    """Show a batch: its searches, what they found, who works on it.

    \b
    eureka batch status nightly
    """
    from contextlib import closing
    from dataclasses import asdict

    from eureka_agent.batch.folder import find_batch
    from eureka_agent.batch.lines import render_rows
    from eureka_agent.batch.queue import Queue
    from eureka_agent.batch.session import status as batch_status
    from eureka_agent.batch.summary import rows_of
    from eureka_agent.report.console import list_console

    found = find_batch(folder)
    facts = batch_status(found)
    with closing(Queue(found, reading=True)) as queue:
        rows = rows_of(queue)
    if output_format == "json":
        print_json({**facts, "rows": [asdict(row) for row in rows]})
        return
    list_console().print(render_rows(rows))
    say("a process works on it" if facts["running"] else "nobody works on it now")


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
    """Go on with SEARCH, or with the whole batch.

    \b
    eureka batch resume nightly
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
    from eureka_agent.archive.run_folder import shown_runs_folder
    from eureka_agent.batch.folder import list_batches
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
        states = list(facts["searches"].values())
        counted = ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states))
        at_work = "running" if facts["running"] else "at rest"
        say(f"{facts['batch']}: {at_work}, {counted}")
