"""`eureka critique`: the critic's findings on reward functions, like a linter's."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Collection, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from eureka_agent.cli.command import FILE, Command
from eureka_agent.cli.files import read_reward_file, reward_files, write_reward_file
from eureka_agent.cli.options import given_settings, settings_options
from eureka_agent.cli.output import FORMAT, print_json
from eureka_agent.errors import EnvironmentLoadError
from eureka_agent.invocation import command
from eureka_agent.settings import THE_FLAGS, SearchSettings, parse_settings

if TYPE_CHECKING:
    from eureka_agent.records import Verdict

REJECTED = 1
MENDED = "M401"
"""Code of the notes on repairs."""
UNKNOWN_VARIABLE = "C303"
"""Code of an argument that is none of the environment's variables."""


@click.command(cls=Command)
@click.argument("rewards", type=FILE, nargs=-1, required=True, metavar="REWARD…")
@settings_options(("env", "task", "dry_run_timeout", "sandbox"))
@click.option(
    "--private",
    is_flag=True,
    help="Let them read private variables, as the environment's own baselines may.",
)
@click.option(
    "--fix",
    is_flag=True,
    help="Write what has one sure repair, repaired, into the file, where it is accepted.",
)
@FORMAT
def critique(
    rewards: tuple[Path, ...], private: bool, fix: bool, output_format: str, **flags: Any
) -> None:
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
    verdicts = asyncio.run(_judge(sources, settings, private)) if sources else {}
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
    from eureka_agent.critic.render import render_line, render_verdict
    from eureka_agent.report.terminal import CleanConsole

    console = CleanConsole(highlight=False, soft_wrap=True, markup=True)
    render = render_line if several else render_verdict
    for path, verdict in verdicts.items():
        source = sources.get(path, "")
        console.print(render(_on_own_text(verdict, source), source, str(path), markup=True))
        if fix is not None and verdict.repaired is not None and (fix or not several):
            console.print(_repair_words(path, verdict, fix), markup=False)
        elif fix and not several:
            note = f"{path}: nothing in it has a sure repair, so it is left as it is"
            console.print(note, markup=False)
    codes = {finding.code for verdict in verdicts.values() for finding in verdict.findings}
    if UNKNOWN_VARIABLE in codes and not several:
        all_of_them = command(shlex.join(["envs", environment]))
        console.print(f"the variables of the environment: {all_of_them}", markup=False)


def _written(path: Path, verdict: Verdict) -> bool:
    """Write a repaired reward, unless it is rejected: its findings name the old lines."""
    from eureka_agent.critic.repair import standalone

    if verdict.repaired is None or not verdict.accepted:
        return False
    write_reward_file(path, standalone(verdict.repaired))
    return True


def _repair_words(path: Path, verdict: Verdict, fix: bool) -> str:
    """`reward.py: written, with 2 repairs`."""
    from eureka_agent.wording import plural

    repairs = plural(sum(finding.code == MENDED for finding in verdict.findings), "repair")
    if not fix:
        return f"{path}: judged with {repairs}, which --fix writes into the file"
    if verdict.accepted:
        return f"{path}: written, with {repairs}"
    then = "mend the errors, then --fix again"
    return f"{path}: not written: {repairs} would not make it accepted; {then}"


def _on_own_text(verdict: Verdict, source: str) -> Verdict:
    """Verdict on a repaired source for the original text: columns in repaired lines are dropped."""
    if verdict.repaired is None:
        return verdict
    pairs = zip_longest(source.splitlines(), verdict.repaired.splitlines())
    changed = {number for number, (own, mended) in enumerate(pairs, 1) if own != mended}
    findings = tuple(
        each.model_copy(update={"column": None})
        if each.code != MENDED and each.line in changed
        else each
        for each in verdict.findings
    )
    return verdict.model_copy(update={"findings": findings})


def _read(paths: Sequence[Path], several: bool) -> tuple[dict[Path, str], dict[Path, Verdict]]:
    """Sources and verdicts on unreadable files. Raises EnvironmentLoadError for a single one."""
    from eureka_agent.critic.parse import unreadable_file
    from eureka_agent.records import Verdict

    sources: dict[Path, str] = {}
    unreadable: dict[Path, Verdict] = {}
    for path in paths:
        try:
            sources[path] = read_reward_file(path)
        except EnvironmentLoadError as error:
            if not several:
                raise
            reason = error.message.rpartition(f"{str(path)!r}: ")[2]
            unreadable[path] = Verdict(findings=(unreadable_file(reason, error.hint),))
    return sources, unreadable


async def _judge(
    sources: dict[Path, str], settings: SearchSettings, private: bool
) -> dict[Path, Verdict]:
    import tempfile

    from eureka_agent.critic.critic import Critic
    from eureka_agent.designer.given import given_reward
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
                path: await critic.judge(given_reward(source, trusted=private))
                for path, source in sources.items()
            }
        finally:
            await dry_runner.close()
