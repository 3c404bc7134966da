"""`eureka search` and `eureka resume`: a search from the first prompt to the report."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from eureka_agent.cli import completing
from eureka_agent.cli.command import FILE, Command, UsageError, typed_options
from eureka_agent.cli.options import OPTION_GROUPS, given_settings, settings_options
from eureka_agent.cli.output import FORMAT, TRUST, print_json, say, say_notice
from eureka_agent.invocation import FIRST_SEARCH, command
from eureka_agent.settings import FREE_SETTINGS, SearchSettings

if TYPE_CHECKING:
    from eureka_agent.archive.run_folder import Run

_FLAGS = [name for name in SearchSettings.model_fields if name != "sentence"]


@click.command(cls=Command, groups=OPTION_GROUPS)
@click.argument("words", required=False, nargs=-1, metavar="SENTENCE")
@click.option(
    "--config", type=FILE, help="YAML file with any of these settings; flags override it."
)
@settings_options(sorted(_FLAGS, key=lambda name: name in SearchSettings.__base__.model_fields))  # type: ignore[union-attr]
@click.option(
    "--yes", is_flag=True, help="Take the fitness that --fitness written gives without asking."
)
@click.option(
    "--plan",
    is_flag=True,
    help="Print what the search would train, take and cost, and start nothing.",
)
@FORMAT
def search(
    words: tuple[str, ...],
    config: Path | None,
    yes: bool,
    plan: bool,
    output_format: str,
    **flags: Any,
) -> None:
    """Search a reward function for the task that SENTENCE describes.

    \b
    eureka search "hover at the goal" --env quadcopter
    eureka search "swing the pole up and balance it" --env cartpole --task swingup --samples 12
    eureka search "wave one leg" --env ant --fitness written --model openai/gpt-5.5
    eureka search "make the ant run" --env ant --plan
    """
    from eureka_agent.archive.run_folder import command_line
    from eureka_agent.cli.questions import confirmation
    from eureka_agent.cli.watch import watch
    from eureka_agent.report.screen import Screen
    from eureka_agent.search.session import start
    from eureka_agent.search.written_fitness import FitnessDeclinedError

    sentence = _one_sentence(words)
    if sentence is None and config is None and all(value is None for value in flags.values()):
        hint = f"say what the policy is to do, and where (`{command('envs')}` lists environments)"
        raise UsageError("no task is given", f"{hint}: {command(FIRST_SEARCH)}")
    values = given_settings(config, {"sentence": sentence, **flags})
    if plan:
        _print_plan(values, output_format)
        return

    def begin(screen: Screen) -> Coroutine[Any, Any, Run]:
        confirm = confirmation(yes, output_format, screen.paused)
        return start(values, None, command_line(), screen, confirm)

    try:
        watch(begin, output_format)
    except FitnessDeclinedError as declined:  # a person's decision, no error
        say(declined.message, err=True)
        sys.exit(declined.exit_status)


def _print_plan(values: Mapping[str, Any], output_format: str) -> None:
    import asyncio

    from eureka_agent.report.plan import SearchPlan, plan_to_json, render_plan
    from eureka_agent.report.terminal import CleanConsole
    from eureka_agent.search.estimator import Estimator

    async def estimated() -> SearchPlan:
        async with Estimator(say_notice) as estimator:
            return await estimator.plan(values)

    found = asyncio.run(estimated())
    if output_format == "json":
        print_json(plan_to_json(found))
    else:
        CleanConsole().print(render_plan(found))


def _one_sentence(words: Sequence[str]) -> str | None:
    """The sentence. Raises UsageError for several words, with the quoted command as its hint."""
    if len(words) < 2:
        return words[0] if words else None
    meant = shlex.join(["search", " ".join(words), *typed_options(click.get_current_context())])
    hint = f"put it in quotes: {command(meant)}"
    raise UsageError(f"the task is {len(words)} words, expected one sentence", hint)


@click.command(cls=Command, groups=OPTION_GROUPS)
@click.argument("run", shell_complete=completing.runs)
@settings_options([name for name in _FLAGS if name in FREE_SETTINGS], defaults=False)
@settings_options(
    [name for name in SearchSettings.model_fields if name not in FREE_SETTINGS], hidden=True
)
@TRUST
@FORMAT
def resume(run: str, trust: bool, output_format: str, **flags: Any) -> None:
    """Go on with RUN (a folder, a name, the beginning of one, or `latest`) from what is missing.

    Settings that are given change for the rest of the run; all others stay as they were.

    A run that is not your own names what it would run and send, and is not touched before you
    agree.

    \b
    eureka resume latest --no-novelty
    eureka resume latest --iterations 5 --max-cost 10
    """
    from eureka_agent.archive.run_folder import reading
    from eureka_agent.cli.questions import trust_to_resume
    from eureka_agent.cli.watch import watch
    from eureka_agent.search.resumption import with_changes
    from eureka_agent.search.session import resume as resume_search

    changes = given_settings(None, flags)
    with reading(run) as opened:
        opened.settings = with_changes(opened, changes)
        trust_to_resume(opened, trust)
    watch(lambda observer: resume_search(opened.folder, observer, changes), output_format)
