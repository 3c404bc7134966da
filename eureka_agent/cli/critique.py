"""`eureka critique`: what the critic says of a reward function, like a linter."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from eureka_agent.cli.command import FILE, Command
from eureka_agent.cli.files import read_reward_file, reward_files, write_reward_file
from eureka_agent.cli.options import given_settings, settings_options
from eureka_agent.cli.output import FORMAT, print_json
from eureka_agent.settings import THE_FLAGS, SearchSettings, parse_settings

if TYPE_CHECKING:
    from eureka_agent.records import Verdict

REJECTED = 1


@click.command(cls=Command)
@click.argument("rewards", type=FILE, nargs=-1, required=True, metavar="REWARD…")
@settings_options(("env", "task", "dry_run_timeout", "sandbox"))
@click.option(
    "--private", is_flag=True, help="Let them read private variables, as the environment's own baselines may."
)
@click.option("--fix", is_flag=True, help="Write what has one sure repair, repaired, into the file.")
@FORMAT
def critique(rewards: tuple[Path, ...], private: bool, fix: bool, output_format: str, **flags: Any) -> None:
    """Check the reward functions in the files REWARD before a second of training is spent on them.

    A folder stands for all Python files in it. Several are judged by one worker, with a line each. Exit status: 0 all accepted, 1 one was rejected, 2
    one could not be checked.

    \b
    eureka critique reward.py --env ant
    eureka critique reward.py --env cartpole --task swingup --format json
    eureka critique rewards/ another.py --env ant --fix
    """
    import asyncio

    settings = parse_settings(SearchSettings, given_settings(None, flags), THE_FLAGS)
    sources = {path: read_reward_file(path) for path in reward_files(rewards)}
    verdicts = asyncio.run(_judge(sources, settings, private))
    if fix:
        for path, verdict in verdicts.items():
            if verdict.repaired is not None:
                write_reward_file(path, verdict.repaired)
    print_verdicts(verdicts, sources, output_format, several=len(rewards) > 1 or rewards[0].is_dir())
    if not all(verdict.accepted for verdict in verdicts.values()):
        sys.exit(REJECTED)


def print_verdicts(
    verdicts: Mapping[Path, Verdict], sources: Mapping[Path, str], output_format: str, *, several: bool
) -> None:
    """Print what the critic says of the rewards in some files; of `several` a line each."""
    if output_format == "json":
        records = [{"file": str(path), **verdict.model_dump(mode="json")} for path, verdict in verdicts.items()]
        print_json({"verdicts": records} if several else records[0])
    else:
        from eureka_agent.critic.render import render_line, render_verdict
        from eureka_agent.report.console import CleanConsole

        console = CleanConsole(highlight=False, soft_wrap=True, markup=True)
        for path, verdict in verdicts.items():
            source = verdict.repaired or sources[path]
            render = render_line if several else render_verdict
            console.print(render(verdict, source, str(path), markup=True))


async def _judge(sources: dict[Path, str], settings: SearchSettings, private: bool) -> dict[Path, Verdict]:
    import tempfile

    from eureka_agent.critic.critic import Critic
    from eureka_agent.sandbox.choose import choose_wall
    from eureka_agent.sandbox.dry_runner import DryRunner

    with tempfile.TemporaryDirectory(prefix="eureka-") as scratch:
        wall = choose_wall(settings.sandbox)
        dry_runner = DryRunner(wall, settings.env, settings.task, Path(scratch), settings.dry_run_timeout)
        try:
            critic = Critic(await dry_runner.start(), dry_runner)
            return {path: await critic.judge(source, trusted=private) for path, source in sources.items()}
        finally:
            await dry_runner.close()
