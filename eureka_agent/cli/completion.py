"""`eureka completion`: a script by which a shell completes commands, options and values."""

from __future__ import annotations

import re

import click

from eureka_agent.cli.command import Choice, Command
from eureka_agent.invocation import program


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
    script = completion_class(cli, {}, "eureka", "_EUREKA_COMPLETE").source()
    if program() != "eureka":  # bash calls the typed program, the others call it by name
        script = re.sub(r"^.*\$\+commands\[eureka\].*\n", "", script, flags=re.MULTILINE)
        script = re.sub(r"(?<= )eureka(?=\))", lambda _: program(), script)
    click.echo(script)
