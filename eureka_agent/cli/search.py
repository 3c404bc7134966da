"""`eureka search` and `eureka resume`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from eureka_agent.cli.options import given_settings, settings_options
from eureka_agent.cli.output import FORMAT
from eureka_agent.settings import SearchSettings

_FLAGS = [name for name in SearchSettings.model_fields if name != "sentence"]


@click.command()
@click.argument("sentence", required=False)
@click.option(
    "--config", type=click.Path(path_type=Path), help="YAML file with any of these settings; flags override it."
)
@settings_options(sorted(_FLAGS, key=lambda name: name in SearchSettings.__base__.model_fields))  # type: ignore[union-attr]
@FORMAT
def search(sentence: str | None, config: Path | None, output_format: str, **flags: Any) -> None:
    """Search a reward function for the task that SENTENCE describes.

    \b
    eureka search "balance the pole" --env cartpole
    eureka search "swing the pole up and balance it" --env cartpole --task swingup --iterations 3 --samples 8
    """
    from eureka_agent.archive.run_folder import command_line
    from eureka_agent.cli.watch import watch
    from eureka_agent.search.session import start

    values = given_settings(config, {"sentence": sentence, **flags})
    watch(lambda observer: start(values, None, command_line(), observer), output_format)


@click.command()
@click.argument("run")
@FORMAT
def resume(run: str, output_format: str) -> None:
    """Go on with RUN (a folder, a name, the beginning of one, or `latest`) from what is missing."""
    from eureka_agent.archive.run_folder import find_run
    from eureka_agent.cli.watch import watch
    from eureka_agent.search.session import resume as resume_search

    folder = find_run(run)
    watch(lambda observer: resume_search(folder, observer), output_format)
