"""Learning of our PPO against rsl-rl's: fitness of the last policy after equal samples with the
human reward, ant and hopper.

    python benchmarks/learning_parity.py [--quick] [--seeds N] [--env-steps N] [TASK …]

Same simulator, reward, architecture and samples; five seeds each. Ours has the task's own settings;
rsl-rl those with which it does best here, five epochs and 16 environments with a horizon of 32, and
otherwise the same. Fitness is the mean of 64 episodes of the last policy without noise. Printed are
the mean over seeds and its 95 % interval (Student's t). Needs the `trainers` extra; 40 minutes on
one core.
"""

from __future__ import annotations

import argparse

from _common import Subject, start, subject, train
from _intervals import interval
from _results import write_result
from _rivals import rsl_rl

ENV_STEPS = {"hopper": 300_000}
"""Samples of one training, as in the README's figures, whatever the task's budget is now."""

RSL_RL = {"epochs": 5, "num_envs": 16, "horizon": 32}
"""It reaches 4.3 m in place of 12 with the hopper's own three epochs and 32 environments."""


def measure(chosen: Subject, seeds: range, env_steps: int) -> dict[str, list[float]]:
    """Fitness by seed, ours and rsl-rl's."""
    # with one checkpoint the last policy is the one that is kept, as it is in rsl-rl
    settings = chosen.settings(env_steps=env_steps, checkpoints=1)
    theirs = settings.model_copy(update=RSL_RL)
    return {
        "ours": [chosen.score(policy) for policy in train(chosen, settings, seeds)],
        "rsl_rl": [chosen.score(rsl_rl(chosen, theirs, seed, theirs.updates)[1]) for seed in seeds],
    }


def main() -> dict[str, dict[str, list[float]]]:
    """Measure, print, store."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tasks", nargs="*", default=["hopper", "ant"], metavar="TASK")
    parser.add_argument("--seeds", type=int, default=5, choices=range(2, 11), metavar="N")
    parser.add_argument(
        "--env-steps",
        type=int,
        help="samples of one training (default: 300,000 on hopper, else 500,000)",
    )
    parser.add_argument(
        "--quick", action="store_true", help="two seeds of 20,000 steps: shows only that it runs"
    )
    arguments = parser.parse_args()
    start()
    figures = {}
    for reference in arguments.tasks:
        chosen = subject(reference)
        steps = (
            20_000 if arguments.quick else arguments.env_steps or ENV_STEPS.get(reference, 500_000)
        )
        found = measure(chosen, range(2 if arguments.quick else arguments.seeds), steps)
        figures[chosen.name] = {**found, "env_steps": [steps]}
        print(f"{chosen.name}, {steps:,} samples, fitness in {chosen.task.fitness_unit}:")
        for name, values in found.items():
            mean, half = interval(values)
            print(
                f"  {name:8} {mean:8.2f} ± {half:.2f}   "
                + " ".join(f"{value:.2f}" for value in values),
                flush=True,
            )
    if not arguments.quick:
        write_result("learning_parity", {"tasks": figures})
    return figures


if __name__ == "__main__":
    main()
