"""Search over distributions of an environment's parameters, for the best reward of a run (Ma et al.
2024, DrEureka): prior, distributions, trainings, scores over the whole safe ranges."""

from __future__ import annotations

import asyncio
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from eureka_agent import wording
from eureka_agent.analysis.parameter_prior import prior_of, values_to_score
from eureka_agent.archive.artefacts import (
    CURVES,
    DISTRIBUTION,
    POLICY,
    RANDOMISED,
    attempt_folder,
    randomised_folder,
    training_folder,
)
from eureka_agent.archive.files import copy_file, dump_json, write_text
from eureka_agent.archive.run_folder import Run
from eureka_agent.archive.safe_files import inside
from eureka_agent.designer.distribution_writer import DistributionRequest
from eureka_agent.designer.offline.distributions import offline_distributions
from eureka_agent.errors import RunFolderError
from eureka_agent.journal.entries import (
    DistributionsProposed,
    Notice,
    Observer,
    PriorMeasured,
    RandomisationEnded,
    RandomisationStarted,
    RandomisedScored,
    RandomisedTrained,
)
from eureka_agent.journal.progress import TrainingEnded
from eureka_agent.llm.budget import BudgetSpentError
from eureka_agent.llm.interface import LanguageModelError
from eureka_agent.parameters import DEFAULTS, Distribution
from eureka_agent.randomisation_records import (
    CONTROL,
    HeldOutFitness,
    Prior,
    Randomisation,
    RandomisedParameters,
    RandomisedScore,
)
from eureka_agent.records import Attempt, Evaluation, FinalTraining, Outcome
from eureka_agent.report.html.training_curves import read_fitness
from eureka_agent.search.final import typical_training
from eureka_agent.search.seeds import derive_seed, final_seeds
from eureka_agent.search.summary import best_attempt
from eureka_agent.search.trial import Trial, TrialRequest

BEGINNING_SHARE = 0.02
"""Share of a curve whose episodes tell what a policy could do before it learned."""


class Trials(Protocol):
    """`eureka_agent.search.trial.TrialRunner`."""

    async def run(self, request: TrialRequest) -> Trial: ...
    async def score(
        self, policy: Path, seed: int, episodes: int, parameters: Distribution = DEFAULTS
    ) -> Evaluation | None: ...
    def settle(self, request: TrialRequest) -> None: ...


class Writes(Protocol):
    """`eureka_agent.designer.distribution_writer.DistributionWriter`."""

    async def write(
        self, request: DistributionRequest
    ) -> tuple[tuple[RandomisedParameters, ...], tuple[str, ...]]: ...


@dataclass(frozen=True)
class _Control:
    """A training of the reward under the defaults, which the run has made anyway."""

    seed: int
    outcome: Outcome
    folder: Path

    @property
    def policy(self) -> Path:
        return self.folder / POLICY


