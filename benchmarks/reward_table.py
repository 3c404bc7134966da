"""A table of trainings to try searches on: many rewards of a task, each trained from the same few
seeds, with its curve and its scores on the way. Choosing, stopping and budgets can be tried on it
without a training (as with NAS-Bench, Ying et al. 2019).

    python benchmarks/reward_table.py [TASK …] [--designer model] [--rewards N] [--seeds S]
    [--episodes FOLDER] [--into seed_table]

The rewards are first proposals of the offline designer, in searches of eight that know of each
other, or with `--designer model` those of a large language model, which `proposals/` keeps: 24 each
for nine tasks, all accepted by the critic, none trained before it was written. With them the human
and the sparse reward are trained. Trainings run without critic and wall, in two processes. A table
is kept as `results/reward_table/<designer>-<environment>-<task>.json`; `--episodes` keeps two
episodes of the policies of the first seed at 0.1, 0.2 and 0.4 of a training and at its end. Few
rewards from many seeds go into `results/seed_table`, for `certainty.py`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

import torch
from _common import Subject, start, subject
from _results import RESULTS

from eureka_agent.designer.interface import DesignRequest
from eureka_agent.designer.offline.designer import OfflineDesigner
from eureka_agent.records import Operator
from eureka_agent.settings import TrainingSettings
from eureka_agent.simulation.loading import describe
from eureka_agent.simulation.vec_task import padded
from eureka_agent.training.evaluation import PolicyRequest, evaluate_policies, trajectories_bytes
from eureka_agent.training.policy import Policy
from eureka_agent.training.reward import RewardFunction
from eureka_agent.training.trainer import MemberAtRung, MemberFailed, MemberFinished, Trainer

TABLES = RESULTS / "reward_table"
PROPOSALS = Path(__file__).resolve().parent / "proposals"
RUNGS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.7)
SCORING_EPISODES, EVALUATION_EPISODES = 16, 32
SCORING_SEED, EVALUATION_SEED = 4321, 12345
GENERATION = 8
TASKS = (
    *("quadcopter/hover", "quadcopter/approach", "cartpole/swingup", "ball_balance/roll_to"),
    *("craft/keep_off_lava", "hopper/back_flip"),
)
SLOTS = 16
RECORDED_EPISODES = 2
RECORDED_SEED = 1
RECORDED_SHARES = 0.1, 0.2, 0.4
BASELINES = ("human", "sparse")


@dataclass
class Training:
    """One reward from one seed. Scores are without noise, from start states that all share."""

    reward: str
    seed: int
    curve: list[float | None] = field(default_factory=list)
    """Mean fitness of the episodes before each checkpoint, which explore."""
    rungs: list[float] = field(default_factory=list)
    """Scores at `RUNGS`."""
    fitness: float | None = None
    """Score of the best of the kept policies; None where the training failed."""


def offline_proposals(chosen: Subject, count: int) -> dict[str, str]:
    """First proposals of the offline designer, as sources by name."""
    designer = OfflineDesigner()
    task = chosen.name.partition("/")[2]
    description = describe(chosen.loaded, task)
    found: dict[str, str] = {}
    for search in range(-(-count // GENERATION)):
        siblings: list[str] = []
        for sample in range(min(GENERATION, count - search * GENERATION)):
            request = DesignRequest(
                description,
                description.sentence,
                Operator.FRESH,
                (),
                (),
                10_000 * (search + 1) + sample,
                siblings=tuple(siblings),
            )
            source = asyncio.run(designer.propose(request)).reward.source
            siblings.append(source)
            found[f"{search + 1}-{sample + 1}"] = source
    return found


def _pick(fitness: torch.Tensor) -> dict[str, int]:
    """Episodes that are kept: any, so the first ones."""
    return {str(number): number for number in range(RECORDED_EPISODES)}


def _scores(
    chosen: Subject,
    policies: Sequence[Policy],
    episodes: int,
    seed: int,
    records: Sequence[Path | None] = (),
) -> list[float]:
    """Mean fitness of each policy, all from the same start states; `records`: files for episodes,
    by policy, first those that have one."""
    width = padded(episodes, chosen.loaded.environment_class.row_multiple)
    environment = chosen.make(len(policies) * width)
    try:
        requests = [
            PolicyRequest(policy, seed, episodes, _pick if record else None)
            for policy, record in zip_longest(policies, records)
        ]
        scores = evaluate_policies(environment, chosen.task, requests)
    finally:
        environment.close()
    for record, (_, trajectories) in zip(records, scores, strict=False):
        if record is not None and trajectories is not None:
            record.write_bytes(trajectories_bytes(trajectories))
    return [evaluation.fitness_mean() for evaluation, _ in scores]


def _train(
    job: tuple[str, dict[str, str], list[tuple[str, int]], Path | None],
) -> list[dict[str, Any]]:
    """Train rewards from seeds side by side, in a process of its own."""
    reference, sources, members, episodes = job
    start()
    chosen = subject(reference)
    settings: TrainingSettings = chosen.settings()
    steps = settings.updates * settings.horizon * settings.num_envs
    rungs = [int(share * steps) for share in RUNGS]
    trainer = Trainer(chosen.make, chosen.task, settings, len(members))
    variables = chosen.loaded.environment_class.all_variables()
    trainings = {}
    for name, seed in members:
        reward = RewardFunction.from_source(
            sources[name], variables, allow_private=name in BASELINES
        )
        trainings[f"{name}@{seed}"] = Training(name, seed)
        trainer.submit(f"{name}@{seed}", reward, seed, rungs=rungs)

    def record_of(training: Training, name: str, wanted: bool = True) -> Path | None:
        if episodes is None or training.seed != RECORDED_SEED or not wanted:
            return None
        return episodes / f"{training.reward}@{name}.npz"

    def policy(tensors: dict[str, torch.Tensor]) -> Policy:
        return Policy(tensors, settings.activation, trainer.policy_metadata)

    finished = []
    while trainer.busy:
        events = trainer.iterate()
        at_rung = [event for event in events if isinstance(event, MemberAtRung)]
        if at_rung:
            at_rung.sort(key=lambda event: trainings[event.job].seed != RECORDED_SEED)
            passed = [trainings[event.job] for event in at_rung]
            shares = [RUNGS[len(each.rungs)] for each in passed]
            records = [
                record_of(each, str(share), share in RECORDED_SHARES)
                for each, share in zip(passed, shares, strict=True)
            ]
            policies = [policy(event.policy) for event in at_rung]
            scored = _scores(chosen, policies, SCORING_EPISODES, SCORING_SEED, records)
            for event, score in zip(at_rung, scored, strict=True):
                trainings[event.job].rungs.append(score)
        finished += [event for event in events if isinstance(event, MemberFinished)]
        for event in events:
            if isinstance(event, MemberFailed):
                print(f"  {event.job} failed: {event.reason}", flush=True)
    kept = [(event, place) for event in finished for place in event.policies]
    if kept:
        policies = [policy(event.policies[place]) for event, place in kept]
        first = _scores(chosen, policies, SCORING_EPISODES, SCORING_SEED)
        best: dict[str, tuple[float, Policy]] = {}
        for (event, _), candidate, score in zip(kept, policies, first, strict=True):
            if event.job not in best or score > best[event.job][0]:
                best[event.job] = (score, candidate)
        names = sorted(best, key=lambda name: trainings[name].seed != RECORDED_SEED)
        last = _scores(
            chosen,
            [best[name][1] for name in names],
            EVALUATION_EPISODES,
            EVALUATION_SEED,
            [record_of(trainings[name], "end") for name in names],
        )
        for name, score in zip(names, last, strict=True):
            trainings[name].fitness = score
    for event in finished:
        trainings[event.job].curve = [each.fitness for each in event.outcome.checkpoints]
    return [asdict(training) for training in trainings.values()]


def table(
    reference: str,
    sources: dict[str, str],
    seeds: Iterable[int],
    processes: int,
    episodes: Path | None,
    *,
    baselines: bool = True,
) -> dict[str, Any]:
    """Train every reward from every seed, and the baselines too."""
    chosen = subject(reference)
    for kind in BASELINES if baselines else ():
        source = chosen.loaded.reward_source(chosen.task, kind)
        if source is not None:
            sources = {**sources, kind: source}
    jobs = [(name, seed) for seed in seeds for name in sources]
    chunks = -(-len(jobs) // (SLOTS * processes)) * processes
    parts = [(reference, sources, jobs[place::chunks], episodes) for place in range(chunks)]
    began = time.perf_counter()
    with multiprocessing.get_context("spawn").Pool(processes, maxtasksperchild=1) as pool:
        trainings = [each for part in pool.imap(_train, parts) for each in part]
    return {
        "task": reference,
        "env_steps": chosen.settings().env_steps,
        "rung_shares": RUNGS,
        "sources": sources,
        "trainings": trainings,
        "minutes": (time.perf_counter() - began) / 60,
    }


def main() -> None:
    """Train, store."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tasks", nargs="*", default=list(TASKS), metavar="TASK")
    parser.add_argument("--designer", choices=("offline", "model"), default="offline")
    parser.add_argument("--rewards", type=int, default=24)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--into", default=TABLES.name, metavar="FOLDER", help="of results/")
    parser.add_argument("--episodes", type=Path, help="folder for episodes of the first seed")
    arguments = parser.parse_args()
    tables = RESULTS / arguments.into
    tables.mkdir(exist_ok=True)
    for reference in arguments.tasks:
        chosen = subject(reference)
        name = f"{arguments.designer}-{chosen.name.replace('/', '-')}"
        if arguments.designer == "offline":
            sources = offline_proposals(chosen, arguments.rewards)
        else:
            kept = json.loads((PROPOSALS / f"{chosen.name.replace('/', '-')}.json").read_text())
            sources = dict(list(kept.items())[: arguments.rewards])
        episodes = arguments.episodes and arguments.episodes / name
        if episodes is not None:
            episodes.mkdir(parents=True, exist_ok=True)
        seeds = range(1, arguments.seeds + 1)
        found = table(reference, sources, seeds, arguments.processes, episodes)
        path = tables / f"{name}.json"
        path.write_text(json.dumps(found, indent=1) + "\n")
        print(f"{path.name}: {len(found['trainings'])} trainings, {found['minutes']:.1f} min")


if __name__ == "__main__":
    main()
