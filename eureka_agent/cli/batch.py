"""`eureka batch`: many searches from one file, planned, started, watched and steered."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import sys
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from eureka_agent.cli import completing
from eureka_agent.cli.command import FILE, Command, Group, UsageError, typed_options
from eureka_agent.cli.output import FORMAT, TRUST, print_json, say, say_notice
from eureka_agent.invocation import command
from eureka_agent.wording import plural

if TYPE_CHECKING:
    from eureka_agent.batch.file import BatchFile
    from eureka_agent.batch.matrix import PlannedSearch
    from eureka_agent.batch.summary import SummaryRow

START = "start"
ASK_ABOVE = Decimal(10)
"""US dollars above which a batch asks before it starts."""
_FOLDER = click.argument("folder", shell_complete=completing.batches)
_SEARCH = click.argument("search", required=False)


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

    The folder of a batch holds a run for each search, the summaries, and what was asked of it. The
    same command goes on with it.

    \b
    eureka batch nightly.yaml --plan
    eureka batch nightly.yaml --detach
    eureka batch status nightly
    eureka batch pause nightly
    """


@batch.command(cls=Command, name=START)
@click.argument("file", type=FILE)
@click.option("--folder", type=FILE, help="Its folder.  [default: FILE's name in the runs folder]")
@click.option("--plan", is_flag=True, help="Print what it would train and cost; start nothing.")
@click.option("--yes", is_flag=True, help="Ask nothing; else a costly batch asks.")
@click.option("--detach", is_flag=True, help="Go on in the background once it runs.")
@click.option("--cluster", help="Train on a Ray cluster: ray, or ray:<address>.")
@click.option("--max-time", help="Wall time of this call, such as 9h.")
@click.option("--ready-fd", type=int, hidden=True)
@TRUST
@FORMAT
def start(
    file: Path,
    folder: Path | None,
    plan: bool,
    yes: bool,
    detach: bool,
    ready_fd: int | None,
    trust: bool,
    output_format: str,
    **limits: str | None,
) -> None:
    """Run the searches of FILE that have not ended.

    The first Ctrl-C saves what is under way and waits for replies that are paid for; the second one
    ends at once. A file STOP in the folder ends the batch after the trainings under way.

    \b
    eureka batch start nightly.yaml
    """
    from eureka_agent.archive.run_folder import runs_folder
    from eureka_agent.batch.file import read_batch_file, with_limits
    from eureka_agent.batch.matrix import expand

    read = with_limits(read_batch_file(file), limits)
    searches = expand(read)
    target = runs_folder() / file.stem if folder is None else folder
    context = click.get_current_context()
    if plan:
        print_plan(read, searches, target, output_format)
        return
    if detach:
        from eureka_agent.batch.unattended import start_detached

        _check(read, searches, target, yes=yes)
        own = ("ready_fd", "detach", "folder", "yes", "output_format")
        words = ["batch", START, str(file.resolve()), "--folder", str(target.resolve()), "--yes"]
        click.echo(start_detached([*words, *typed_options(context, leave_out=own)], target))
        return
    again = ["batch", str(file), *typed_options(context, leave_out=("ready_fd",))]
    rows, message = run_planned(
        read,
        searches,
        target,
        output_format,
        command(shlex.join(again)),
        yes=yes,
        trust=trust,
        ready_fd=ready_fd,
    )
    states = {row.search: row.state for row in rows}
    if output_format == "json":
        print_json({"folder": str(target), "states": states, "message": message})
    say("done", err=output_format == "json")
    if "failed" in states.values():
        sys.exit(1)


def print_plan(
    file: BatchFile, searches: tuple[PlannedSearch, ...], folder: Path, output_format: str
) -> None:
    """Print what a batch would train, take and cost."""
    from eureka_agent.batch.estimate import plan_as_json, plan_batch, render_plan
    from eureka_agent.report.terminal import list_console

    found = asyncio.run(plan_batch(file, searches, say_notice, timed=True))
    if output_format == "json":
        print_json(plan_as_json(file, found, folder))
    else:
        list_console().print(render_plan(found, folder))


def run_planned(
    file: BatchFile,
    searches: tuple[PlannedSearch, ...],
    folder: Path,
    output_format: str,
    again: str,
    *,
    yes: bool,
    trust: bool = False,
    ready_fd: int | None = None,
) -> tuple[list[SummaryRow], str]:
    """Run a batch file in its folder. Returns the summary and why it ended. `again`: the command
    that goes on with it."""
    from eureka_agent.archive.run_folder import command_line
    from eureka_agent.batch.session import run_batch
    from eureka_agent.batch.summary import BatchView, render_rows
    from eureka_agent.cli.watch import run_stoppable
    from eureka_agent.report.screen import LastingConsole
    from eureka_agent.report.terminal import list_console

    as_json = output_format == "json"
    _check(file, searches, folder, yes=yes)
    view = BatchView(LastingConsole(stderr=as_json))

    def ready(facts: Mapping[str, Any]) -> None:
        say(f"batch {facts['id']} in {facts['folder']}", err=as_json)
        if ready_fd is not None:
            with os.fdopen(ready_fd, "w") as stream:
                stream.write(json.dumps(dict(facts)) + "\n")

    try:
        with view:
            rows, message = run_stoppable(
                lambda: run_batch(
                    file, searches, folder, command_line(), view, trust=trust, ready=ready
                )
            )
    except (KeyboardInterrupt, click.exceptions.Abort):
        say(f"Stopped. Go on with:  {again}", err=as_json)
        raise click.exceptions.Abort from None
    if not as_json:
        list_console().print("", render_rows(rows), sep="\n")
        say("\n".join(filter(None, (message, f"summary {folder / 'summary.md'}"))))
    return rows, message


