"""`eureka evaluate`: a policy of a run on fresh episodes."""

from __future__ import annotations

from pathlib import Path

import click

from eureka_agent.cli import completing
from eureka_agent.cli.command import FILE, Command, Number, UsageError
from eureka_agent.cli.output import FORMAT, TRUST, print_json, say
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
@click.option(
    "--parameters",
    metavar="TEXT|FILE",
    help="Values of the environment's parameters, or ranges that each episode draws from:"
    ' "mass=0.5..2,friction=1.2", or a JSON file. The environment lists them: envs NAME.',
)
@TRUST
@FORMAT
def evaluate(
    run: str,
    attempt: str | None,
    episodes: int,
    seed: int,
    trajectories: Path | None,
    parameters: str | None,
    trust: bool,
    output_format: str,
) -> None:
    """Score the best policy of RUN, or of one ATTEMPT, without loading any reward.

    ATTEMPT can be `randomised`: the best policy of trainings under other parameters.

    A run that is not your own names what it would run, and nothing is run before you agree.

    \b
    eureka evaluate latest --episodes 256
    eureka evaluate latest 2-03 --trajectories episodes.npz
    eureka evaluate latest --parameters "mass=0.8..1.2,friction=0.7"
    eureka evaluate latest randomised --parameters "mass=0.5..2"
    """
    import asyncio

    from eureka_agent.archive.artefacts import RANDOMISED
    from eureka_agent.archive.run_folder import find_run, open_run
    from eureka_agent.archive.stored_policies import stored_policy
    from eureka_agent.cli.trust import trust_to_evaluate
    from eureka_agent.parameters import check_distribution, distribution_text, parse_distribution
    from eureka_agent.search.rescore import evaluation_lines, evaluation_summary, rescore
    from eureka_agent.search.summary import best_attempt

    if trajectories is not None and trajectories.is_dir():
        fault = f"--trajectories is {str(trajectories)!r}: it is a folder, expected a file"
        raise UsageError(fault, "name an npz file")
    distribution = {} if parameters is None else parse_distribution(parameters)
    opened = open_run(find_run(run), reading=True)
    description = opened.description
    check_distribution(distribution, description.parameters, description.environment)
    policy = stored_policy(opened, attempt)
    trust_to_evaluate(opened, trust)
    evaluation = asyncio.run(rescore(opened, policy, seed, episodes, trajectories, distribution))
    summary = {
        "run": opened.name,
        "attempt": attempt,
        "policy": str(policy),
        "fitness_origin": opened.fitness_origin,
        "parameters": distribution,
        **evaluation_summary(evaluation, opened.description),
    }
    if output_format == "json":
        print_json(summary)
        return
    best = best_attempt(opened) if attempt is None else None
    name = attempt if best is None else f"{best.id}, the best"
    of = f"under {RANDOMISED} parameters" if attempt == RANDOMISED else f"attempt {name}"
    lines = {"policy": f"{of}, of {opened.name}"}
    if distribution:
        lines["parameters"] = distribution_text(distribution)
    lines |= evaluation_lines(summary, opened.description, opened.fitness_origin)
    if trajectories is not None:
        lines["episodes"] = f"best and worst: {trajectories}"
    width = max(map(len, lines))
    for name, text in lines.items():
        say(f"{name:<{width}} {text}")
