"""`eureka critique`: the critic's findings on reward functions, like a linter's."""

from __future__ import annotations

import re
import shlex
import sys
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from eureka_agent.cli.command import FILE, Command
from eureka_agent.cli.options import given_settings, settings_options
from eureka_agent.cli.output import FORMAT, print_json
from eureka_agent.errors import EnvironmentLoadError, EurekaError, system_reason
from eureka_agent.invocation import command
from eureka_agent.records import Finding, Verdict
from eureka_agent.settings import THE_FLAGS, SearchSettings, parse_settings
from eureka_agent.wording import plural

REJECTED = 1
MENDED = "M401"
"""Code of the notes on repairs."""
UNKNOWN_VARIABLE = "C303"
"""Code of an argument that is none of the environment's variables."""


@click.command(cls=Command)
@click.argument("rewards", type=FILE, nargs=-1, required=True, metavar="REWARD…")
@settings_options(("env", "task", "dry_run_timeout", "sandbox"))
@click.option(
    "--fix",
    is_flag=True,
    help="Write what has one sure repair, repaired, into the file, where it is accepted.",
)
@FORMAT
def critique(rewards: tuple[Path, ...], fix: bool, output_format: str, **flags: Any) -> None:
    """Check the reward functions in the files REWARD before a second of training is spent on them.

    A folder stands for all Python files in it. Several are judged by one worker, with a line each,
    also for one that cannot be read. Exit status: 0 all accepted, 1 one was rejected, 2 nothing
    could be checked.

    \b
    eureka critique reward.py --env ant
    eureka critique reward.py --env cartpole --task swingup --format json
    eureka critique rewards/ another.py --env ant --fix
    """
    import asyncio

    settings = parse_settings(SearchSettings, given_settings(None, flags), THE_FLAGS)
    several = len(rewards) > 1 or rewards[0].is_dir()
    sources, unreadable = _read(reward_files(rewards), several)
    verdicts = asyncio.run(_judge(sources, settings)) if sources else {}
    verdicts = {path: unreadable.get(path) or verdicts[path] for path in (*sources, *unreadable)}
    written = [path for path, verdict in verdicts.items() if fix and _written(path, verdict)]
    print_verdicts(
        verdicts, sources, settings.env, output_format, several=several, fix=fix, written=written
    )
    if not all(verdict.accepted for verdict in verdicts.values()):
        sys.exit(REJECTED)


def print_verdicts(
    verdicts: Mapping[Path, Verdict],
    sources: Mapping[Path, str],
    environment: str,
    output_format: str,
    *,
    several: bool = False,
    fix: bool | None = None,
    written: Collection[Path] = (),
) -> None:
    """Print the verdicts on the rewards in some files; a line each for `several`. `fix`: True if
    repairs go into the files, None if they never do."""
    if output_format == "json":
        records = [
            {"file": str(path), **verdict.model_dump(mode="json"), "written": path in written}
            for path, verdict in verdicts.items()
        ]
        print_json({"verdicts": records} if several else records[0])
        return
    from eureka_agent.report.terminal import CleanConsole

    console = CleanConsole(highlight=False, soft_wrap=True)
    render = render_line if several else render_verdict
    for path, verdict in verdicts.items():
        source = sources.get(path, "")
        console.print(render(verdict, source, str(path)))
        if fix is not None and verdict.repaired is not None and (fix or not several):
            console.print(_repair_words(path, verdict, fix))
    codes = {finding.code for verdict in verdicts.values() for finding in verdict.findings}
    if UNKNOWN_VARIABLE in codes and not several:
        all_of_them = command(shlex.join(["envs", environment]))
        console.print(f"the variables of the environment: {all_of_them}")


def _written(path: Path, verdict: Verdict) -> bool:
    """Write a repaired reward, unless it is rejected: its findings name the old lines."""
    from eureka_agent.critic.repair import standalone

    if verdict.repaired is None or not verdict.accepted:
        return False
    try:
        path.write_text(standalone(verdict.repaired), encoding="utf-8")
    except OSError as error:
        raise EnvironmentLoadError(
            f"cannot write the repaired reward function {str(path)!r}: {system_reason(error)}",
            "leave out --fix, or make it writable",
        ) from None
    return True


def _repair_words(path: Path, verdict: Verdict, fix: bool) -> str:
    repairs = plural(sum(finding.code == MENDED for finding in verdict.findings), "repair")
    if not fix:
        return f"{path}: judged with {repairs}, which --fix writes into the file"
    if verdict.accepted:
        return f"{path}: written, with {repairs}"
    then = "mend the errors, then --fix again"
    return f"{path}: not written: {repairs} would not make it accepted; {then}"


def _read(paths: Sequence[Path], several: bool) -> tuple[dict[Path, str], dict[Path, Verdict]]:
    """Sources and verdicts on unreadable files. Raises EnvironmentLoadError for a single one."""
    from eureka_agent.critic.parse import finding

    sources: dict[Path, str] = {}
    unreadable: dict[Path, Verdict] = {}
    for path in paths:
        try:
            sources[path] = read_reward_file(path)
        except EnvironmentLoadError as error:
            if not several:
                raise
            reason = error.message.rpartition(f"{str(path)!r}: ")[2]
            fault = finding("P100", f"cannot be read: {reason}", hint=error.hint)
            unreadable[path] = Verdict(findings=(fault,))
    return sources, unreadable


