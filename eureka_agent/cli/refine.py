"""`eureka refine`: a run refined by a person's words, choices and edits."""

from __future__ import annotations

from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from eureka_agent.cli import completing
from eureka_agent.cli.command import FILE, Command
from eureka_agent.cli.output import TRUST

if TYPE_CHECKING:
    from eureka_agent.archive.run_folder import Run
    from eureka_agent.cli.watch import Screen


@click.command(cls=Command)
@click.argument("run", shell_complete=completing.runs)
@click.option("--from", "own", type=FILE, help="A reward of your own, trained in the first round.")
@click.option(
    "--replay",
    "earlier",
    help="Another run, refined before: say again what was said there, round by round.",
)
@click.option(
    "--max-cost", type=str, help="US dollars that may be spent on models, over the whole run."
)
@TRUST
def refine(
    run: str, own: Path | None, earlier: str | None, max_cost: str | None, trust: bool
) -> None:
    """Refine RUN: watch what it trained, say what you want, train, and watch again.

    Clips show the attempts from the same start state. You can say what you saw and what you want
    changed, compare clips, order what matters, edit a reward, or mark the second at which it went
    wrong. All of it is recorded at once, and `eureka refine RUN` goes on after any end.

    \b
    eureka refine latest
    eureka refine latest --from my_reward.py
    eureka refine latest --replay runs/20260102-101500_ant_run
    """
    from eureka_agent.archive.run_folder import reading
    from eureka_agent.cli.conversation import Conversation
    from eureka_agent.cli.critique import read_reward_file
    from eureka_agent.cli.questions import trust_to_resume
    from eureka_agent.cli.watch import watch
    from eureka_agent.search.refinement import replayed
    from eureka_agent.search.resumption import with_changes
    from eureka_agent.search.session import resume

    if own is not None and earlier is not None:
        raise click.UsageError("--replay and --from do not go together")
    changes: dict[str, Any] = {} if max_cost is None else {"max_cost": max_cost}
    source = None if own is None else read_reward_file(own)
    with reading(run) as opened:
        opened.settings = with_changes(opened, changes)
        trust_to_resume(opened, trust)
    person = None
    if earlier is not None:
        with reading(earlier) as other:
            trust_to_resume(other, trust)  # rewards that were given there are trained here
            person = replayed(other.archive.entries())

    def begin(screen: Screen) -> Coroutine[Any, Any, Run]:
        speaker = person or Conversation(screen.paused, source)
        return resume(opened.folder, screen, changes, person=speaker)

    watch(begin, "text")