class Randomising:
    """The phase after the final trainings. All that it decides is recorded before it acts on it, so
    that a resumed run does nothing twice."""

    def __init__(self, run: Run, trials: Trials, writer: Writes | None, observer: Observer) -> None:
        """`writer`: None for the offline distributions."""
        self._run = run
        self._trials = trials
        self._writer = writer
        self._observer = observer
        self._parameters = run.description.parameters

    async def run(self) -> None:
        """Search for the distribution whose policies do best over the whole safe ranges; does
        nothing where the settings ask for none."""
        settings = self._run.settings
        winner = best_attempt(self._run) if settings.randomise else None
        if winner is None:
            return
        controls = self._controls(winner)
        if not controls:
            text = f"no distributions of parameters: {winner.id} has no scored policy to start from"
            self._observer(Notice(text=text, level="warning"))
            return
        seeds = self._seeds(winner)
        self._observer(
            RandomisationStarted(
                winner=winner.id, distributions=settings.randomise, seeds=len(seeds)
            )
        )
        prior = await self._prior(winner, controls)
        if prior is None:
            return
        await self._propose(winner, prior)
        async with asyncio.TaskGroup() as group:
            for control in controls:
                fitness = control.outcome.fitness
                name = (winner.id, CONTROL, control.seed)
                group.create_task(self._score(*name, fitness, control.policy))
            for distribution in self._known(winner.id).distributions[: settings.randomise]:
                for seed in seeds:
                    group.create_task(self._train_and_score(winner, distribution, seed))
        self._choose(winner.id)

    def _known(self, winner: str) -> Randomisation:
        return self._run.archive.state.randomised.get(winner, Randomisation(attempt=winner))

    def _seeds(self, winner: Attempt) -> tuple[int, ...]:
        """Seeds of the control's trainings, so that nothing but the parameters differs."""
        settings = self._run.settings
        return final_seeds(settings.final_seeds) if settings.finalists else (winner.seed,)

    def _controls(self, winner: Attempt) -> list[_Control]:
        """The winner's final trainings, or its search training without finals."""
        run, seeds = self._run, self._seeds(winner)
        if run.settings.finalists:
            found = [
                (each.seed, each.outcome, training_folder(run.folder, winner.id, each.seed))
                for each in run.archive.trainings()
                if each.name == winner.id and each.seed in seeds
            ]
        else:
            found = [(winner.seed, winner.outcome, attempt_folder(run.folder, winner.id))]
        controls = [
            _Control(seed, outcome, folder)
            for seed, outcome, folder in found
            if outcome is not None and outcome.fitness is not None
        ]
        return [control for control in controls if control.policy.is_file()]

    # ── the prior ─────────────────────────────────────────────────────────────────────────────────

    async def _prior(self, winner: Attempt, controls: Sequence[_Control]) -> Prior | None:
        """The recorded prior, or one that is measured and recorded. None, with a notice, where
        nothing follows from it."""
        prior = self._known(winner.id).prior
        if prior is None:
            typical = typical_training(self._run.archive.trainings(), winner.id)
            named = [each for each in controls if typical and each.seed == typical.seed]
            prior = await self._measured((named or list(controls))[0])
            if prior is None:
                self._end(winner.id, None, "the policy's fitness, or its beginning, is not known")
                return None
            self._observer(PriorMeasured(winner=winner.id, prior=prior))
        if not prior.gained:
            base, floor = wording.number(prior.base), wording.number(prior.floor)
            text = f"training gained nothing (fitness {base}, at its beginning {floor})"
            self._end(winner.id, None, f"{text}, so no value can be told to work")
            return None
        return prior

    async def _measured(self, control: _Control) -> Prior | None:
        """The prior of a policy, with all values scored from the same start states."""
        floor = _beginning(control)
        if floor is None:
            return None
        episodes = self._run.settings.scoring_episodes
        seed = derive_seed("parameter-prior", control.seed)
        values = [
            (each.name, value)
            for each in self._parameters
            for value in values_to_score(each)
            if value != each.default
        ]
        ranges = [DEFAULTS, *({name: (value, value)} for name, value in values)]
        base, *scores = await asyncio.gather(
            *(self._trials.score(control.policy, seed, episodes, each) for each in ranges)
        )
        reached = _finite_mean(base)
        if reached is None:
            return None
        by_value = dict(zip(values, map(_finite_mean, scores), strict=True))
        return prior_of(self._parameters, reached, floor, by_value, episodes)

    # ── the distributions ─────────────────────────────────────────────────────────────────────────

    async def _propose(self, winner: Attempt, prior: Prior) -> None:
        """Record as many distributions as the settings ask for, besides the recorded ones."""
        known = self._known(winner.id).distributions
        missing = self._run.settings.randomise - len(known)
        if missing <= 0:
            return
        found: tuple[RandomisedParameters, ...] = ()
        if self._writer is not None:
            reward = winner.proposal.reward
            request = DistributionRequest(winner.id, reward, prior, known, missing)
            found = await self._written(self._writer, request)
        left = missing - len(found)
        found += tuple(offline_distributions(self._parameters, prior, (*known, *found), left))
        if len(found) < missing:
            text = f"the safe ranges leave room for {len(known) + len(found)} distributions alone"
            self._observer(Notice(text=text, level="warning"))
        if found:
            self._observer(DistributionsProposed(winner=winner.id, distributions=found))

    async def _written(
        self, writer: Writes, request: DistributionRequest
    ) -> tuple[RandomisedParameters, ...]:
        """The model's distributions; a notice tells why there are fewer than asked for."""
        try:
            found, faults = await writer.write(request)
        except (BudgetSpentError, LanguageModelError) as error:
            found, faults = (), (error.message,)
        if len(found) < request.count:
            many = wording.plural(
                request.count - len(found), "distribution is", "distributions are"
            )
            text = f"{many} the offline designer's: {'; '.join(faults)}"
            self._observer(Notice(text=text, level="warning"))
        return found

    # ── trainings and scores ──────────────────────────────────────────────────────────────────────

    async def _train_and_score(
        self, winner: Attempt, distribution: RandomisedParameters, seed: int
    ) -> None:
        name = distribution.name
        folder = randomised_folder(self._run.folder, winner.id, name, seed)
        training = self._known(winner.id).training(name, seed)
        if training is None:
            training = await self._trained(winner, distribution, seed, folder)
        else:
            self._tell_known(winner.id, training)
        if training.outcome is not None:
            fitness = training.outcome.fitness
            await self._score(winner.id, name, seed, fitness, folder / POLICY)

    async def _trained(
        self, winner: Attempt, distribution: RandomisedParameters, seed: int, folder: Path
    ) -> FinalTraining:
        request = TrialRequest(
            label=f"{winner.id}+{distribution.name}",
            kind="randomised",
            reward=winner.proposal.reward,
            seed=seed,
            folder=folder,
            curriculum=distribution.stages(self._run.settings.env_steps),
        )
        trial = await self._trials.run(request)
        training = FinalTraining(
            name=distribution.name,
            seed=seed,
            outcome=trial.outcome,
            failure=trial.failure,
            retries=trial.retries,
        )
        self._observer(RandomisedTrained(winner=winner.id, training=training))
        self._trials.settle(request)
        return training

    def _tell_known(self, winner: str, training: FinalTraining) -> None:
        label = f"{winner}+{training.name}"
        self._observer(
            TrainingEnded(
                job=f"{label}@{training.seed}",
                label=label,
                training="randomised",
                fitness=None if training.outcome is None else training.outcome.fitness,
                failure=training.failure,
                taken_from="what this run had trained before",
            )
        )

    async def _score(
        self, winner: str, name: str, seed: int, fitness: float | None, policy: Path
    ) -> None:
        """Score a policy under the whole safe ranges, once to choose by and once to report; the
        draws are the same for all trainings from this seed."""
        if self._known(winner).score(name, seed) is not None:
            return
        choice, held_out = await asyncio.gather(
            self._held_out(policy, derive_seed("parameter-choice", seed)),
            self._held_out(policy, derive_seed("held-out-parameters", seed)),
        )
        score = RandomisedScore(
            name=name, seed=seed, fitness=fitness, choice=choice, held_out=held_out
        )
        self._observer(RandomisedScored(winner=winner, score=score))

    async def _held_out(self, policy: Path, seed: int) -> HeldOutFitness | None:
        ranges = {each.name: (each.low, each.high) for each in self._parameters}
        episodes = self._run.settings.evaluation_episodes
        evaluation = await self._trials.score(policy, seed, episodes, ranges)
        if evaluation is None or _finite_mean(evaluation) is None:
            return None
        return HeldOutFitness.of([episode.fitness for episode in evaluation.episodes])

    # ── the choice ────────────────────────────────────────────────────────────────────────────────

    def _choose(self, winner: str) -> None:
        """Record the best distribution, by the scores that are there to choose by."""
        known = self._known(winner)
        means = {}
        for distribution in known.distributions:
            if values := known.choices(distribution.name).values():
                means[distribution.name] = statistics.fmean(values)
        if not means:
            self._end(winner, None, "no training under a distribution could be scored")
            return
        best = max(means, key=lambda name: means[name])
        self._keep(known, best)
        self._end(winner, best)

    def _end(self, winner: str, best: str | None, text: str = "") -> None:
        """Record the end, unless it is the recorded one."""
        known = self._known(winner)
        if text:
            self._observer(Notice(text=f"no distribution is chosen: {text}", level="warning"))
        if (known.best, known.text) != (best, text):
            self._observer(RandomisationEnded(winner=winner, best=best, text=text))

    def _keep(self, known: Randomisation, best: str) -> None:
        """Fill `randomised/` with the typical policy of the best distribution."""
        seed = known.typical_seed(best)
        folder = inside(self._run.folder, RANDOMISED)
        source = randomised_folder(self._run.folder, known.attempt, best, seed)
        copy_file(source / POLICY, folder / POLICY)
        chosen = next(each for each in known.distributions if each.name == best)
        content = {"attempt": known.attempt, "seed": seed, **chosen.model_dump(mode="json")}
        write_text(folder / DISTRIBUTION, dump_json(content))


def _finite_mean(evaluation: Evaluation | None) -> float | None:
    """Mean fitness; None for a policy that could not be scored, or where it is infinite."""
    mean = math.nan if evaluation is None else evaluation.fitness_mean()
    return mean if math.isfinite(mean) else None


def _beginning(control: _Control) -> float | None:
    """Fitness at the beginning of a training, with exploration noise: over the first episodes of
    its curve, or its first checkpoint with a fitness where the curve is gone."""
    try:
        values = [
            each for each in read_fitness(control.folder / CURVES).fitness if each is not None
        ]
    except RunFolderError:
        values = []
    if values:
        return statistics.fmean(values[: max(1, round(BEGINNING_SHARE * len(values)))])
    checkpoints = (each.fitness for each in control.outcome.checkpoints)
    return next((value for value in checkpoints if value is not None), None)
