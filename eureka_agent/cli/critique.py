"""`eureka critique`: what the critic says of a reward function, like a linter."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from eureka_agent.cli.files import read_reward_file
from eureka_agent.cli.options import given_settings, settings_options
from eureka_agent.cli.output import FORMAT, print_json
from eureka_agent.settings import SearchSettings, parse_settings

if TYPE_CHECKING:
    from eureka_agent.records import Verdict

REJECTED = 1


@click.command()
@click.argument("reward", type=click.Path(path_type=Path))
@settings_options(("env", "task", "dry_run_timeout", "sandbox"))
@click.option("--private", is_flag=True, help="Let it read private variables, as the environment's own baselines may.")
@FORMAT
def critique(reward: Path, private: bool, output_format: str, **flags: Any) -> None:
    """Check the reward function in the file REWARD before a second of training is spent on it.

    Exit status: 0 accepted, 1 rejected, 2 it could not be checked.

    \b
    eureka critique reward.py --env ant
    eureka critique reward.py --env cartpole --task swingup --format json
    """
    import asyncio

    settings = parse_settings(SearchSettings, given_settings(None, flags), "the flags")
    source = read_reward_file(reward)
    verdict = asyncio.run(_judge(source, settings, private))
    if output_format == "json":
        print_json(verdict.model_dump(mode="json"))
    else:
        from eureka_agent.critic.render import render_verdict
        from eureka_agent.report.console import CleanConsole

        text = render_verdict(verdict, source, str(reward), markup=True)
        CleanConsole(highlight=False, soft_wrap=True, markup=True).print(text)
    if not verdict.accepted:
        sys.exit(REJECTED)


async def _judge(source: str, settings: SearchSettings, private: bool) -> Verdict:
    import tempfile

    from eureka_agent.critic.critic import Critic
    from eureka_agent.sandbox.choose import choose_wall
    from eureka_agent.sandbox.dry_runner import DryRunner

    with tempfile.TemporaryDirectory(prefix="eureka-") as scratch:
        wall = choose_wall(settings.sandbox)
        dry_runner = DryRunner(wall, settings.env, settings.task, Path(scratch), settings.dry_run_timeout)
        try:
            return await Critic(await dry_runner.start(), dry_runner).judge(source, trusted=private)
        finally:
            await dry_runner.close()
