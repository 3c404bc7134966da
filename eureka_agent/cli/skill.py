"""`eureka skill`: how a coding agent uses this program by its commands."""

from __future__ import annotations

from pathlib import Path

import click

from eureka_agent.cli.command import Command

PAGE = Path(__file__).with_name("SKILL.md")


@click.command(cls=Command)
def skill() -> None:
    """Print a SKILL.md: it teaches a coding agent with a shell to use this program.

    \b
    eureka skill > SKILL.md
    """
    click.echo(PAGE.read_text(encoding="utf-8"), nl=False)
