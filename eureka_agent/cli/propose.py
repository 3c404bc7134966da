"""`eureka brief` and `eureka propose`: rewards from a person's own program, in a run's archive."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from eureka_agent.cli import completing
from eureka_agent.cli.command import FILE, Command, UsageError
from eureka_agent.cli.critique import print_verdict, read_reward_file
from eureka_agent.cli.output import FORMAT, TRUST, print_json, say

if TYPE_CHECKING:
    from eureka_agent.archive.run_folder import Run
    from eureka_agent.report.screen import Screen

OPERATORS = ("improve", "different", "mutate-structure", "retune-weights", "crossover", "fresh")


@click.command(cls=Command)
@click.argument("run", shell_complete=completing.runs)
@click.option("--parent", default="", metavar="ATTEMPT", help="Start from it; default: the best.")
@click.option("--operator", type=click.Choice(OPERATORS), default="improve", help="What to do.")
@FORMAT
def brief(run: str, parent: str, operator: str, output_format: str) -> None:
    """Tell what a designer is told for the next proposal to RUN.

    \b
    eureka brief latest
    eureka brief latest --parent 1-03 --format json
    """
    from eureka_agent.archive.run_folder import find_run, open_run
    from eureka_agent.records import Operator
    from eureka_agent.search.proposing import brief as made

    opened = open_run(find_run(run), reading=True)
    found = asyncio.run(made(opened, parent, Operator(operator.replace("-", "_"))))
    if output_format == "json":
        print_json(found.model_dump(mode="json"))
    else:
        say(f"{found.system}\n{found.prompt}")


@click.command(cls=Command)
@click.argument("run", shell_complete=completing.runs)
@click.argument("reward", type=FILE, required=False)
@click.option("--parent", default="", metavar="ATTEMPT", help="The attempt that it was made from.")
@click.option("--why", default="", metavar="TEXT", help="Its author's reasoning, for the report.")
@click.option("--finish", is_flag=True, help="Then train the best attempts from fresh seeds.")
@TRUST
@FORMAT
def propose(
    run: str,
    reward: Path | None,
    parent: str,
    why: str,
    finish: bool,
    trust: bool,
    output_format: str,
) -> None:
    """Train the reward function in the file REWARD as an attempt of RUN, which nobody works on.

    It passes the critic, trains and is scored like a designer's proposal, and is compared with the
    same baselines. One that the critic rejects is neither recorded nor trained. To begin without
    proposals: eureka search --iterations 0.

    \b
    eureka propose latest reward.py --parent 1-03 --why "slower near the goal"
    eureka propose latest --finish
    """
    from eureka_agent.archive.run_folder import reading
    from eureka_agent.cli.questions import trust_to_resume
    from eureka_agent.cli.watch import watch
    from eureka_agent.search.proposing import GivenProposal, RejectedProposalError
    from eureka_agent.search.proposing import propose as proposed

    if reward is None and not finish:
        raise UsageError("no reward is given", "name a file, or --finish")
    source = None if reward is None else read_reward_file(reward)
    with reading(run) as opened:
        trust_to_resume(opened, trust)
        folder, environment = opened.folder, opened.settings.env
        before = {each.id for each in opened.archive.attempts()}
    given = [] if source is None else [GivenProposal(source, parent, why)]

    def begin(screen: Screen) -> Coroutine[Any, Any, Run]:
        return proposed(folder, given, screen, finish=finish)

    try:
        finished = watch(begin, output_format, silent_end=not finish)
    except RejectedProposalError as rejected:
        assert reward is not None
        print_verdict(rejected.verdict, reward, rejected.source, environment, output_format)
        sys.exit(rejected.exit_status)
    if finish:
        return
    _show(finished, before, output_format)


def _show(run: Run, before: set[str], output_format: str) -> None:
    """Print the attempts that came of the proposals."""
    from eureka_agent.report.as_json import attempt_in_full_to_json
    from eureka_agent.search.summary import attempt_of, best_attempt

    best = best_attempt(run)
    new = [attempt_of(run, each.id) for each in run.archive.attempts() if each.id not in before]
    attempts = [each for each in new if each is not None]
    if output_format == "json":
        told = [attempt_in_full_to_json(each, run.fitness_origin) for each in attempts]
        print_json({"run": run.name, "best": best and best.id, "attempts": told})
        return
    from eureka_agent.attempt_words import merit_words

    for each in attempts:
        outcome = f"fitness {merit_words(each)}" if each.fitness is not None else each.reason
        say(f"{each.id} {each.stage.value}: {outcome}")
        if each.diagnosis is not None:
            say(each.diagnosis.text)
    if best is not None:
        say(f"best: {best.id}, fitness {merit_words(best)}")
