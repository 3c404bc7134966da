"""`eureka train` and `eureka evaluate`: a person's own reward function, trained and scored like a
search's finalist, and a run's policy on fresh episodes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from eureka_agent.cli import completing
from eureka_agent.cli.command import FILE, Command, Number
from eureka_agent.cli.critique import read_reward_file
from eureka_agent.cli.options import OPTION_GROUPS, given_settings, settings_options
from eureka_agent.cli.output import FORMAT, TRUST, print_json, say
from eureka_agent.settings import MOST_EPISODES, MOST_SEED, OF_ONE_REWARD, SearchSettings


@click.command(cls=Command, groups=OPTION_GROUPS)
@click.argument("reward", type=FILE)
@click.option("--config", type=FILE, help="YAML file with settings; flags override it.")
@settings_options(OF_ONE_REWARD)
@FORMAT
def train(reward: Path, config: Path | None, output_format: str, **flags: Any) -> None:
    """Train the reward function in the file REWARD and score it against human and sparse.

    One that the critic rejects is not trained: no run is made, and what `eureka critique` says of
    it is printed, with its exit status.

    \b
    eureka train reward.py --env hopper
    eureka train reward.py --env ant --final-seeds 5 --no-baselines
    """
    from eureka_agent.archive.run_folder import command_line
    from eureka_agent.cli.critique import print_verdict
    from eureka_agent.cli.watch import watch
    from eureka_agent.designer.interface import GivenDesigner, given_reward
    from eureka_agent.search.preparation import RewardRejectedError
    from eureka_agent.search.session import train_given

    values = given_settings(config, flags, takes=OF_ONE_REWARD)
    source = read_reward_file(reward)
    given = GivenDesigner(given_reward(source), str(reward))
    try:
        watch(lambda observer: train_given(values, given, command_line(), observer), output_format)
    except RewardRejectedError as rejected:
        environment = str(values.get("env", SearchSettings.model_fields["env"].default))
        print_verdict(rejected.verdict, reward, source, environment, output_format)
        sys.exit(rejected.exit_status)


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
    "--parameters",
    metavar="TEXT",
    help="Values of the environment's parameters, or ranges that each episode draws from:"
    ' "mass=0.5..2,friction=1.2". The environment lists them: envs NAME.',
)
@TRUST
@FORMAT
def evaluate(
    run: str,
    attempt: str | None,
    episodes: int,
    seed: int,
    parameters: str | None,
    trust: bool,
    output_format: str,
) -> None:
    """Score the best policy of RUN, or of one ATTEMPT, without loading any reward.

    ATTEMPT can be `randomised`: the best policy of trainings under other parameters.

    A run that is not your own names what it would run, and nothing is run before you agree.

    \b
    eureka evaluate latest --episodes 256
    eureka evaluate latest --parameters "mass=0.8..1.2,friction=0.7"
    eureka evaluate latest randomised --parameters "mass=0.5..2"
    """
    import asyncio

    from eureka_agent.archive.artefacts import RANDOMISED, stored_policy
    from eureka_agent.archive.run_folder import find_run, open_run
    from eureka_agent.cli.questions import trust_to_evaluate
    from eureka_agent.parameters import check_distribution, distribution_text, parse_distribution
    from eureka_agent.search.scoring import evaluated, evaluation_lines
    from eureka_agent.search.summary import best_attempt

    distribution = {} if parameters is None else parse_distribution(parameters)
    opened = open_run(find_run(run), reading=True)
    description = opened.description
    check_distribution(distribution, description.parameters, description.environment)
    policy = stored_policy(opened, attempt)
    trust_to_evaluate(opened, trust)
    summary = asyncio.run(evaluated(opened, attempt, policy, seed, episodes, distribution))
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
    width = max(map(len, lines))
    for name, text in lines.items():
        say(f"{name:<{width}} {text}")
