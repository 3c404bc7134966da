"""`eureka completion`: the script that makes a shell complete commands and options."""

from __future__ import annotations

import click

from eureka_agent.cli.command import Choice, Command


@click.command(cls=Command)
@click.argument("shell", type=Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a completion script.

    \b
    bash:  eval "$(eureka completion bash)"
    zsh:   eval "$(eureka completion zsh)"
    fish:  eureka completion fish | source
    """
    from click.shell_completion import get_completion_class

    from eureka_agent.cli.main import cli

    completion_class = get_completion_class(shell)
    assert completion_class is not None  # the choice above holds click's own shells
    click.echo(completion_class(cli, {}, "eureka", "_EUREKA_COMPLETE").source())
