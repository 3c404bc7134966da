"""Worth of a person's choice of best and worst, the idea of ICPL (Yu et al. 2024): six rewards a
round, five rounds, no fitness; against as many fresh rewards without a choice.

    python benchmarks/best_and_worst.py [--seeds N] [TASK …]

Searches have `--fitness chosen`, six samples and the offline designer. After each round the person,
for whom the task's metric stands in as in the paper's experiments, names the best and the worst of
the six (`chosen`), or says nothing but "another", and all rewards are fresh (`fresh`). The first
round is the same in both. A round is worth its best policy by what the person saw, scored over
further episodes. At the end the reward that is best by what the person saw in all rounds is trained
again from fresh seeds, since the best of thirty trainings is lucky. What was searched is kept in
`results/best_and_worst.json`, and not made again.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
from dataclasses import astuple
from statistics import fmean
from typing import Any

from _common import start, subject
from _results import RESULTS, write_result
from _searches import own_runs_folder
from reward_kinds import trained

from eureka_agent.archive.artefacts import POLICY, attempt_folder
from eureka_agent.archive.run_folder import runs_folder
from eureka_agent.feedback_records import Choice, Decision
from eureka_agent.fleet.evaluator import Evaluator
from eureka_agent.fleet.jobs import Problem
from eureka_agent.report.comparison import compare
from eureka_agent.sandbox.process_wall import ProcessWall
from eureka_agent.search import session
from eureka_agent.search.board import newest
from eureka_agent.search.refinement import Refinement

NAME = "best_and_worst"
TASKS = ("quadcopter/approach", "hopper/run")
ARMS = {"chosen": "greedy", "fresh": "best-of-n"}
"""Strategies by arm."""
ROUNDS, SAMPLES = 5, 6
RETRAINED = 4
SEEN, SCORED = (11, 16), (12, 64)
"""Seed and number of the episodes that the person sees, and of those that score."""
SMALL = {
    "samples": SAMPLES,
    "confirm": 0,
    "finalists": 0,
    "baselines": False,
    "video": False,
    "fitness": "chosen",
    "drafts": 1,
    "sandbox": "process",
    "model": ["offline"],
}


class ProxyPerson:
    """Names the best and the worst of each round by the metric, or nothing."""

    def __init__(self, evaluator: Evaluator, *, chooses: bool) -> None:
        self._evaluator = evaluator
        self._chooses = chooses
        self.rounds: list[float] = []
        """Score of each round's best."""
        self.best = ("", float("-inf"))
        """Source of the best so far, and what the person saw of it."""

    async def __call__(self, refinement: Refinement) -> None:
        """Look at the newest attempts, choose, and ask for another round but after the last."""
        attempts = newest(refinement.run.archive.state)
        policies = [attempt_folder(refinement.run.folder, each.id) / POLICY for each in attempts]
        scores = await asyncio.gather(*(self._evaluator.evaluate(each, *SEEN) for each in policies))
        seen = [score.fitness_mean() for score in scores]
        order = sorted(range(len(seen)), key=lambda place: seen[place])
        best, worst = order[-1], order[0]
        scored = await self._evaluator.evaluate(policies[best], *SCORED)
        self.rounds.append(scored.fitness_mean())
        if seen[best] > self.best[1]:
            self.best = (attempts[best].proposal.reward.source, seen[best])
        if self._chooses and best != worst:
            shown = tuple(each.id for each in attempts)
            choice = Choice(shown=shown, best=attempts[best].id, worst=attempts[worst].id)
            refinement.say(choice)
        is_last = len(self.rounds) == ROUNDS
        refinement.say(Decision(then="leave" if is_last else "another"))


async def searched(reference: str, arm: str, seed: int) -> tuple[list[float], str]:
    """Score of each round's best, and the source of the best of all."""
    environment, _, task = reference.partition("/")
    values = {"env": environment, "task": task, "seed": seed, "strategy": ARMS[arm], **SMALL}
    evaluator = Evaluator(ProcessWall(), Problem(environment, task), runs_folder() / "scores")
    person = ProxyPerson(evaluator, chooses=arm == "chosen")
    try:
        run = await session.start(values, None, ["eureka"], lambda entry: None)
        await session.resume(run.folder, lambda entry: None, person=person)
    finally:
        await evaluator.close()
    return person.rounds, person.best[0]


def main() -> None:
    """Search, train the best again, store."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tasks", nargs="*", default=list(TASKS), metavar="TASK")
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    start()
    found: dict[str, dict[str, Any]] = {}
    if (RESULTS / f"{NAME}.json").is_file():
        found = json.loads((RESULTS / f"{NAME}.json").read_text())["tasks"]
    for seed, task in itertools.product(range(arguments.seeds), arguments.tasks):
        lines = found.setdefault(task, {}).setdefault("searches", {arm: [] for arm in ARMS})
        for arm in ARMS:
            if len(lines[arm]) > seed:
                continue
            with own_runs_folder():
                rounds, best = asyncio.run(searched(task, arm, seed))
            again = trained(subject(task), "code", RETRAINED, best)["fitness"]
            lines[arm].append({"rounds": rounds, "again": again})
            print(task, arm, seed, rounds, again, flush=True)
        winners = [[fmean(each["again"]) for each in lines[arm]] for arm in ARMS]
        if (difference := compare(*winners)) is not None:
            found[task]["chosen beyond fresh"] = astuple(difference)
        write_result(NAME, {"tasks": found})


if __name__ == "__main__":
    main()
