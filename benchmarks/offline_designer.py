"""Quality of the offline designer's rewards: proposals trained at the task's budget, against the
human and the sparse reward.

    python benchmarks/offline_designer.py [TASK …] [--iterations N] [--samples K] [--seed S]
    [--env-steps N]

A TASK is `env/task`; without one, every built-in task runs (over an hour on one core). Trainings
run in this process, without critic and wall. Every figure is the mean fitness of 32 episodes of the
best checkpoint, acting without noise.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import time
from dataclasses import dataclass
from functools import partial

import torch

from eureka_agent.analysis.diagnose import diagnose
from eureka_agent.designer.interface import DesignRequest, ParentSummary
from eureka_agent.designer.offline.designer import OfflineDesigner
from eureka_agent.records import Attempt, CurvePoint, Evaluation, Proposal, Stage, TaskDescription
from eureka_agent.search.strategies import Greedy
from eureka_agent.settings import TrainingSettings
from eureka_agent.simulation.catalogue import list_environments
from eureka_agent.simulation.loading import LoadedEnvironment, describe, load_environment
from eureka_agent.task import Task
from eureka_agent.training.evaluation import evaluate_policy
from eureka_agent.training.policy import Policy
from eureka_agent.training.reward import RewardFunction
from eureka_agent.training.trainer import MemberFailed, MemberFinished, MemberProgress, Trainer

EPISODES = 32
EVALUATION_SEED = 12345
BASELINE_SEEDS = (1, 2, 3)


@dataclass(frozen=True)
class Bench:
    """One task, ready to train on."""

    environment: LoadedEnvironment
    task: Task
    description: TaskDescription
    settings: TrainingSettings

    def train(
        self, sources: dict[str, str], seeds: dict[str, int], trusted: bool = False
    ) -> dict[str, tuple[MemberFinished, list[CurvePoint], Evaluation]]:
        """Every source trained once, side by side; failed ones are missing."""
        trainer = Trainer(
            partial(self.environment.make, self.task),
            self.task,
            self.settings,
            slots=min(16, len(sources)),
        )
        variables = self.environment.environment_class.all_variables()
        for name, source in sources.items():
            trainer.submit(
                name,
                RewardFunction.from_source(source, variables, allow_private=trusted),
                seeds[name],
            )
        points: dict[str, list[CurvePoint]] = {name: [] for name in sources}
        results = {}
        while trainer.busy:
            for event in trainer.iterate():
                if isinstance(event, MemberProgress):
                    points[event.job].append(event.point)
                elif isinstance(event, MemberFailed):
                    print(f"  {event.job} failed: {event.reason}")
                elif isinstance(event, MemberFinished):
                    policy = Policy(event.policy, self.settings.activation, {})
                    rows = self.environment.make(self.task, EPISODES)
                    evaluation, _ = evaluate_policy(
                        rows, self.task, policy, EPISODES, record=False, seed=EVALUATION_SEED
                    )
                    results[event.job] = (event, points[event.job], evaluation)
        return results

    def baselines(self) -> dict[str, list[float]]:
        """Fitness of the human and the sparse reward, a seed each."""
        rewards = self.description.baselines
        jobs = {
            f"{kind}-{seed}": reward.source
            for kind, reward in rewards.items()
            for seed in BASELINE_SEEDS
        }
        results = self.train(
            jobs, {name: int(name.partition("-")[2]) for name in jobs}, trusted=True
        )
        return {
            kind: [
                each[2].fitness_mean() for name, each in results.items() if name.startswith(kind)
            ]
            for kind in rewards
        }


def generation(
    bench: Bench,
    designer: OfflineDesigner,
    iteration: int,
    samples: int,
    seed: int,
    history: list[Attempt],
) -> list[Attempt]:
    """Proposals of one iteration, trained and diagnosed."""
    known = {attempt.id: attempt for attempt in history}
    proposals: dict[str, Proposal] = {}
    for sample, plan in enumerate(Greedy().plan(iteration, history, samples)):
        parents = tuple(
            ParentSummary(
                name,
                known[name].proposal.reward,
                known[name].fitness,
                known[name].diagnosis,
                "",
            )
            for name in plan.parents
        )
        siblings = tuple(proposal.reward.source for proposal in proposals.values())
        request_seed = 10_000 * seed + 100 * iteration + sample
        request = DesignRequest(
            bench.description,
            bench.task.sentence,
            plan.operator,
            parents,
            (),
            request_seed,
            siblings=siblings,
        )
        proposals[f"{iteration}-{sample}"] = asyncio.run(designer.propose(request))
    seeds = {name: 10_000 * seed + 100 * iteration + place for place, name in enumerate(proposals)}
    attempts = []
    for name, (finished, points, evaluation) in bench.train(
        {name: each.reward.source for name, each in proposals.items()}, seeds
    ).items():
        outcome = finished.outcome.model_copy(update={"fitness": evaluation.fitness_mean()})
        diagnosis = diagnose(outcome, points, evaluation, bench.description)
        sample = int(name.partition("-")[2])
        attempts.append(
            Attempt(
                id=name,
                iteration=iteration,
                sample=sample,
                revision=0,
                proposal=proposals[name],
                stage=Stage.TRAINED,
                seed=seeds[name],
                outcome=outcome,
                diagnosis=diagnosis,
            )
        )
        terms = ", ".join(
            f"{component.name} {component.share:.0%}" for component in diagnosis.components
        )
        print(
            f"  {name:5} {proposals[name].operator.value:17} {evaluation.fitness_mean():8.3f} "
            f" {terms}  [{'; '.join(found.code for found in diagnosis.findings)}]",
            flush=True,
        )
    return attempts


def run_task(reference: str, arguments: argparse.Namespace) -> str:
    """Search on one task. Returns its line of the table at the end."""
    environment_name, _, task_name = reference.partition("/")
    environment = load_environment(environment_name)
    _, task = environment.task(task_name or None)
    budget = {
        "env_steps": arguments.env_steps or task.training.env_steps,
        "num_envs": task.training.num_envs,
    }
    bench = Bench(
        environment,
        task,
        describe(environment, task_name or None),
        TrainingSettings.model_validate({**budget, **task.training.overrides}),
    )
    print(f"\n{reference}: {task.sentence}", flush=True)
    began = time.perf_counter()
    baselines = bench.baselines()
    for kind, values in baselines.items():
        print(f"  {kind:6} {_shown(values)}", flush=True)
    history: list[Attempt] = []
    for iteration in range(arguments.iterations):
        history += generation(
            bench, OfflineDesigner(), iteration, arguments.samples, arguments.seed, history
        )
    scores = [attempt.fitness for attempt in history if attempt.fitness is not None]
    median = statistics.median(scores)
    seconds = time.perf_counter() - began
    means = [statistics.mean(values) if values else float("nan") for values in baselines.values()]
    return (
        f"{reference:20} {max(scores):9.3f} {median:9.3f} {means[0]:9.3f} {means[1]:9.3f}"
        f" {seconds:8.0f}"
    )


def _shown(values: list[float]) -> str:
    return " ".join(f"{value:.3f}" for value in values) or "none"


def main() -> int:
    """Print attempts as they end, then a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tasks", nargs="*", metavar="TASK")
    parser.add_argument("--iterations", type=int, default=2)
    parser.add_argument("--samples", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--env-steps", type=int, default=0, help="instead of the task's budget")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    known = [
        f"{entry.name}/{task}"
        for entry in list_environments()
        for task in load_environment(entry.name).tasks
    ]
    lines = [run_task(reference, arguments) for reference in arguments.tasks or known]
    print(f"\n{'task':20} {'best':>9} {'median':>9} {'human':>9} {'sparse':>9} {'seconds':>8}")
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