def _check(
    file: BatchFile, searches: tuple[PlannedSearch, ...], folder: Path, *, yes: bool
) -> None:
    """Raise every mistake that would end a search before its first training, and ask before a
    costly batch, unless there is a `yes`."""
    from eureka_agent.batch.estimate import most_money, not_begun, plan_batch
    from eureka_agent.cli.questions import agree

    new = not_begun(searches, folder)
    if not new:
        return
    found = asyncio.run(plan_batch(file, new, say_notice, timed=False))
    money = most_money(file, found.total)
    if yes or money <= ASK_ABOVE:
        return
    text = f"This batch is expected to spend ${money:,.2f} on models"
    hint = "give the same command with --yes, or a max_cost in the file"
    unasked = UsageError(f"{text}, and no terminal is there to ask", hint)
    agree(f"{text}. Start it?", unasked, "nothing was started")


@batch.command(cls=Command)
@_FOLDER
@FORMAT
def status(folder: str, output_format: str) -> None:
    """Show a batch: its searches, what they found, and if a process works on it.

    \b
    eureka batch status nightly
    """
    from eureka_agent.batch import control
    from eureka_agent.batch.folder import find_batch, searches_of
    from eureka_agent.batch.intents import IntentsFile
    from eureka_agent.batch.summary import Summary, render_rows, row_to_json
    from eureka_agent.report.terminal import list_console

    found = find_batch(folder)
    facts, rows = control.status(found), Summary(found).rows(searches_of(IntentsFile(found)))
    if output_format == "json":
        print_json({**facts, "rows": [row_to_json(row) for row in rows]})
        return
    list_console().print(render_rows(rows))
    say("a process works on it" if facts["running"] else "nobody works on it now")
    _say_held(facts, folder)


def _say_held(facts: Mapping[str, Any], folder: str) -> None:
    if facts["stopping"]:
        waits_for = plural(facts["trainings"], "training")
        say(f"stopping: nothing new begins, and it ends after {waits_for} under way")
    elif facts["paused"]:
        say(f"paused: go on with `{command(f'batch resume {folder}')}`")


def _ask(
    folder: str,
    output_format: str,
    action: str,
    search: str | None,
    changes: Mapping[str, Any] | None = None,
) -> None:
    from eureka_agent.batch.control import ask_batch
    from eureka_agent.batch.folder import find_batch

    answer = ask_batch(find_batch(folder), action, search, changes)
    if output_format == "json":
        print_json(answer)
        return
    for name, state in answer["searches"].items():
        if search in (None, name):
            say(f"{name}: {state}")
    if again := answer["again"]:
        say(f"nobody works on the batch: go on with `{again}`")
    _say_held(answer, folder)


_REQUESTS = {
    "pause": (
        "Begin nothing more in SEARCH, or in the whole batch; trainings under way go on.",
        "batch pause nightly",
    ),
    "resume": (
        "Go on with SEARCH, also with a cancelled one, or with the whole batch.\n\nWhere no process"
        " works on the batch, SEARCH waits in it, and the command that goes on is named.",
        "batch resume nightly walkers-hopper-seed1",
    ),
    "cancel": (
        "End SEARCH, or all, now. What was trained is kept, and `resume` goes on with it.",
        "batch cancel nightly walkers-hopper-seed1",
    ),
    "stop": (
        "End the batch after the trainings under way; starting it again goes on.",
        "batch stop nightly",
    ),
}


def _add_request(action: str, text: str, example: str) -> None:
    def ask(folder: str, output_format: str, search: str | None = None) -> None:
        _ask(folder, output_format, action, search)

    with_search = ask if action == "stop" else _SEARCH(ask)
    made = batch.command(action, cls=Command, help=f"{text}\n\n\b\neureka {example}")
    made(_FOLDER(FORMAT(with_search)))


for _action, (_text, _example) in _REQUESTS.items():
    _add_request(_action, _text, _example)


@batch.command(cls=Command)
@_FOLDER
@click.argument("words", nargs=-1, required=True, metavar="[SEARCH] NAME=VALUE...")
@FORMAT
def retune(folder: str, words: tuple[str, ...], output_format: str) -> None:
    """Change limits of a running batch, or settings of one SEARCH in it.

    \b
    eureka batch retune nightly max_cost=30 max_time=10h
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
    _ask(folder, output_format, "retune", search, changes)


@click.command(cls=Command)
@FORMAT
def batches(output_format: str) -> None:
    """List the batches in the runs folder.

    \b
    eureka batches
    """
    from eureka_agent.archive.run_folder import list_batches, shown_runs_folder
    from eureka_agent.batch import control
    from eureka_agent.batch.folder import counted
    from eureka_agent.errors import EurekaError

    found = []
    for folder in list_batches():
        try:
            found.append(control.status(folder))
        except EurekaError as error:
            say(f"skipped {folder.name}: {error.message}", err=True)
    if output_format == "json":
        print_json({"batches": found})
    elif not found:
        say(f"no batch in {shown_runs_folder()} yet; start one: {command('batch FILE')}")
    for facts in found if output_format == "text" else ():
        at_work = "running" if facts["running"] else "at rest"
        say(f"{facts['batch']}: {at_work}, {counted(facts['searches'].values())}")
