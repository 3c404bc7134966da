"""A run's winner and baselines, trained by another library's PPO: is a reward good, or only good
for this trainer?"""

from __future__ import annotations

import asyncio
import importlib.util
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import FiniteFloat

from eureka_agent import wording
from eureka_agent.archive.files import write_text
from eureka_agent.archive.run_folder import Run
from eureka_agent.archive.safe_files import inside, read_plain
from eureka_agent.boundary.commands import Prove
from eureka_agent.boundary.events import Proved
from eureka_agent.errors import EnvironmentFaultError, EurekaError, RunFolderError, SettingsError
from eureka_agent.export.reward_source import needed_helpers, standalone_source
from eureka_agent.fleet.evaluator import Evaluator
from eureka_agent.fleet.jobs import Problem
from eureka_agent.fleet.warm_worker import WarmWorker
from eureka_agent.invocation import install_extra, show_command
from eureka_agent.libraries import PACKAGES, LibraryName
from eureka_agent.records import Record, Score
from eureka_agent.report.as_json import score_to_json
from eureka_agent.report.comparison import FEWEST_SEEDS, compare_scores, known_fitness
from eureka_agent.rewards import RewardSpecification
from eureka_agent.sandbox.choose import choose_wall
from eureka_agent.sandbox.cores import usable_cores
from eureka_agent.sandbox.inbox import check_policy
from eureka_agent.sandbox.wall import shared_limits
from eureka_agent.search.scoring import score_of_seeds
from eureka_agent.search.seeds import derive_seed
from eureka_agent.search.summary import best_attempt
from eureka_agent.settings import TrainingSettings

PROOF = "proof"
_SLOWER = 20.0
"""Times a training may take what it took here, beside the run's own limit."""


class ProofTraining(Record):
    """One training by the library."""

    name: str
    """`"human"`, `"sparse"` or an attempt id."""
    seed: int
    fitness: FiniteFloat | None
    """Mean over fresh episodes without noise, from a process that never loaded the reward."""
    seconds: FiniteFloat = 0.0
    failure: str = ""


class Proof(Record):
    """Trainings of a run's rewards by another library."""

    library: LibraryName
    version: str = ""
    """Its name and version; empty before the first training."""
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
    return {chosen.id: chosen.proposal.reward, **run.description.baselines}


def proof_settings(run: Run, env_steps: int | None) -> TrainingSettings:
    values = {name: getattr(run.settings, name) for name in TrainingSettings.model_fields}
    changed = {} if env_steps is None else {"env_steps": env_steps}
    return TrainingSettings.model_validate({**values, **changed})


def read_proof(run: Run, library: LibraryName) -> Proof | None:
    """The stored proof; None where there is none."""
    path = inside(run.folder, PROOF, f"{library}.json")
    if not path.is_file():
        return None
    try:
        return Proof.model_validate_json(read_plain(path))
    except (OSError, ValueError) as error:
        raise RunFolderError(
            f"cannot read the proof {str(path)!r}: {error}", "delete it and prove again"
        ) from None


async def prove(
    run: Run,
    library: LibraryName,
    rewards: dict[str, RewardSpecification],
    seeds: int,
    settings: TrainingSettings,
    say: Callable[[ProofTraining], None],
) -> Proof:
    """Train each reward from so many seeds and score its last policies. What a stored proof with
    equal settings has is not trained again. `say` is called after each training.

    Raises SettingsError for a library that is missing, EnvironmentFaultError, WallError, and
    EurekaError where every training failed.
    """
    _check_installed(library)
    work = _Work(run, library, rewards, settings, say)
    wanted = [(name, derive_seed("proof", place)) for place in range(seeds) for name in rewards]
    known = {(each.name, each.seed) for each in work.proof.trainings}
    await work.train([each for each in wanted if each not in known])
    trainings = work.proof.trainings
    if all(each.fitness is None for each in trainings):
        raise EurekaError(f"every training by {library} failed: {trainings[0].failure}")
    return work.proof


def _check_installed(library: LibraryName) -> None:
    module, distribution = PACKAGES[library]
    if importlib.util.find_spec(module) is None:
        raise SettingsError(
            f"--with {library} needs {distribution}, which is not installed",
            f"install it: {install_extra('prove')}",
        )


