"""`eureka critique`: the critic's findings on a reward function, like a linter's."""

from __future__ import annotations

import re
import shlex
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from eureka_agent.cli.command import FILE, Command
from eureka_agent.cli.options import given_settings, settings_options
from eureka_agent.cli.output import FORMAT, print_json
from eureka_agent.errors import EnvironmentLoadError, system_reason
from eureka_agent.invocation import command
from eureka_agent.records import Finding, Verdict
from eureka_agent.settings import THE_FLAGS, SearchSettings, parse_settings
from eureka_agent.wording import plural

REJECTED = 1
MENDED = "M401"
UNKNOWN_VARIABLE = "C303"
"""Code of an argument that is none of the environment's variables."""


@click.command(cls=Command)
@click.argument("reward", type=FILE)
@settings_options(("env", "task", "dry_run_timeout", "sandbox"))
@click.option(
    "--fix",
    is_flag=True,
    help="Write what has one sure repair, repaired, into the file, where it is accepted.",
)
@FORMAT
def critique(reward: Path, fix: bool, output_format: str, **flags: Any) -> None:
    """Check the reward function in the file REWARD before a second of training is spent on it.

    Exit status: 0 accepted, 1 rejected, 2 nothing could be checked.

    \b
    eureka critique reward.py --env ant
    eureka critique reward.py --env cartpole --task swingup --format json
    eureka critique reward.py --env ant --fix
    """
    import asyncio

    from eureka_agent.critic.critic import judge_alone

    settings = parse_settings(SearchSettings, given_settings(None, flags), THE_FLAGS)
    source = read_reward_file(reward)
    verdict = asyncio.run(judge_alone(source, settings))
    written = fix and _written(reward, verdict)
    print_verdict(verdict, reward, source, settings.env, output_format, fix=fix, written=written)
    if not verdict.accepted:
        sys.exit(REJECTED)


def print_verdict(
    verdict: Verdict,
    path: Path,
    source: str,
    environment: str,
    output_format: str,
    *,
    fix: bool | None = None,
    written: bool = False,
) -> None:
    """Print the verdict on the reward in a file. `fix`: True if repairs go into the file, None if
    they never do."""
    if output_format == "json":
        print_json({"file": str(path), **verdict.model_dump(mode="json"), "written": written})
        return
    from eureka_agent.report.terminal import CleanConsole

    console = CleanConsole(highlight=False, soft_wrap=True)
    console.print(render_verdict(verdict, source, str(path)))
    if fix is not None and verdict.repaired is not None:
        console.print(_repair_words(path, verdict, fix))
    if any(finding.code == UNKNOWN_VARIABLE for finding in verdict.findings):
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


# ── verdicts as text ──────────────────────────────────────────────────────────────────────────────

_COLOURS = {"error": "red", "warning": "yellow", "note": "cyan"}


def render_verdict(verdict: Verdict, source: str, path: str) -> Text:
    parts = [render_finding(finding, source, path) for finding in verdict.findings]
    severities = Counter[str](finding.severity for finding in verdict.findings)
    counts = ", ".join(plural(severities[each], each) for each in _COLOURS if severities[each])
    steps = f"{', '.join(verdict.steps_run)}; {verdict.seconds:.1f} s"
    outcome, colour = ("accepted", "green") if verdict.accepted else ("rejected", "red")
    summary = f" ({counts or 'no findings'}; {steps})"
    return Text("\n").join([*parts, Text.assemble((outcome, f"bold {colour}"), summary)])


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


def _excerpt(finding: Finding, source: str) -> list[str]:
    lines = source.splitlines()
    if finding.line is None or not 0 < finding.line <= len(lines):
        return []
    text = lines[finding.line - 1]
    # tabs stay tabs, so that the caret stands below its character
    before = re.sub(r"[^\t]", " ", text[: (finding.column or 1) - 1])
    return [f"    {text}", *([f"    {before}^"] if finding.column is not None else [])]


# ── files ─────────────────────────────────────────────────────────────────────────────────────────


def read_reward_file(path: Path) -> str:
    """Source of the reward function in a file. Raises EnvironmentLoadError where it has none."""
    try:
        if (source := path.read_text(encoding="utf-8-sig")).strip():  # as Python reads a source
            return source
        reason = "the file is empty"
    except OSError as fault:
        reason = system_reason(fault)
    except UnicodeDecodeError as fault:
        reason = f"it is not UTF-8 ({fault.reason} at byte {fault.start})"
    raise EnvironmentLoadError(
        f"cannot read the reward function {str(path)!r}: {reason}",
        "name a Python file that defines compute_reward",
    )
