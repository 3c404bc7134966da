"""Worth of the kinds of rewards: the human reward as code, learned and blended, eight seeds each.

    python benchmarks/reward_kinds.py [--seeds N] [TASK …]
    python benchmarks/reward_kinds.py --planted [--seeds N]
    python benchmarks/reward_kinds.py --source FILE TASK

A task's human reward is trained as it is written (`code`), with its terms as factors and its total
as the guess (`latent`), and beside the task's own fitness (`blend`), from the same seeds and for
the task's env steps; the best checkpoint's policy is scored over fresh episodes without noise. With
`--planted` the hopper runs with three rewards that are wrong on purpose: of the wrong sign, for
standing still, and one that makes every step cost; as they are written, added to the fitness at the
same size with a fixed weight (the plain sum), and blended. `--source` trains a found reward as code
on one task, for comparison, and adds it to the others of its kind.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _common import Subject, start, subject
from _results import RESULTS, write_result

from eureka_agent.rewards import RewardKind
from eureka_agent.training import blend
from eureka_agent.training.policy import Policy
from eureka_agent.training.reward import RewardFunction
from eureka_agent.training.trainer import MemberFinished, Trainer

TASKS = (
    "hopper/back_flip",
    "metaworld/door_unlock",
    "craft/hunt_cow",
    "craft/collect_iron",
    "doorkey/reach_goal_far",
    "ball_balance/roll_to",
    "hopper/run",
)
KINDS: tuple[RewardKind, ...] = ("code", "latent", "blend")
FIRST_SEED = 100
_HEAD = "def compute_reward(torso_velocity_w, actions):\n    speed = torso_velocity_w[:, 0]\n    "
PLANTED = {
    "nothing": f"{_HEAD}total = 0.0 * speed\n    return total, {{'speed': speed}}\n",
    "wrong sign": f"{_HEAD}total = -speed\n    return total, {{'speed': speed}}\n",
    "standing still": (
        f"{_HEAD}total = torch.exp(-(speed / 0.3).square())\n    return total, {{'speed': speed}}\n"
    ),
    "every step costs": (
        f"{_HEAD}total = -1.0 - actions.square().sum(-1)\n    return total, {{'speed': speed}}\n"
    ),
}
"""Rewards for a hopper that is to run, wrong but for the first, beside which the fitness is paid
alone."""


def trained(chosen: Subject, kind: RewardKind, seeds: int, source: str = "") -> dict[str, Any]:
    """Fitness by seed of a reward of this kind; `source`: in place of the human reward."""
    settings = chosen.settings()
    trainer = Trainer(chosen.make, chosen.task, settings, seeds)
    variables = chosen.loaded.environment_class.all_variables()
    for seed in range(seeds):
        own = RewardFunction.from_source(source, variables) if source else chosen.reward()
        trainer.submit(str(seed), own, FIRST_SEED + seed, kind=kind)
    return ended(chosen, trainer)


def ended(
    chosen: Subject, trainer: Trainer, each_iteration: Callable[[], None] | None = None
) -> dict[str, Any]:
    """Fitness by seed of a trainer's jobs, which are named by their seeds from 0 on, at their end.
    `each_iteration`: is called after each."""
    scores, learned, began = dict[int, float](), dict[int, Any](), time.process_time()
    while trainer.busy:
        for event in trainer.iterate():
            if isinstance(event, MemberFinished):
                found = event.policy, chosen.settings().activation, trainer.policy_metadata
                scores[int(event.job)] = chosen.score(Policy(*found))
                told = event.outcome.learned
                learned[int(event.job)] = None if told is None else told.model_dump()
        if each_iteration is not None:
            each_iteration()
    values = [scores[seed] for seed in sorted(scores)]
    return {
        "fitness": values,
        "mean": statistics.mean(values),
        "std": statistics.stdev(values) if len(values) > 1 else 0.0,
        "learned": [learned[seed] for seed in sorted(learned)],
        "cpu_s": time.process_time() - began,
    }


def show(name: str, kind: str, line: dict[str, Any]) -> None:
    values = ", ".join(f"{value:.3g}" for value in line["fitness"])
    text = f"{name:26} {kind:8} {line['mean']:8.3g} ± {line['std']:<8.3g}"
    print(f"{text} {line['cpu_s']:6.0f} s   {values}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tasks", nargs="*", default=TASKS, metavar="TASK")
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--planted", action="store_true")
    parser.add_argument("--source", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    start()
    found: dict[str, dict[str, Any]] = {}
    if arguments.source is not None:
        (task,), source = arguments.tasks, arguments.source.read_text()
        stored = RESULTS / "reward_kinds_found.json"
        if stored.exists():
            found = json.loads(stored.read_text())["tasks"]
        found[task] = {**trained(subject(task), "code", arguments.seeds, source), "source": source}
        show(task, "found", found[task])
        write_result("reward_kinds_found", {"tasks": found})
        return
    if arguments.planted:
        hopper, rate = subject("hopper/run"), blend.RATE
        for name, source in PLANTED.items():
            found[name] = {}
            for kind in ("blend",) if name == "nothing" else ("code", "sum", "blend"):
                blend.RATE = 0.0 if kind == "sum" else rate
                of = "code" if kind == "code" else "blend"
                found[name][kind] = trained(hopper, of, arguments.seeds, source)  # type: ignore[arg-type]
                show(name, kind, found[name][kind])
        write_result("reward_kinds_planted", {"task": "hopper/run", "rewards": found})
        return
    for task in arguments.tasks:
        found[task] = {}
        for each in KINDS:
            found[task][each] = trained(subject(task), each, arguments.seeds)
            show(task, each, found[task][each])
        write_result("reward_kinds", {"tasks": found})


if __name__ == "__main__":
    main()
