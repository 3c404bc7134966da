"""`eureka export`: a run's reward and policy as files that work without this package."""

from __future__ import annotations

from pathlib import Path

import click

from eureka_agent.cli import completing
from eureka_agent.cli.command import FILE, Command
from eureka_agent.cli.output import FORMAT, print_json, say


@click.command(cls=Command)
@click.argument("run", shell_complete=completing.runs)
@click.argument("attempt", required=False, shell_complete=completing.attempts)
@click.option("--out", type=FILE, help="Folder to write; default: export/ in the run.")
@FORMAT
def export(run: str, attempt: str | None, out: Path | None, output_format: str) -> None:
    """Write the best reward and policy of RUN, or those of one ATTEMPT, as files that work without
    eureka_agent.

    ATTEMPT can be `randomised`: the best policy of trainings under other parameters.

    The reward as plain Python, wrappers for Gymnasium and Isaac Gym, the policy as ONNX and
    TorchScript, an example.

    \b
    eureka export latest
    eureka export latest 2-03 --out my_reward
    eureka export latest randomised
    """
    from eureka_agent.archive.run_folder import reading
    from eureka_agent.export.folder import default_folder, write_export
    from eureka_agent.search.summary import run_report

    with reading(run) as opened:
        folder = default_folder(opened.folder, attempt) if out is None else out
        written = write_export(opened, run_report(opened), attempt, folder)
    if output_format == "json":
        facts = {"run": opened.name, "attempt": written.attempt, "folder": str(written.folder)}
        files = [str(path) for path in written.files]
        print_json({**facts, "files": files, "missing": written.missing})
        return
    say(f"attempt {written.attempt} of {opened.name}:")
    for path in written.files:
        say(f"  {path}")
    for name, reason in written.missing.items():
        say(f"  without {name}: {reason}")
