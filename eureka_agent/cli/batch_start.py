"""`eureka batch FILE`: the searches of a batch file, planned, checked and run."""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from eureka_agent.cli.command import FILE, Command, Number, UsageError, typed_options
from eureka_agent.cli.output import FORMAT, TRUST, print_json, say, say_notice
from eureka_agent.invocation import command

if TYPE_CHECKING:
    from eureka_agent.batch.estimate import BatchPlan
    from eureka_agent.batch.file import BatchFile
    from eureka_agent.batch.matrix import PlannedSearch

START = "start"
CONFIRM_ABOVE = 10.0
"""US dollars above which a batch asks before it starts."""


@click.command(cls=Command, name=START)
@click.argument("file", type=FILE)
@click.option(
    "--folder",
    type=FILE,
    help="Folder of the batch.  [default: one in the runs folder, by the file's name]",
)
@click.option(
    "--plan",
    is_flag=True,
    help="Print what it would train, take and cost, and start nothing.",
)
@click.option(
    "--confirm-above",
    type=click.FloatRange(min=0.0),
    default=CONFIRM_ABOVE,
    show_default=True,
    help="Ask before a batch that is expected to cost more US dollars.",
)
@click.option("--yes", is_flag=True, help="Ask nothing.")
@click.option(
    "--detach",
    is_flag=True,
    help="Go on in the background; return once the batch runs, with one JSON line.",
)
@click.option("--until", help="Time of the day at which all is saved and stopped, such as 07:30.")
@click.option("--retries", type=Number(int), help="Further tries of a search that failed.")
@click.option("--at-once", type=Number(int), help="Searches under way at a time.")
@click.option("--max-cost", help="US dollars that all searches together may spend on models.")
@click.option("--cluster", help="Train on a Ray cluster: ray, or ray:<address>.")
@click.option("--max-time", help="Wall time of this call, such as 9h.")
@click.option("--ready-fd", type=int, hidden=True)
@TRUST
@FORMAT
def start(
    file: Path,
    folder: Path | None,
    plan: bool,
    confirm_above: float,
    yes: bool,
    detach: bool,
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
        return
    _check(read, searches, target, None if yes else Decimal(str(confirm_above)))
    if detach:
        from eureka_agent.batch.detach import detach as start_detached

        click.echo(start_detached([*_arguments(file, target, given, trust), "--yes"], target))
    else:
        options = typed_options(click.get_current_context(), leave_out=("ready_fd",))
        again = command(shlex.join(["batch", str(file), *options]))
        _run(read, searches, target, trust, ready_fd, output_format, again)


def run_planned(
    file: BatchFile,
    searches: tuple[PlannedSearch, ...],
    folder: Path,
    *,
    plan: bool,
    yes: bool,
    output_format: str,
    again: str,
) -> bool:
    """Run a batch file in its folder, or print its plan, for a command that made it. False for a
    plan. `again`: the command that goes on with it."""
    if plan:
        _show_plan(file, searches, folder, output_format)
        return False
    _check(file, searches, folder, None if yes else Decimal(str(CONFIRM_ABOVE)))
    _run(file, searches, folder, False, None, output_format, again, ends_here=False)
    return True


def _show_plan(
    file: BatchFile, searches: tuple[PlannedSearch, ...], folder: Path, output_format: str
) -> None:
    from eureka_agent.batch.plan import plan_as_json, render_plan
    from eureka_agent.report.console import list_console

    found = _planned(file, searches, timed=True)
    if output_format == "json":
        print_json(plan_as_json(file, found, folder))
    else:
        list_console().print(render_plan(found, folder))


def _planned(file: BatchFile, searches: Sequence[PlannedSearch], *, timed: bool) -> BatchPlan:
    from eureka_agent.batch.estimate import plan_batch

    return asyncio.run(plan_batch(file, searches, say_notice, timed=timed))


def _check(
    file: BatchFile,
    searches: Sequence[PlannedSearch],
    folder: Path,
    confirm_above: Decimal | None,
) -> None:
    """Raise every mistake that would end a search before its first training, and ask before a
    batch that costs more. None: do not ask."""
    from eureka_agent.batch.estimate import most_money, not_begun
    from eureka_agent.cli.questions import is_yes

    new = not_begun(searches, folder)
    if not new:
        return
    found = _planned(file, new, timed=False)
    money = most_money(file, found.total)
    if confirm_above is None or money <= confirm_above:
        return
    text = f"this batch is expected to spend ${money:,.2f} on models"
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(
            f"{text}, more than --confirm-above {confirm_above}, and there is no terminal to ask",
            "give the same command with --yes, or a max_cost in the file",
        )
    if not asyncio.run(is_yes(f"{text[0].upper()}{text[1:]}. Start it?", on_stderr=True)):
        say("nothing was started", err=True)
        sys.exit(1)


def _run(
    file: BatchFile,
    searches: tuple[PlannedSearch, ...],
    folder: Path,
    trust: bool,
    ready_fd: int | None,
    output_format: str,
    again: str,
    *,
    ends_here: bool = True,
) -> None:
    """Run a batch. `again`: the command that goes on with it; `ends_here`: False for a command that
    prints a result of its own."""
    import os

    from eureka_agent.archive.run_folder import command_line
    from eureka_agent.batch.lines import render_end
    from eureka_agent.batch.live import batch_view
    from eureka_agent.batch.session import run_batch
    from eureka_agent.batch.session import status as batch_status
    from eureka_agent.cli.watch import LastingConsole, run_shown
    from eureka_agent.report.console import list_console

    as_json = output_format == "json"
    view = batch_view(LastingConsole(stderr=as_json), folder.name)

    def ready(facts: Mapping[str, Any]) -> None:
        view.know(batch_status(folder)["searches"])
        say(f"batch {facts['id']} in {facts['folder']}", err=as_json)
        if ready_fd is not None:
            import json

            with os.fdopen(ready_fd, "w") as stream:
                stream.write(json.dumps(dict(facts)) + "\n")

    try:
        end = run_shown(
            lambda: run_batch(
                file,
                searches,
                folder,
                command_line(),
                view.event,
                trust=trust,
                watch=view.entry,
                ready=ready,
            ),
            view,
        )
    except (KeyboardInterrupt, click.exceptions.Abort):
        say(f"Stopped. Go on with:  {again}", err=as_json)
        raise click.exceptions.Abort from None
    if not as_json:
        list_console().print(render_end(end, folder))
    elif ends_here:
        print_json({"folder": str(folder), "states": end.states, "message": end.message})
    if ends_here:
        say("done", err=as_json)
    if ends_here and end.failed:
        sys.exit(1)


def _arguments(file: Path, folder: Path, given: Mapping[str, Any], trust: bool) -> list[str]:
    """Arguments of the same command for another process."""
    arguments = ["batch", START, str(file.resolve()), "--folder", str(folder.resolve())]
    for name, value in given.items():
        arguments += [f"--{name.replace('_', '-')}", str(value)]
    return [*arguments, *(["--trust"] if trust else [])]
