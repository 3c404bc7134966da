"""A run's winner and baselines, trained by a command: is a reward good, or only good for this
trainer and this simulator?"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import FiniteFloat

from eureka_agent import wording
from eureka_agent.archive.files import write_text
from eureka_agent.archive.run_folder import Run
from eureka_agent.archive.safe_files import inside, read_plain
from eureka_agent.critic.contract import contract_fault
from eureka_agent.errors import EnvironmentFaultError, EurekaError, RunFolderError, SettingsError
from eureka_agent.fleet.devices import choose_hardware
from eureka_agent.fleet.dry_runner import DryRunner
from eureka_agent.fleet.evaluator import Evaluator
from eureka_agent.fleet.fleet import Fleet, Trainings
from eureka_agent.fleet.jobs import Population, Problem
from eureka_agent.invocation import show_command
from eureka_agent.records import Record, Score, TaskDescription
from eureka_agent.report.as_json import score_to_json
from eureka_agent.report.comparison import FEWEST_SEEDS, compare_scores, known_fitness
from eureka_agent.rewards import RewardSpecification
from eureka_agent.sandbox.choose import choose_wall
from eureka_agent.search.scoring import score_of_seeds
from eureka_agent.search.seeds import derive_seed
from eureka_agent.search.summary import best_attempt
from eureka_agent.settings import TrainingSettings

PROOF = "proof"


class ProofTraining(Record):
    """One training by the command."""

    name: str
    """`"human"`, `"sparse"` or an attempt id."""
    seed: int
    fitness: FiniteFloat | None
    """Mean over fresh episodes without noise, from a process that never loaded the reward."""
    seconds: FiniteFloat = 0.0
    failure: str = ""


class Proof(Record):
    """Trainings of a run's rewards by a command environment."""

    command: str
    """Name of its folder."""
    task: str
    fingerprint: str
    """SHA-256 of its files."""
    versions: dict[str, str]
    """Versions of its packages, by name."""
    settings: TrainingSettings
    episodes: int
    trainings: tuple[ProofTraining, ...] = ()

    def score(self, name: str) -> Score:
        """Score of one reward over its seeds."""
        found = {each.seed: each.fitness for each in self.trainings if each.name == name}
        return score_of_seeds(name, dict(sorted(found.items())))


def rewards_to_prove(run: Run, attempt: str | None) -> dict[str, RewardSpecification]:
    """The best attempt (or the one that is named) and the baselines, by name. Raises RunFolderError
    where nothing was trained."""
    chosen = best_attempt(run) if attempt is None else run.archive.attempt(attempt)
    if chosen is None:
        what = "no trained attempt" if attempt is None else f"no attempt {attempt!r}"
        hint = f"`{show_command(run.folder)}` lists what was trained"
        raise RunFolderError(f"the run {run.name!r} has {what}", hint)
    if (kind := chosen.proposal.reward.kind) != "code":
        raise RunFolderError(
            f"attempt {chosen.id} of {run.name!r} was trained with --rewards {kind}: what it was"
            " paid was learned by this program's trainer, and another one cannot",
            "prove a run whose rewards are paid as they are written",
        )
    if chosen.proposal.reward.designs_observation:
        raise RunFolderError(
            f"attempt {chosen.id} of {run.name!r} has an observation of its own, and another"
            " trainer observes what its simulator gives",
            "prove a run that designs rewards alone",
        )
    return {chosen.id: chosen.proposal.reward, **run.description.baselines}


def _stored(path: Path) -> Proof | None:
    """The proof in a file; None where there is none."""
    if not path.is_file():
        return None
    try:
        return Proof.model_validate_json(read_plain(path))
    except (OSError, ValueError) as error:
        what = f"cannot read the proof {str(path)!r}: {error}"
        raise RunFolderError(what, "delete it and prove again") from None


async def prove(
    run: Run,
    problem: Problem,
    rewards: Mapping[str, RewardSpecification],
    seeds: int,
    env_steps: int | None,
    say: Callable[[ProofTraining], None],
) -> Proof:
    """Train each reward from so many seeds by the command environment of `problem`, for its task's
    env steps or `env_steps`, and score the policies in its simulator. What a stored proof of the
    same command has is not trained again. `say` is called after each training.

    Raises SettingsError for an environment that is no command, EnvironmentFaultError, WallError,
    and EurekaError where every training failed.
    """
    wall = choose_wall(run.settings.sandbox)
    with tempfile.TemporaryDirectory(prefix="eureka-proof-") as temporary:
        scratch = Path(temporary)
        runner = DryRunner(wall, problem, scratch / "dry-run")
        try:
            description = await runner.start()
            opened = runner.opened
        finally:
            await runner.close()
        if description.command is None:
            raise SettingsError(
                f"--with {problem.environment} is an environment of this program's trainer",
                "name the folder of a command environment (docs/your-own-simulator.md)",
            )
        unfit = {name: contract_fault(each, description) for name, each in rewards.items()}
        winner = next(iter(rewards))
        if unfit[winner]:
            what = f"the reward {winner} does not fit {problem.environment}: {unfit[winner]}"
            raise SettingsError(what, "have the command tell variables of the same names")
        work = _Work(run, description, env_steps, say)
        wanted = [(name, derive_seed("proof", place)) for place in range(seeds) for name in rewards]
        known = {(each.name, each.seed) for each in work.proof.trainings}
        missing = [each for each in wanted if each not in known]
        facts, hardware = description.command, choose_hardware(run.settings.device, opened)
        devices = hardware.devices(facts.slots)
        timeout_s = run.settings.training_timeout
        population = Population(problem, work.proof.settings, facts.rewards, timeout_s)
        async with (
            Fleet(wall, scratch, facts.slots, devices) as fleet,
            fleet.trainings(population) as trainings,
            fleet.evaluator(problem) as evaluator,
        ):
            try:
                async with asyncio.TaskGroup() as group:
                    for name, seed in missing:
                        if unfit[name]:
                            failed = ProofTraining(
                                name=name, seed=seed, fitness=None, failure=unfit[name]
                            )
                            work.record(failed)
                            continue
                        one = work.train(trainings, evaluator, name, rewards[name], seed)
                        group.create_task(one)
            except* EurekaError as errors:
                raise errors.exceptions[0] from None
    proof = work.proof
    if all(each.fitness is None for each in proof.trainings):
        failure = proof.trainings[0].failure
        raise EurekaError(f"every training by {proof.command} failed: {failure}")
    return proof


