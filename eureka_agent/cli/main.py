"""The command group: imports commands on use, and turns errors into one clear message."""

from __future__ import annotations

from eureka_agent.cli.interruption import INTERRUPTED, leave  # first: the others take a while

# isort: split
import atexit
import gc
import importlib
import io
import os
import sys
from typing import NoReturn

import click

from eureka_agent import __version__
from eureka_agent.cli.command import Group, reworded
from eureka_agent.cli.output import color, wrapped
from eureka_agent.errors import EurekaError, lacks_room, system_reason
from eureka_agent.invocation import pasteable

# name → (module, one line of help), so that `eureka --help` imports no command
COMMANDS: dict[str, tuple[str, str]] = {
    "search": ("search", "Search a reward function for a task in plain words."),
    "resume": ("search", "Go on with a run that was stopped or killed."),
    "refine": ("refine", "Refine a run by your words, choices and edits."),
    "batch": ("batch", "Run many searches from one file, over night."),
    "batches": ("batch", "List the batches."),
    "bench": ("bench", "Compare methods on many tasks, with statistics."),
    "train": ("train", "Train a reward function of your own and score it."),
    "critique": ("critique", "Check a reward function, like a linter."),
    "evaluate": ("train", "Score a run's policy on fresh episodes."),
    "look": ("look", "Ask about a run what models may ask: episodes, drafts, differences."),
    "brief": ("propose", "Tell what a designer is told, for a program that proposes rewards."),
    "propose": ("propose", "Train a reward as an attempt of a run."),
    "skill": ("skill", "Print a SKILL.md that teaches a coding agent to use this."),
    "mcp": ("mcp_server", "Serve runs, tools and trainings to coding agents."),
    "video": ("video", "Make a video of what a run has trained."),
    "export": ("export", "Write a run's reward and policy as files to take away."),
    "prove": ("export", "Train a run's rewards by another trainer and simulator."),
    "runs": ("runs", "List the runs and their sizes, and free space."),
    "show": ("runs", "Show a run, or one of its attempts."),
    "ui": ("runs", "Show the runs in a browser."),
    "envs": ("envs", "List environments, show one, or check your own."),
    "doctor": ("doctor", "Tell what is installed and what works here."),
}


class LazyGroup(Group):
    """A group whose commands are imported on use."""

    def list_commands(self, context: click.Context) -> list[str]:
        """All commands, in the order of a newcomer's steps."""
        return list(COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module = importlib.import_module(f"eureka_agent.cli.{COMMANDS[name][0]}")
        found: click.Command = getattr(module, name)
        return found

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "--version", prog_name="eureka", message="%(prog)s %(version)s")
def cli() -> None:
    """Reward functions from plain words: designed, verified, trained, explained.

    \b
    eureka search "hover at the goal" --env quadcopter
    eureka show latest
    eureka envs
    """


def program() -> None:
    """Entry point: `main` in a process of its own, which threads of foreign code do not hold."""
    try:
        main()
    except SystemExit as end:
        leave(end.code if isinstance(end.code, int) else 0)
        raise


def main() -> NoReturn:
    """Run the command: exit status 0, or the error's; 130 when interrupted."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # for a terminal or a pipe without UTF-8
    # imports make many objects that stay: less often looked through, and not again at the end
    gc.set_threshold(50_000)
    atexit.register(gc.freeze)
    # pydantic would look for plugins in every installed package
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    try:
        _remove_leftover_containers()
        # without standalone mode click returns the argument of `context.exit`
        sys.exit(cli.main(prog_name="eureka", standalone_mode=False, color=color()))
    except click.exceptions.NoArgsIsHelpError as error:  # a group alone: its help
        error.show()
        sys.exit(error.exit_code)
    except click.UsageError as error:
        _fail(reworded(error))
    except click.ClickException as error:
        _fail(EurekaError(error.message))
    except (click.exceptions.Abort, KeyboardInterrupt):
        sys.exit(INTERRUPTED)
    except EurekaError as error:
        _fail(error)
    except BrokenPipeError:
        _drop_output()  # its reader is gone, such as `| head`
        sys.exit(1)
    except OSError as error:
        if not lacks_room(error):
            raise
        _drop_output()
        _fail(EurekaError(f"cannot write: {system_reason(error)}", "free some space"))


def _drop_output() -> None:
    """Redirect standard output to nowhere: Python would report the unwritten buffer at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(error: EurekaError) -> NoReturn:
    from eureka_agent.text import printable

    parts = [("error:", "red", error.message), (" hint:", "cyan", pasteable(error.hint))]
    for title, colour, text in parts:
        if text:
            said = wrapped(printable(text), len(title) + 1, sys.stderr)
            bold = click.style(title, fg=colour, bold=True)
            click.echo(f"{bold} {said}", err=True, color=color())
    sys.exit(error.exit_status)


def _remove_leftover_containers() -> None:
    """Remove containers of killed searches. Without one this only reads a folder."""
    from eureka_agent.sandbox.docker.markers import dead_markers

    if "_EUREKA_COMPLETE" in os.environ:  # the shell waits, and shows what is printed
        return
    if not dead_markers():
        return
    from eureka_agent.sandbox.docker.leftovers import remove_after_dead_drivers
    from eureka_agent.wording import plural

    if removed := remove_after_dead_drivers():
        containers = plural(removed, "container")
        click.echo(f"removed {containers} of a search that was killed", err=True)


if __name__ == "__main__":
    program()
