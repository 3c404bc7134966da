"""`eureka runs`, `eureka show` and `eureka ui`: the runs and their results."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from eureka_agent.cli import completing
from eureka_agent.cli.command import Command, Number, UsageError
from eureka_agent.cli.output import FORMAT, print_json, say
from eureka_agent.errors import EurekaError
from eureka_agent.invocation import FIRST_SEARCH, command

if TYPE_CHECKING:
    from eureka_agent.report.run_report import RunReport


@click.command(cls=Command)
@click.argument("runs", metavar="[RUN]...", nargs=-1, shell_complete=completing.runs)
@click.option("--prune", is_flag=True, help="Remove files that nothing needs again; asks first.")
@click.option("--whole", is_flag=True, help="Prune whole runs: those named, or --older-than.")
@click.option("--older-than", metavar="AGE", help="Prune runs untouched for so long: 30d, 8w.")
@click.option("--dry-run", is_flag=True, help="Only say what --prune would remove.")
@click.option("--yes", is_flag=True, help="Prune without a question.")
@FORMAT
def runs(
    runs: tuple[str, ...],
    prune: bool,
    whole: bool,
    older_than: str | None,
    dry_run: bool,
    yes: bool,
    output_format: str,
) -> None:
    """List the runs, oldest first: what was asked, how it stands, the best fitness, the size.

    A RUN is a run, or a folder of runs; without one all are listed. --prune takes policies,
    episodes and videos from finished runs, but for those of the best attempt, the finalists and the
    baselines; a run of which nothing came goes as a whole. Reports, rewards and curves stay.

    \b
    eureka runs
    eureka runs --prune --dry-run
    eureka runs --prune --whole --older-than 30d
    """
    from eureka_agent.archive.files import folder_size
    from eureka_agent.archive.run_folder import RUNS_FOLDER_HINT, list_batches, shown_runs_folder
    from eureka_agent.cli import housekeeping

    if prune:
        housekeeping.prune_runs(
            runs,
            whole=whole,
            older_than=None if older_than is None else housekeeping.age(older_than),
            dry_run=dry_run,
            yes=yes,
            output_format=output_format,
        )
        return
    _check_prunes(
        {"--whole": whole, "--older-than": older_than, "--dry-run": dry_run, "--yes": yes}
    )
    reports: list[RunReport] = []
    for folder in housekeeping.named_runs(runs):
        try:
            reports.append(_report(str(folder), in_full=False, costs=False))
        except EurekaError as error:
            say(f"skipped {folder.name}: {error.message}", err=True)
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
    _check_whole_run({"--cost": cost, "--events": events, "--follow": follow}, attempt)
    if follow:
        _follow(run, output_format)
        return
    if events:
        _show_events(run, output_format)
        return
    if attempt is not None:
        _show_attempt(run, attempt, output_format)
        return
    report = _report(run, in_full=output_format == "json" and not cost)
    if cost:
        _show_cost(report, output_format)
    elif output_format == "json":
        from eureka_agent.report.as_json import to_json

        print_json(to_json(report))
    else:
        from eureka_agent.report.tables import render_run
        from eureka_agent.report.terminal import CleanConsole

        CleanConsole().print(render_run(report))


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
            known = [entry.id for entry in run.archive.attempts_in_brief()]
            raise unknown_attempt(run, attempt, known)
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


def _check_prunes(flags: dict[str, object]) -> None:
    """Refuse flags of --prune without it."""
    for flag, given in flags.items():
        if given:
            raise UsageError(f"{flag} is for --prune, which is not given", "add --prune")


def _check_whole_run(flags: dict[str, bool], attempt: str | None) -> None:
    """Refuse two of these flags, and one with an attempt."""
    given = [flag for flag, is_given in flags.items() if is_given]
    if len(given) > 1:
        raise UsageError(f"{' and '.join(given)} exclude each other", "give one of them")
    if given and attempt is not None:
        fault = f"{given[0]} is for a whole run, not for one attempt"
        raise UsageError(fault, f"leave out {attempt!r}")


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


MOST_PORT = 65_535


@click.command(cls=Command)
@click.option(
    "--port",
    type=Number(int, 1, MOST_PORT),
    help="Port to listen at.  [default: 8321, or a free one]",
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
