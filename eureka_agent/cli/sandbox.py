"""`eureka sandbox`: the Docker wall's image, and the containers that nobody ends any more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from eureka_agent.cli.command import FILE, Group
from eureka_agent.cli.output import FORMAT, print_json
from eureka_agent.invocation import command


class DockerGroup(Group):
    """Commands that are about the Docker wall alone, so no hint of theirs offers another one."""

    def invoke(self, context: click.Context) -> Any:
        """Call the command. Raises WallError."""
        from eureka_agent.errors import OTHER_WALL, WallError

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
    "--base-image",
    metavar="NAME",
    help=(
        "Image to build on, such as python:3.11-slim; 'host': one made of this machine's own"
        " Python. Default: as it was last, at first 'host'."
    ),
)
@click.option(
    "--requirements",
    type=FILE,
    metavar="FILE",
    help=(
        "Requirements file of further packages that your environments import. An empty file: none."
    ),
)
@click.option(
    "--wheelhouse",
    type=FILE,
    metavar="DIR",
    help="Use the wheels in DIR; nothing is downloaded.",
)
@click.option(
    "--download-only",
    type=FILE,
    metavar="DIR",
    help="Only download the wheels into DIR, for a machine without a network. Needs no engine.",
)
def build(
    base_image: str | None,
    requirements: Path | None,
    wheelhouse: Path | None,
    download_only: Path | None,
) -> None:
    """Build the image that workers run in, with the packages that are installed here.

    A search builds it too, when it is missing: after an update of a package there is no image of
    its name, and a new one is made. --base-image and --requirements are kept in the cache
    (~/.cache/eureka-agent/sandbox.json), so that searches use the same image.

    \b
    eureka sandbox build
    eureka sandbox build --base-image python:3.11-slim --requirements requirements.txt
    """
    from eureka_agent.sandbox.docker.image import (
        HOST_BASE,
        Choice,
        ensure_image,
        image_for,
        keep_choice,
        read_choice,
    )
    from eureka_agent.sandbox.docker.packages import OPTIONAL_ROOTS, pinned
    from eureka_agent.sandbox.docker.wheelhouse import fill

    choice = Choice() if base_image and requirements else read_choice()
    choice = Choice(
        base_image or choice.base_image,
        choice.requirements if requirements is None else _read_requirements(requirements),
    )
    if download_only is not None:
        fill(download_only, pinned(optional=OPTIONAL_ROOTS), choice.requirements)
        click.echo(
            f"wheels are in {download_only}; there: {command('sandbox build --wheelhouse DIR')}"
        )
        return
    from eureka_agent.sandbox.docker.engine import connect

    engine = connect()
    recipe = image_for(engine, choice)
    tag = ensure_image(engine, recipe, click.echo, wheelhouse)
    keep_choice(choice)
    base = "this machine's Python" if choice.base_image == HOST_BASE else choice.base_image
    click.echo(f"{tag} is ready: {len(recipe.pins)} packages on {base}")


@sandbox.command("list")
@FORMAT
def list_command(output_format: str) -> None:
    """List images and containers.

    \b
    eureka sandbox list
    """
    from eureka_agent.errors import WallNotBuiltError
    from eureka_agent.sandbox.docker.engine import connect
    from eureka_agent.sandbox.docker.image import built_image, list_images, read_choice
    from eureka_agent.sandbox.docker.leftovers import driver_of, list_containers, name_of
    from eureka_agent.sandbox.docker.markers import is_gone

    engine = connect()
    try:
        current = built_image(engine, read_choice())
    except WallNotBuiltError:
        current = ""
    images = [
        {"image": tag, "bytes": image.attrs.get("Size", 0), "current": tag == current}
        for image in list_images(engine)
        for tag in image.tags
    ]
    containers = [
        {
            "container": name_of(container),
            "state": container["State"],
            "driver": driver_of(container).get("pid", ""),
            "left_behind": is_gone(driver_of(container)),
        }
        for container in list_containers(engine)
    ]
    if output_format == "json":
        print_json({"images": images, "containers": containers})
        return
    for entry in images:
        mark = "  (searches use it)" if entry["current"] else ""
        click.echo(f"image      {entry['image']}  {entry['bytes'] / 1e6:.0f} MB{mark}")
    for entry in containers:
        mark = f", which is gone: {command('sandbox clean')}" if entry["left_behind"] else ""
        click.echo(
            f"container  {entry['container']}  {entry['state']}, of process {entry['driver']}{mark}"
        )
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
    from eureka_agent.errors import WallError
    from eureka_agent.sandbox.docker.engine import connect
    from eureka_agent.sandbox.docker.image import list_images, remove_image
    from eureka_agent.sandbox.docker.leftovers import remove_leftovers

    engine = connect()
    removed = remove_leftovers(engine, everything)
    click.echo(f"removed {len(removed)} container{'s' if len(removed) != 1 else ''}")
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
    click.echo(f"removed {count} image{'s' if count != 1 else ''}")


_EXPECTED_REQUIREMENT = "expected names of packages, with versions if you like: 'scipy>=1.14'"


def _read_requirements(path: Path) -> str:
    from packaging.requirements import InvalidRequirement, Requirement

    from eureka_agent.errors import SettingsError, system_reason

    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = system_reason(error) if isinstance(error, OSError) else "it is not UTF-8"
        raise SettingsError(
            f"cannot read the requirements {str(path)!r}: {reason}",
            "name a file of package names, one a line",
        ) from None
    kept = [line.strip() for line in lines if line.strip() and not line.strip().startswith("#")]
    for line in kept:
        if (
            line.startswith(("-", ".", "/")) or "://" in line
        ):  # the file is read elsewhere, and the image has no network
            raise SettingsError(
                f"{str(path)!r} has the line {line!r}",
                _EXPECTED_REQUIREMENT,
            )
        try:
            Requirement(line.partition(" #")[0])
        except InvalidRequirement:
            raise SettingsError(
                f"{str(path)!r} has the line {line!r}", _EXPECTED_REQUIREMENT
            ) from None
    return "\n".join(kept)
