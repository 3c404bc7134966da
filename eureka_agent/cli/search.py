"""`eureka search` and `eureka resume`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from eureka_agent.cli.options import given_settings, settings_options
from eureka_agent.cli.output import FORMAT, TRUST, say
from eureka_agent.settings import FREE_SETTINGS, SearchSettings

_FLAGS = [name for name in SearchSettings.model_fields if name != "sentence"]


@click.command()
@click.argument("sentence", required=False)
@click.option(
    "--config", type=click.Path(path_type=Path), help="YAML file with any of these settings; flags override it."
)
@settings_options(sorted(_FLAGS, key=lambda name: name in SearchSettings.__base__.model_fields))  # type: ignore[union-attr]
@click.option("--yes", is_flag=True, help="Take the fitness that --fitness written gives without asking.")
@FORMAT
def search(sentence: str | None, config: Path | None, yes: bool, output_format: str, **flags: Any) -> None:
    """Search a reward function for the task that SENTENCE describes.

    \b
    eureka search "balance the pole" --env cartpole
    eureka search "swing the pole up and balance it" --env cartpole --task swingup --iterations 3 --samples 8
    eureka search "wave one leg" --env ant --fitness written --model openai/gpt-5
    """
    from eureka_agent.archive.run_folder import command_line
    from eureka_agent.cli.confirmation import confirmation
    from eureka_agent.cli.watch import watch
    from eureka_agent.search.session import start
    from eureka_agent.search.written_fitness import FitnessDeclinedError

    values = given_settings(config, {"sentence": sentence, **flags})
    try:
        watch(
            lambda screen: start(values, None, command_line(), screen, confirmation(yes, output_format, screen.paused)),
            output_format,
        )
    except FitnessDeclinedError as declined:  # no error: a person decided so
        say(declined.message, err=True)
        sys.exit(declined.exit_status)


@click.command()
@click.argument("run")
@settings_options([name for name in _FLAGS if name in FREE_SETTINGS], defaults=False)
@settings_options([name for name in SearchSettings.model_fields if name not in FREE_SETTINGS], hidden=True)
@TRUST
@FORMAT
def resume(run: str, trust: bool, output_format: str, **flags: Any) -> None:
    """Go on with RUN (a folder, a name, the beginning of one, or `latest`) from what is missing.

    Settings that are given change for the rest of the run; all others stay as they were.

    A run that is not your own names what it would run and send, and is not touched before you agree.

    \b
    eureka resume latest --no-gate
    eureka resume latest --iterations 5 --max-cost 10
    """
    from eureka_agent.archive.run_folder import find_run, open_run
    from eureka_agent.cli.trust import trust_to_resume
    from eureka_agent.cli.watch import watch
    from eureka_agent.search.resumption import with_changes
    from eureka_agent.search.session import resume as resume_search

    changes = given_settings(None, flags)
    folder = find_run(run)
    opened = open_run(folder, reading=True)
    try:
        opened.settings = with_changes(opened, changes)
        trust_to_resume(opened, trust)
    finally:
        opened.archive.close()
    watch(lambda observer: resume_search(folder, observer, changes), output_format)
