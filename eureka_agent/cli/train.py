"""`eureka train`: a person's own reward function, trained and scored like a search's finalist."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from eureka_agent.cli.command import FILE, Command
from eureka_agent.cli.files import read_reward_file
from eureka_agent.cli.option_groups import OPTION_GROUPS
from eureka_agent.cli.options import given_settings, settings_options
from eureka_agent.cli.output import FORMAT
from eureka_agent.settings import SearchSettings, TrainingSettings

_FLAGS = (
    "env",
    "task",
    "seed",
    "final_seeds",
    "baselines",
    "train_baselines",
    "baseline_seeds",
    "randomise",
    "evaluation_episodes",
    "device",
    "workers",
    "sandbox",
    "dry_run_timeout",
    "training_timeout",
    *TrainingSettings.model_fields,
)


@click.command(cls=Command, groups=OPTION_GROUPS)
@click.argument("reward", type=FILE)
@click.option("--config", type=FILE, help="YAML file with settings; flags override it.")
@settings_options(_FLAGS)
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
    from eureka_agent.cli.critique import print_verdicts
    from eureka_agent.cli.watch import watch
    from eureka_agent.designer.given import GivenDesigner, given_reward
    from eureka_agent.search.preparation import RewardRejectedError
    from eureka_agent.search.session import start

    values = given_settings(config, flags, takes=_FLAGS)
    source = read_reward_file(reward)
    values |= {"iterations": 1, "samples": 1, "confirm": 0, "finalists": 1}
    values |= {"revisions": 0, "retry_rounds": 0}
    given = GivenDesigner(given_reward(source), str(reward))
    try:
        watch(lambda observer: start(values, given, command_line(), observer), output_format)
    except RewardRejectedError as rejected:
        environment = str(values.get("env", SearchSettings.model_fields["env"].default))
        print_verdicts({reward: rejected.verdict}, {reward: source}, environment, output_format)
        sys.exit(rejected.exit_status)
