"""`eureka critique`: what the critic says of a reward function, like a linter."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from eureka_agent.records import Verdict

REJECTED = 1


@click.command()
@click.argument("reward", type=click.Path(path_type=Path))
@click.option("--env", required=True, help="Environment: a built-in name, a folder, or gymnasium:<id>.")
@click.option("--task", default=None, help="Task of the environment; default: its only or first one.")
@click.option("--private", is_flag=True, help="Let it read private variables, as the environment's own baselines may.")
@click.option("--timeout", default=10.0, show_default=True, help="Seconds that the dry run may take.")
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How to print it.",
)
def critique(reward: Path, env: str, task: str | None, private: bool, timeout: float, output_format: str) -> None:
    """Check the reward function in the file REWARD before a second of training is spent on it.

    Exit status: 0 accepted, 1 rejected, 2 it could not be checked.

    \b
    eureka critique reward.py --env ant
    eureka critique reward.py --env cartpole --task swingup --format json
    """
    import asyncio

    from eureka_agent.errors import EnvironmentLoadError

    try:
        source = reward.read_text()
    except OSError as error:
        message = f"cannot read the reward function {str(reward)!r}: {error.strerror}"
        raise EnvironmentLoadError(message, "name a Python file") from None
    except UnicodeDecodeError as error:
        message = f"the reward function {str(reward)!r} is not text: {error.reason}"
        raise EnvironmentLoadError(message, "name a Python file") from None
    verdict = asyncio.run(_judge(source, env, task, private, timeout))
    if output_format == "json":
        click.echo(verdict.model_dump_json(indent=2))
    else:
        from rich.console import Console

        from eureka_agent.critic.render import render_verdict

        text = render_verdict(verdict, source, str(reward), markup=True)
        Console(highlight=False, soft_wrap=True).print(text)
    if not verdict.accepted:
        sys.exit(REJECTED)


async def _judge(source: str, env: str, task: str | None, private: bool, timeout_s: float) -> Verdict:
    import tempfile

    from eureka_agent.critic.critic import Critic
    from eureka_agent.sandbox.choose import choose_wall
    from eureka_agent.sandbox.dry_runner import DryRunner

    with tempfile.TemporaryDirectory(prefix="eureka-") as scratch:
        dry_runner = DryRunner(choose_wall("auto"), env, task, Path(scratch), timeout_s)
        try:
            return await Critic(await dry_runner.start(), dry_runner).judge(source, trusted=private)
        finally:
            await dry_runner.close()