async def _judge(sources: dict[Path, str], settings: SearchSettings) -> dict[Path, Verdict]:
    import tempfile

    from eureka_agent.critic.critic import Critic
    from eureka_agent.designer.interface import given_reward
    from eureka_agent.fleet.dry_runner import DryRunner
    from eureka_agent.fleet.jobs import Problem
    from eureka_agent.sandbox.choose import choose_wall

    with tempfile.TemporaryDirectory(prefix="eureka-") as scratch:
        wall = choose_wall(settings.sandbox)
        dry_runner = DryRunner(
            wall, Problem(settings.env, settings.task), Path(scratch), settings.dry_run_timeout
        )
        try:
            critic = Critic(await dry_runner.start(), dry_runner)
            return {
                path: await critic.judge(given_reward(source)) for path, source in sources.items()
            }
        finally:
            await dry_runner.close()


# ── verdicts as text ──────────────────────────────────────────────────────────────────────────────

_COLOURS = {"error": "red", "warning": "yellow", "note": "cyan"}


def render_verdict(verdict: Verdict, source: str, path: str) -> Text:
    parts = [render_finding(finding, source, path) for finding in verdict.findings]
    severities = Counter[str](finding.severity for finding in verdict.findings)
    counts = ", ".join(plural(severities[each], each) for each in _COLOURS if severities[each])
    steps = f"{', '.join(verdict.steps_run)}; {verdict.seconds:.1f} s"
    outcome, colour = _outcome(verdict)
    summary = f" ({counts or 'no findings'}; {steps})"
    return Text("\n").join([*parts, Text.assemble((outcome, f"bold {colour}"), summary)])


def render_line(verdict: Verdict, source: str, path: str) -> Text:
    """One line for a file among others: its first error, or the codes of its findings."""
    error = next((each for each in verdict.findings if each.severity == "error"), None)
    said = ", ".join(sorted({finding.code for finding in verdict.findings}))
    text = f"{path}{f' ({said})' if said else ''}"
    if error is not None:
        where = path if error.line is None else f"{path}:{error.line}"
        text = f"{where} {error.code} {error.message}"
    return Text.assemble(_outcome(verdict), f" {text}")


def render_finding(finding: Finding, source: str, path: str) -> Text:
    """`reward.py:3:5 C303 unknown variable 'torso_velocty': did you mean 'torso_velocity'?` with
    its line and a caret."""
    where = ":".join(str(part) for part in (path, finding.line, finding.column) if part is not None)
    is_short = finding.hint.startswith("did you mean")
    text = f" {finding.message}: {finding.hint}" if is_short else f" {finding.message}"
    code = finding.code if finding.severity == "error" else f"{finding.code} ({finding.severity})"
    lines = [Text.assemble((where, "bold"), " ", (code, _COLOURS[finding.severity]), text)]
    lines += [Text(line, "dim") for line in _excerpt(finding, source)]
    if finding.hint and not is_short:
        lines.append(Text.assemble(("  hint:", "cyan"), f" {finding.hint}"))
    return Text("\n").join(lines)


def _outcome(verdict: Verdict) -> tuple[str, str]:
    return ("accepted", "green") if verdict.accepted else ("rejected", "red")


def _excerpt(finding: Finding, source: str) -> list[str]:
    lines = source.splitlines()
    if finding.line is None or not 0 < finding.line <= len(lines):
        return []
    text = lines[finding.line - 1]
    # tabs stay tabs, so that the caret stands below its character
    before = re.sub(r"[^\t]", " ", text[: (finding.column or 1) - 1])
    return [f"    {text}", *([f"    {before}^"] if finding.column is not None else [])]


# ── files ─────────────────────────────────────────────────────────────────────────────────────────


def read_text(path: Path, what: str, hint: str, error: type[EurekaError]) -> str:
    """Text of a file that a person names. Raises `error`."""
    try:
        return path.read_text(encoding="utf-8-sig")  # as Python reads a source
    except OSError as fault:
        reason = system_reason(fault)
    except UnicodeDecodeError as fault:
        reason = f"it is not UTF-8 ({fault.reason} at byte {fault.start})"
    raise error(f"cannot read {what} {str(path)!r}: {reason}", hint)


def read_reward_file(path: Path) -> str:
    """Source of the reward function in a file. Raises EnvironmentLoadError where it has none."""
    what, hint = "the reward function", "name a Python file that defines compute_reward"
    source = read_text(path, what, hint, EnvironmentLoadError)
    if not source.strip():
        raise EnvironmentLoadError(f"cannot read {what} {str(path)!r}: the file is empty", hint)
    return source


def reward_files(paths: Sequence[Path]) -> list[Path]:
    """Files and folders' Python files, each once. Raises EnvironmentLoadError without one."""
    found: list[Path] = []
    for path in paths:
        files = sorted(path.glob("*.py")) if path.is_dir() else [path]
        if not files:
            hint = "name files with compute_reward, or their folder"
            raise EnvironmentLoadError(f"the folder {str(path)!r} has no Python file", hint)
        found += files
    return list(dict.fromkeys(found))
