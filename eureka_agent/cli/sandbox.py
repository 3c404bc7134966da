"""`eureka sandbox`: containers of the Docker wall."""

from __future__ import annotations

from typing import Any

import click

from eureka_agent.cli.command import Group
from eureka_agent.cli.output import FORMAT, print_json
from eureka_agent.errors import OTHER_WALL, WallError
from eureka_agent.invocation import command
from eureka_agent.wording import plural


class DockerGroup(Group):
    """Commands on the Docker wall, whose hints offer no other wall."""

    def invoke(self, context: click.Context) -> Any:
        """Call the command. Raises WallError."""
        try:
            return super().invoke(context)
        except WallError as error:
            error.hint = error.hint.removesuffix(OTHER_WALL)
            raise


@click.group(cls=DockerGroup)
def sandbox() -> None:
    """List and remove containers of the Docker wall.

    \b
    eureka sandbox list
    eureka sandbox clean
    """


@sandbox.command("list")
@FORMAT
def list_command(output_format: str) -> None:
    """List containers.

    \b
    eureka sandbox list
    """
    from eureka_agent.sandbox.docker import leftovers
    from eureka_agent.sandbox.docker.engine import connect
    from eureka_agent.sandbox.docker.markers import is_gone

    containers = [
        {
            "container": leftovers.name_of(container),
            "state": container["State"],
            "driver": (driver := leftovers.driver_of(container)).get("pid", ""),
            "left_behind": is_gone(driver),
        }
        for container in leftovers.list_containers(connect())
    ]
    if output_format == "json":
        print_json({"containers": containers})
        return
    for entry in containers:
        mark = f", which is gone: {command('sandbox clean')}" if entry["left_behind"] else ""
        click.echo(f"{entry['container']}  {entry['state']}, of process {entry['driver']}{mark}")
    if not containers:
        click.echo("no containers")


@sandbox.command()
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Containers of searches that are running too: they fail.",
)
def clean(everything: bool) -> None:
    """Remove containers that a killed search has left, and images that no container uses. An image
    has links alone, and the next worker makes it again.

    \b
    eureka sandbox clean
    """
    from eureka_agent.sandbox.docker.engine import connect
    from eureka_agent.sandbox.docker.leftovers import remove_images, remove_leftovers

    engine = connect()
    click.echo(f"removed {plural(len(remove_leftovers(engine, everything)), 'container')}")
    remove_images(engine)
