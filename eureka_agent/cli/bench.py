"""`eureka bench`: methods × tasks × seeds at equal env steps, with their statistics."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from eureka_agent.cli.command import FILE, Command, Number, typed_options
from eureka_agent.cli.output import FORMAT, print_json, say, wrapped
from eureka_agent.errors import RunFolderError
from eureka_agent.invocation import command

if TYPE_CHECKING:
    from eureka_agent.batch.suite import Suite

TABLES = "bench.md"


@click.command(cls=Command)
@click.argument("suite", required=False)
@click.option("--envs", type=FILE, help="Benchmark all environments in this folder.")
@click.option(
    "--task", "tasks", multiple=True, help="Only this task: ENV or ENV:TASK; may be given again."
)
@click.option("--seeds", type=Number(int, 1, 100), help="Searches of each method on each task.")
@click.option("--model", "models", multiple=True, help="Designer, as a search has it.")
@click.option("--folder", type=FILE, help="Its folder.  [default: bench-SUITE in the runs folder]")
@click.option("--plan", is_flag=True, help="Print what it would train, and start nothing.")
@click.option("--results", is_flag=True, help="Print what there is so far, and run nothing.")
@click.option("--yes", is_flag=True, help="Ask nothing.")
@FORMAT
def bench(
    suite: str | None,
    envs: Path | None,
    tasks: tuple[str, ...],
    seeds: int | None,
    models: tuple[str, ...],
    folder: Path | None,
    plan: bool,
    results: bool,
    yes: bool,
    output_format: str,
) -> None:
    """Compare methods on the tasks of SUITE, a name or a file; without it list the suites.

    All methods get the same env steps on each task. The same command goes on after a stop.

    \b
    eureka bench quick
    eureka bench held-out --envs path/to/folder
    eureka bench my_suite.yaml --plan
    """
    from eureka_agent.archive.run_folder import BATCH_FILE, runs_folder
    from eureka_agent.batch.folder import check_folder
    from eureka_agent.batch.suite import read_suite, with_choices
    from eureka_agent.batch.suite_searches import check_benchmark, planned_searches
    from eureka_agent.cli.batch import print_plan, run_planned

    if suite is None:
        _list(output_format)
        return
    chosen = with_choices(read_suite(suite), envs, tasks, seeds, models)
    target = runs_folder() / f"bench-{chosen.name}" if folder is None else folder
    options = typed_options(click.get_current_context(), leave_out=("plan", "results"))
    again = command(shlex.join(["bench", suite, *options]))
    file, searches = planned_searches(chosen)
    if not results:
        check_folder(target)
        check_benchmark(searches, target)
        if plan:
            print_plan(file, searches, target, output_format)
            return
        run_planned(file, searches, target, output_format, again, yes=yes)
    elif not (target / BATCH_FILE).is_file():
        raise RunFolderError(
            f"the benchmark {chosen.name!r} has not begun: there is none in {str(target)!r}",
            f"begin it: `{again}`",
        )
    _show(chosen, target, again, output_format)


def _list(output_format: str) -> None:
    from eureka_agent.batch.suite import built_in_suites, read_suite

    suites = {name: read_suite(name) for name in built_in_suites()}
    if output_format == "json":
        print_json({"suites": {name: each.model_dump() for name, each in suites.items()}})
        return
    for name, each in suites.items():
        say(f"{name:<10} {wrapped(each.description, 11)}")
    say(f"\nRun one: {command('bench NAME')}")
    say(f"One of your own is a file: {command('bench FILE')}; docs/bench.md says what it holds")


def _show(suite: Suite, folder: Path, again: str, output_format: str) -> None:
    """Print the results. `again`: the command that goes on with the benchmark."""
    from eureka_agent.archive.files import write_text
    from eureka_agent.batch.suite_results import read_results
    from eureka_agent.batch.suite_searches import task_case
    from eureka_agent.batch.suite_tables import as_json, document
    from eureka_agent.report.markdown import document_markdown
    from eureka_agent.report.terminal import list_console, render_sections

    names = [task_case(task)["name"] for task in suite.tasks]
    found = read_results(folder, names, list(suite.methods))
    told = document(found, f"Benchmark {suite.name}", again)
    write_text(folder / TABLES, document_markdown(told))
    if output_format == "json":
        print_json({"suite": suite.name, "folder": str(folder), **as_json(found)})
        return
    console = list_console()
    if console.is_terminal:
        console.print(told.title, "", *render_sections(told.sections), sep="\n", highlight=False)
    else:
        say(document_markdown(told))
    say(str(folder / TABLES))