class _Work:
    """The trainings of one proof, several at a time."""

    def __init__(
        self,
        run: Run,
        library: LibraryName,
        rewards: dict[str, RewardSpecification],
        settings: TrainingSettings,
        say: Callable[[ProofTraining], None],
    ) -> None:
        self._run, self._say = run, say
        self._wall = choose_wall(run.settings.sandbox)
        self._problem = Problem(run.settings.env, run.description.task, run.written_fitness)
        self._rewards = {name: self._exported(name, each) for name, each in rewards.items()}
        episodes = run.settings.evaluation_episodes
        self.proof = Proof(library=library, settings=settings, episodes=episodes)
        stored = read_proof(run, library)
        if stored is not None and (stored.settings, stored.episodes) == (settings, episodes):
            kept = tuple(each for each in stored.trainings if each.fitness is not None)
            self.proof = stored.model_copy(update={"trainings": kept})

    def _exported(self, name: str, reward: RewardSpecification) -> RewardSpecification:
        """The reward as `eureka export` writes it, which is what trains; stored beside the proof.
        One that calls helper functions trains as it is."""
        source = standalone_source(reward.source)
        write_text(inside(self._run.folder, PROOF, f"{name}.py"), source)
        return reward if needed_helpers(reward.source) else reward.with_source(source)

    async def train(self, missing: Sequence[tuple[str, int]]) -> None:
        """Train these, a process for each core."""
        queue, workers = iter(missing), min(usable_cores(), len(missing))
        limits = shared_limits(workers + 1)
        with tempfile.TemporaryDirectory(prefix="eureka-proof-") as scratch:
            evaluator = Evaluator(self._wall, self._problem, Path(scratch) / "evaluator")
            try:
                async with asyncio.TaskGroup() as group:
                    for number in range(workers):
                        place = Path(scratch) / f"{number}"
                        place.mkdir()
                        worker = WarmWorker(self._wall, self._problem, place, limits)
                        group.create_task(self._serve(worker, queue, evaluator))
            except* EurekaError as errors:
                raise errors.exceptions[0] from None
            finally:
                await evaluator.close()

    async def _serve(
        self, worker: WarmWorker, queue: Iterable[tuple[str, int]], evaluator: Evaluator
    ) -> None:
        path = inside(self._run.folder, PROOF, f"{self.proof.library}.json")
        try:
            for name, seed in queue:
                training = await self._training(worker, evaluator, name, seed)
                trainings = (*self.proof.trainings, training)
                self.proof = self.proof.model_copy(update={"trainings": trainings})
                write_text(path, self.proof.model_dump_json(indent=1))
                self._say(training)
        finally:
            await worker.drop()

    async def _training(
        self, worker: WarmWorker, evaluator: Evaluator, name: str, seed: int
    ) -> ProofTraining:
        client, job, library = await worker.ready(), f"{name}-{seed}", self.proof.library
        settings, reward = self.proof.settings, self._rewards[name]
        order = Prove(job=job, library=library, reward=reward, seed=seed, settings=settings)
        try:
            most_s = _SLOWER * self._run.settings.training_timeout
            answer = await worker.ask(order, Proved, most_s, client)
            policy = inside(self._run.folder, PROOF, library, f"{job}.safetensors")
            policy.parent.mkdir(parents=True, exist_ok=True)
            await client.inbox.take(answer.policy, policy, check_policy)
            self.proof = self.proof.model_copy(update={"version": answer.library})
            evaluation = await evaluator.evaluate(
                policy, derive_seed("evaluation", seed), self.proof.episodes
            )
        except EnvironmentFaultError:
            raise
        except EurekaError as error:  # also a worker that died: the next training gets a new one
            return ProofTraining(name=name, seed=seed, fitness=None, failure=error.message)
        fitness = evaluation.fitness_mean()
        return ProofTraining(name=name, seed=seed, fitness=fitness, seconds=answer.seconds)


# ── its words ─────────────────────────────────────────────────────────────────────────────────────


def proof_rows(
    proved: Sequence[Score], own: Mapping[str, Score], unit: str
) -> list[tuple[str, str, str]]:
    """A row for each reward: name, fitness by the library, fitness by this trainer."""
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


def proof_sentence(proved: Sequence[Score], own: Mapping[str, Score], library: str) -> str:
    """Comparison of the winner with the baselines by the library, and with that of this trainer."""
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
        return f"by {library}: there is no baseline to compare {winner.name} with"
    agrees = ""
    if alike:
        agrees = ", as by this trainer" if all(alike) else "; this trainer's own scores differ"
    return f"by {library}, {winner.name} is {' and '.join(parts)}{agrees}"


def proof_json(proved: Sequence[Score], own: Mapping[str, Score]) -> dict[str, Any]:
    """Scores by the library and by this trainer."""
    names = [score.name for score in proved]
    return {
        "winner": names[0],
        "scores": [score_to_json(score) for score in proved],
        "own_scores": [score_to_json(score) for name, score in own.items() if name in names],
    }
