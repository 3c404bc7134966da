"""`eureka evaluate`: a policy of a run on fresh episodes."""

from __future__ import annotations

from pathlib import Path

import click

from eureka_agent.cli import completing
from eureka_agent.cli.command import FILE, Command, Number, UsageError
from eureka_agent.cli.output import FORMAT, TRUST, print_json, say
from eureka_agent.errors import RunFolderError
from eureka_agent.invocation import show_command
from eureka_agent.settings import MOST_EPISODES, MOST_SEED


@click.command(cls=Command)
@click.argument("run", shell_complete=completing.runs)
@click.argument("attempt", required=False, shell_complete=completing.attempts)
@click.option(
    "--episodes",
    type=Number(int, 1, MOST_EPISODES),
    default=64,
    show_default=True,
    help="Episodes.",
)
@click.option(
    "--seed",
    type=Number(int, 0, MOST_SEED),
    default=0,
    show_default=True,
    help="Seed of the episodes.",
)
@click.option(
    "--trajectories", type=FILE, help="Write the best and the worst episode to this npz file."
)
@TRUST
@FORMAT
def evaluate(
    run: str,
    attempt: str | None,
    episodes: int,
    seed: int,
    trajectories: Path | None,
    trust: bool,
    output_format: str,
) -> None:
    """Score the best policy of RUN, or of one ATTEMPT, without loading any reward.

    A run that is not your own names what it would run, and nothing is run before you agree.

    \b
    eureka evaluate latest --episodes 256
    eureka evaluate latest 2-03 --trajectories episodes.npz
    """
    import asyncio

    from eureka_agent.archive.artefacts import BEST, POLICY, attempt_folder
    from eureka_agent.archive.pruned import check_not_pruned
    from eureka_agent.archive.run_folder import find_run, open_run, unknown_attempt
    from eureka_agent.archive.safe_files import inside
    from eureka_agent.cli.trust import trust_to_evaluate
    from eureka_agent.search.rescore import evaluation_lines, evaluation_summary, rescore
    from eureka_agent.search.summary import best_attempt

    if trajectories is not None and trajectories.is_dir():
        fault = f"--trajectories is {str(trajectories)!r}: it is a folder, expected a file"
        raise UsageError(fault, "name an npz file")
    opened = open_run(find_run(run), reading=True)
    if attempt is None:
        policy = inside(opened.folder, BEST, POLICY)
    else:
        policy = inside(attempt_folder(opened.folder, attempt), POLICY)
    if not policy.is_file():
        known = [entry.id for entry in opened.archive.attempts()]
        if attempt is not None and attempt not in known:
            raise unknown_attempt(opened, attempt, known)
        if attempt is not None:
            check_not_pruned(opened, attempt)
        what = f"attempt {attempt!r} has no policy" if attempt else "there is no best policy"
        hint = f"`{show_command(opened.folder)}` lists what was trained"
        raise RunFolderError(f"{what} in the run {opened.name!r}", hint)
    trust_to_evaluate(opened, trust)
    evaluation = asyncio.run(rescore(opened, policy, seed, episodes, trajectories))
    summary = {
        "run": opened.name,
        "attempt": attempt,
        "policy": str(policy),
        "fitness_origin": opened.fitness_origin,
        **evaluation_summary(evaluation, opened.description),
    }
    if output_format == "json":
        print_json(summary)
        return
    best = best_attempt(opened) if attempt is None else None
    name = attempt if best is None else f"{best.id}, the best"
    lines = {"policy": f"attempt {name}, of {opened.name}"}
    lines |= evaluation_lines(summary, opened.description, opened.fitness_origin)
    if trajectories is not None:
        lines["episodes"] = f"best and worst: {trajectories}"
    for name, text in lines.items():
        say(f"{name:<9} {text}")
