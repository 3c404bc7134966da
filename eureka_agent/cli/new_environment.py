"""`eureka envs --new`: a template of an environment."""

from __future__ import annotations

import shlex
from pathlib import Path

from eureka_agent.cli.command import UsageError
from eureka_agent.cli.output import print_json, say
from eureka_agent.invocation import command

KINDS = ("torch", "mujoco", "gymnasium")


def new_environment(folder: Path, kind: str | None, output_format: str) -> None:
    """Write a template and print the next steps. Raises EnvironmentLoadError."""
    from eureka_agent.simulation.catalogue import write_new_environment

    if kind is None:
        kinds = "|".join(KINDS)
        raise UsageError("--new was given without --kind", f"name the kind: --kind {kinds}")
    files = write_new_environment(folder, kind)
    if output_format == "json":
        print_json({"folder": str(folder), "kind": kind, "files": [str(path) for path in files]})
        return
    for path in files:
        say(f"  {path}")
    # a bare name would be a built-in environment
    place = shlex.quote(str(folder) if "/" in str(folder) else f"./{folder}")
    say(
        "It works as it is; lines to change are marked CHANGE. Then:\n"
        f"  {command(f'envs --check {place}')}\n"
        f"  {command(f'search --env {place}')}"
    )
