"""`eureka runs`, `eureka show` and `eureka ui`: the runs and their results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from eureka_agent.cli import completing
from eureka_agent.cli.command import Command, DeclinedError, Number, UsageError
from eureka_agent.cli.output import FORMAT, print_json, say
from eureka_agent.errors import EurekaError
from eureka_agent.invocation import FIRST_SEARCH, command
from eureka_agent.wording import file_size

if TYPE_CHECKING:
    from eureka_agent.report.run_report import RunReport
    from eureka_agent.search.pruning import PrunePlan


@click.command(cls=Command)
@click.argument("runs", metavar="[RUN]...", nargs=-1, shell_complete=completing.runs)
@click.option("--prune", is_flag=True, help="Remove files that nothing needs again; asks first.")
@click.option("--yes", is_flag=True, help="With --prune: ask nothing.")
@FORMAT
def runs(runs: tuple[str, ...], prune: bool, yes: bool, output_format: str) -> None:
    """List the runs, oldest first: what was asked, how it stands, the best fitness, the size.

    A RUN is a run, or a folder of runs; without one all are listed. --prune takes policies,
    episodes and videos from finished runs, but for those of the best attempt, the finalists and the
    baselines. Reports, rewards and curves stay.

    \b
    eureka runs
    eureka runs --prune
    """
    from eureka_agent.archive.files import folder_size
    from eureka_agent.archive.run_folder import RUNS_FOLDER_HINT, list_batches, shown_runs_folder

    if prune:
        _prune(runs, yes=yes, output_format=output_format)
        return
    if yes:
        raise UsageError("--yes is for --prune, which is not given", "add --prune")
    reports: list[RunReport] = []
    for folder in _named_runs(runs):
        with _skipping(folder):
            reports.append(_report(str(folder), in_full=False, costs=False))
    if output_format == "json":
        from eureka_agent.report.as_json import to_json

        keys = ("run", "folder", "status", "task", "best", "human", "sparse", "seconds")
        found = [(to_json(each), folder_size(each.folder)) for each in reports]
        rows = [{**{key: run[key] for key in keys}, "bytes": size} for run, size in found]
        print_json({"runs": rows})
    elif reports:
        from eureka_agent.report.tables import render_runs
        from eureka_agent.report.terminal import list_console

        sizes = [folder_size(each.folder) for each in reports]
        list_console().print(render_runs(reports, sizes))
    else:
        say(f"no run in {shown_runs_folder()} yet; start one: {command(FIRST_SEARCH)}")
        say(f"`{command('batches')}` lists the batches" if list_batches() else RUNS_FOLDER_HINT)


@contextmanager
def _skipping(folder: Path) -> Iterator[None]:
    """Go on after a folder that cannot be read, and say so."""
    try:
        yield
    except EurekaError as error:
        say(f"skipped {folder.name}: {error.message}", err=True)


def _named_runs(words: Sequence[str]) -> list[Path]:
    """Run folders of these words: runs, and the runs in a folder, such as that of a batch. All runs
    without a word. Raises RunFolderError for a word without a run."""
    from eureka_agent.archive.files import FILE_NAME
    from eureka_agent.archive.run_folder import find_run, list_runs

    found: list[Path] = [] if words else list_runs()
    for folder in map(find_run, words):
        inner = [] if (folder / FILE_NAME).is_file() else list_runs(folder)
        found += inner or [folder]
    return list(dict.fromkeys(found))


def _prune(words: Sequence[str], *, yes: bool, output_format: str) -> None:
    from eureka_agent.cli.questions import agree
    from eureka_agent.search.pruning import prune, prune_plan

    plans: list[PrunePlan] = []
    for folder in _named_runs(words):
        with _skipping(folder):
            plans.append(prune_plan(folder))
    if output_format == "text":
        _say_plans(plans)
    freed = sum(each.freed for each in plans)
    if freed:
        if not yes:
            size = file_size(freed)
            asked = f"there is no terminal to ask whether {size} may be removed"
            unasked = DeclinedError(asked, "give --yes")
            agree(f"Remove {size}?", unasked, "nothing was removed")
        plans = [prune(each) if each.freed else each for each in plans]
    removed = sum(each.freed for each in plans)
    if output_format == "json":
        rows = [
            {
                "run": each.folder.name,
                "folder": str(each.folder),
                "bytes": each.size,
                "freed": each.freed,
                "kinds": each.by_kind(),
                "files": len(each.files),
                "untouched": each.untouched or None,
            }
            for each in plans
        ]
        print_json({"removed": bool(freed), "bytes": removed, "runs": rows})
    elif freed:
        say(f"removed {file_size(removed)}")


def _say_plans(plans: Sequence[PrunePlan]) -> None:
    for each in plans:
        if each.untouched:
            say(f"left alone: {each.folder.name}, {each.untouched}")
        elif each.freed:
            kinds = (f"{kind} {file_size(size)}" for kind, size in each.by_kind().items())
            say(f"{each.folder.name}: {', '.join(kinds)}")
            say(f"  {file_size(each.freed)} of {file_size(each.size)}")
    if not any(each.freed for each in plans):
        say("nothing to remove")


@click.command(cls=Command)
@click.argument("run", shell_complete=completing.runs)
@click.argument("attempt", required=False, shell_complete=completing.attempts)
@click.option(
    "--cost",
    is_flag=True,
    help="What models were asked and what it cost, by who asked and by attempt.",
)
@click.option("--events", is_flag=True, help="The run's journal: what happened, and when.")
@click.option(
    "--follow",
    is_flag=True,
    help="Watch a run that another process works on; Ctrl-C leaves the search alone.",
)
@FORMAT
def show(
    run: str, attempt: str | None, cost: bool, events: bool, follow: bool, output_format: str
) -> None:
    """Show RUN (a folder, a name, the beginning of one, or `latest`), or one ATTEMPT of it.

    \b
    eureka show latest
    eureka show latest 2-03
    eureka show latest --cost
    eureka show latest --follow
    """
    flags = {"--cost": cost, "--events": events, "--follow": follow}
    given = [flag for flag, is_given in flags.items() if is_given]
    if len(given) > 1:
        raise UsageError(f"{' and '.join(given)} exclude each other", "give one of them")
    if given and attempt is not None:
        fault = f"{given[0]} is for a whole run, not for one attempt"
        raise UsageError(fault, f"leave out {attempt!r}")
    if follow:
        _follow(run, output_format)
    elif events:
        _show_events(run, output_format)
    elif attempt is not None:
        _show_attempt(run, attempt, output_format)
    elif cost:
        _show_cost(_report(run, in_full=False), output_format)
    elif output_format == "json":
        from eureka_agent.report.as_json import to_json

        print_json(to_json(_report(run, in_full=True)))
    else:
        from eureka_agent.report.tables import render_run
        from eureka_agent.report.terminal import CleanConsole

        CleanConsole().print(render_run(_report(run, in_full=False)))


def _show_attempt(word: str, attempt: str, output_format: str) -> None:
    from eureka_agent.archive.artefacts import CURVES, attempt_folder
    from eureka_agent.archive.run_folder import reading, unknown_attempt
    from eureka_agent.archive.safe_files import inside
    from eureka_agent.report.as_json import attempt_in_full_to_json
    from eureka_agent.report.attempt_page import attempt_document, render_attempt
    from eureka_agent.report.curves import read_curves_csv
    from eureka_agent.report.terminal import CleanConsole
    from eureka_agent.search.summary import attempt_of

    with reading(word) as run:
        chosen = attempt_of(run, attempt)
        if chosen is None:
            raise unknown_attempt(run, attempt)
        origin = run.fitness_origin
    if output_format == "json":
        print_json(attempt_in_full_to_json(chosen, origin))
        return
    folder = attempt_folder(run.folder, chosen.id)
    curves = inside(folder, CURVES)
    points = read_curves_csv(curves) if curves.is_file() else ()
    document = attempt_document(
        chosen, run.settings.env_steps, points, folder=folder, fitness_origin=origin
    )
    CleanConsole().print(render_attempt(document))


def _follow(word: str, output_format: str) -> None:
    from eureka_agent.archive.run_folder import find_run
    from eureka_agent.cli.watch import follow

    if output_format == "json":
        events = command("show latest --events --format json")
        hint = f"what happened until now: {events}"
        raise UsageError("--follow has no JSON: it shows what changes", hint)
    follow(find_run(word))


def _show_events(word: str, output_format: str) -> None:
    from eureka_agent.archive.run_folder import reading
    from eureka_agent.report.follow import entry_to_json, journal_lines

    with reading(word) as run:
        if output_format == "json":
            entries = [entry_to_json(each) for each in run.archive.entries()]
            print_json({"run": run.name, "folder": str(run.folder), "entries": entries})
            return
        for line in journal_lines(run.archive.entries(), run.folder):
            say(line)


def _show_cost(report: RunReport, output_format: str) -> None:
    from eureka_agent.report.ledger import ledger_blocks, ledger_to_json
    from eureka_agent.report.terminal import CleanConsole, render_block

    if output_format == "json":
        print_json(ledger_to_json(report.ledger))
    else:
        for block in ledger_blocks(report.ledger):
            CleanConsole().print(*render_block(block), "", sep="\n")


def _report(word: str, *, in_full: bool, costs: bool = True) -> RunReport:
    from eureka_agent.archive.run_folder import reading
    from eureka_agent.search.summary import run_overview, run_report

    with reading(word) as opened:
        return run_report(opened) if in_full else run_overview(opened, costs=costs)


@click.command(cls=Command)
@click.option(
    "--port", type=Number(int, 1, 65_535), help="Port to listen at.  [default: 8321, or a free one]"
)
def ui(port: int | None) -> None:
    """Show the runs of this machine in a browser, running ones as they grow.

    The page prints its address, with a token that lets a browser in. Ctrl-C ends it.

    \b
    eureka ui
    eureka ui --port 9000
    """
    from eureka_agent.web.server import bind, serve

    with bind(port) as listening:
        serve(listening, say)