class _Work:
    """The trainings of one proof, recorded as they end."""

    def __init__(
        self,
        run: Run,
        description: TaskDescription,
        env_steps: int | None,
        say: Callable[[ProofTraining], None],
    ) -> None:
        assert description.command is not None
        self._say = say
        name = Path(description.environment).name
        self._path = inside(run.folder, PROOF, f"{name}-{description.task}.json")
        steps = {} if env_steps is None else {"env_steps": env_steps}
        begun = Proof(
            command=name,
            task=description.task,
            fingerprint=description.fingerprint,
            versions=description.command.versions,
            settings=TrainingSettings.model_validate({**description.training_on("cpu"), **steps}),
            episodes=run.settings.evaluation_episodes,
        )
        self.proof, stored = begun, _stored(self._path)
        if stored is not None and stored.model_copy(update={"trainings": ()}) == begun:
            kept = tuple(each for each in stored.trainings if each.fitness is not None)
            self.proof = stored.model_copy(update={"trainings": kept})

    async def train(
        self,
        trainings: Trainings,
        evaluator: Evaluator,
        name: str,
        reward: RewardSpecification,
        seed: int,
    ) -> None:
        began, failure, fitness = time.monotonic(), "", None
        result = await trainings.train(f"{name}-{seed}", reward, seed)
        if result.policy is None:
            failure = result.failure_reason
        else:
            try:
                fresh = derive_seed("evaluation", seed)
                found = await evaluator.evaluate(result.policy, fresh, self.proof.episodes)
                fitness = found.fitness_mean()
            except EnvironmentFaultError:
                raise
            except EurekaError as error:
                failure = error.message
        seconds = time.monotonic() - began
        told = {"fitness": fitness, "seconds": seconds, "failure": failure}
        self.record(ProofTraining(name=name, seed=seed, **told))

    def record(self, training: ProofTraining) -> None:
        """Store a training that has ended, and tell of it."""
        trainings = (*self.proof.trainings, training)
        self.proof = self.proof.model_copy(update={"trainings": trainings})
        write_text(self._path, self.proof.model_dump_json(indent=1))
        self._say(training)


# ── its words ─────────────────────────────────────────────────────────────────────────────────────


def proof_rows(
    proved: Sequence[Score], own: Mapping[str, Score], unit: str
) -> list[tuple[str, str, str]]:
    """A row for each reward: name, fitness by the command, fitness by this trainer."""
    return [
        (
            score.name,
            _cell(score, unit),
            _cell(own[score.name], unit) if score.name in own else "-",
        )
        for score in proved
    ]


def _cell(score: Score, unit: str) -> str:
    many = len(known_fitness(score))
    failed = len(score.seeds) - many
    text = f"{wording.plus_minus(score.mean, score.std)}{unit} ({wording.plural(many, 'seed')})"
    return f"{text}, {failed} failed" if failed else text


def proof_sentence(proved: Sequence[Score], own: Mapping[str, Score], command: str) -> str:
    """Comparison of the winner with the baselines by the command, and with that of this trainer."""
    winner, *baselines = proved
    parts, alike = [], []
    for baseline in baselines:
        there = compare_scores(winner, baseline)
        if there is None:
            found = f"not compared (fewer than {FEWEST_SEEDS} seeds) with"
            parts.append(f"{found} {baseline.name}")
            continue
        parts.append(f"{there.relation} {baseline.name}")
        if winner.name in own and baseline.name in own:
            here = compare_scores(own[winner.name], own[baseline.name])
            if here is not None:
                alike.append(there.relation == here.relation)
    if not parts:
        return f"by {command}: there is no baseline to compare {winner.name} with"
    agrees = ""
    if alike:
        agrees = ", as by this trainer" if all(alike) else "; this trainer's own scores differ"
    return f"by {command}, {winner.name} is {' and '.join(parts)}{agrees}"


def proof_json(proved: Sequence[Score], own: Mapping[str, Score]) -> dict[str, Any]:
    """Scores by the command and by this trainer."""
    names = [score.name for score in proved]
    return {
        "winner": names[0],
        "scores": [score_to_json(score) for score in proved],
        "own_scores": [score_to_json(score) for name, score in own.items() if name in names],
    }
