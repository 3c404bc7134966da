"""`eureka ui`: the runs of this machine in a browser."""

from __future__ import annotations

from pathlib import Path

import click

from eureka_agent.cli.command import FILE, Command, Number
from eureka_agent.cli.output import say

MOST_PORT = 65_535


@click.command(cls=Command)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen at. Beyond this machine it needs a password.",
)
@click.option(
    "--port",
    type=Number(int, 1, MOST_PORT),
    help="Port to listen at.  [default: 8321, or a free one]",
)
@click.option(
    "--password-file",
    type=FILE,
    help="File whose first line is the password.  [default: EUREKA_UI_PASSWORD, else a token]",
)
@click.option(
    "--browser/--no-browser", default=True, help="Open a browser where there is a screen."
)
def ui(host: str, port: int | None, password_file: Path | None, browser: bool) -> None:
    """Show the runs of this machine in a browser, running ones as they grow.

    The page prints its address, with a token that lets a browser in. Ctrl-C ends it.

    \b
    eureka ui
    eureka ui --port 9000 --no-browser
    """
    from eureka_agent.web.access import read_password
    from eureka_agent.web.server import access_of, bind, serve

    password = read_password(password_file)
    with bind(host, port) as listening:
        serve(listening, access_of(listening, host, password), say, browser=browser)
