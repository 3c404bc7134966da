"""`eureka sandbox`: the Docker wall's image, and leftover containers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from eureka_agent.cli.command import FILE, Group
from eureka_agent.cli.critique import read_text
from eureka_agent.cli.output import FORMAT, print_json
from eureka_agent.errors import OTHER_WALL, SettingsError, WallError, WallNotBuiltError
from eureka_agent.invocation import command
from eureka_agent.wording import plural

_REMOVAL_SECONDS = 300.0


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
    """Build the image of the Docker wall, list what there is, clean up.

    \b
    eureka sandbox build
    eureka sandbox list
    eureka sandbox clean
    """


@sandbox.command()
@click.option(
    "--requirements",
    type=FILE,
    metavar="FILE",
    help=(
        "Requirements file of further packages that your environments import, which are installed"
        " here. An empty file: none. Default: as it was last."
    ),
)
def build(requirements: Path | None) -> None:
    """Build the image that workers run in, a copy of this Python and of the packages here.

    Nothing is downloaded. A search builds it too, when it is missing: after an update of a package
    there is no image of its name, and a new one is made. --requirements is kept in the cache
    (~/.cache/eureka-agent/requirements.txt), so that searches use the same image.

    \b
    eureka sandbox build
    eureka sandbox build --requirements requirements.txt
    """
    from eureka_agent.sandbox.docker.build import ensure_image
    from eureka_agent.sandbox.docker.engine import connect
    from eureka_agent.sandbox.docker.recipe import current_recipe, keep_requirements

    asked = None if requirements is None else _read_requirements(requirements)
    engine = connect()
    recipe = current_recipe(engine.has_gpus, asked)
    tag = ensure_image(engine, recipe, click.echo)
    if asked is not None:
        keep_requirements(asked)
    click.echo(f"{tag} is ready: {len(recipe.pins)} packages on this machine's Python")


@sandbox.command("list")
@FORMAT
def list_command(output_format: str) -> None:
    """List images and containers.

    \b
    eureka sandbox list
    """
    from eureka_agent.sandbox.docker import leftovers
    from eureka_agent.sandbox.docker.build import built_image
    from eureka_agent.sandbox.docker.engine import connect
    from eureka_agent.sandbox.docker.markers import is_gone

    engine = connect()
    try:
        current = built_image(engine)
    except WallNotBuiltError:
        current = ""
    images = [
        {"image": tag, "bytes": image.attrs.get("Size", 0), "current": tag == current}
        for image in leftovers.list_images(engine)
        for tag in image.tags
    ]
    containers = [
        {
            "container": leftovers.name_of(container),
            "state": container["State"],
            "driver": (driver := leftovers.driver_of(container)).get("pid", ""),
            "left_behind": is_gone(driver),
        }
        for container in leftovers.list_containers(engine)
    ]
    if output_format == "json":
        print_json({"images": images, "containers": containers})
        return
    for entry in images:
        mark = "  (searches use it)" if entry["current"] else ""
        click.echo(f"image      {entry['image']}  {entry['bytes'] / 1e6:.0f} MB{mark}")
    for entry in containers:
        mark = f", which is gone: {command('sandbox clean')}" if entry["left_behind"] else ""
        place = f"{entry['container']}  {entry['state']}"
        click.echo(f"container  {place}, of process {entry['driver']}{mark}")
    if not any(entry["current"] for entry in images):
        click.echo(
            "there is no image for what is installed here; the first search builds it, or:"
            f" {command('sandbox build')}"
        )


@sandbox.command()
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Containers of searches that are running too: they fail.",
)
@click.option(
    "--images", "with_images", is_flag=True, help="Images too; the next search builds one."
)
def clean(everything: bool, with_images: bool) -> None:
    """Remove containers that a killed search has left.

    \b
    eureka sandbox clean
    eureka sandbox clean --images
    """
    from eureka_agent.sandbox.docker.engine import CALL_SECONDS, connect
    from eureka_agent.sandbox.docker.leftovers import list_images, remove_image, remove_leftovers

    # an image has many files
    engine = connect(timeout_s=_REMOVAL_SECONDS if with_images else CALL_SECONDS)
    removed = remove_leftovers(engine, everything)
    click.echo(f"removed {plural(len(removed), 'container')}")
    if not with_images:
        return
    count = 0
    for image in list_images(engine):
        try:
            remove_image(engine, image)
        except WallError as error:  # a search is using it
            click.echo(f"kept {', '.join(image.tags)}: {error.message}", err=True)
        else:
            count += 1
    click.echo(f"removed {plural(count, 'image')}")


def _read_requirements(path: Path) -> str:
    from eureka_agent.sandbox.docker.recipe import parse_requirements

    hint = "name a file of package names, one a line"
    text = read_text(path, "the requirements", hint, SettingsError)
    parse_requirements(text)
    return text
