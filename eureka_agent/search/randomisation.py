"""Search over distributions of an environment's parameters (DrEureka, Ma et al. 2024)."""

from __future__ import annotations

import asyncio
import math
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eureka_agent import wording
from eureka_agent.analysis.parameter_prior import prior_of, values_to_score
from eureka_agent.archive import artefacts
from eureka_agent.archive.artefacts import POLICY, RANDOMISED, trained_folder, training_folder
from eureka_agent.archive.files import copy_file, dump_json, write_text
from eureka_agent.archive.run_folder import Run
from eureka_agent.archive.safe_files import inside
from eureka_agent.designer.distribution_writer import (
    DistributionRequest,
    DistributionWriter,
    offline_distributions,
)
from eureka_agent.errors import RunFolderError
from eureka_agent.journal import entries
from eureka_agent.journal.entries import Notice, Observer
from eureka_agent.llm.budget import BudgetSpentError
from eureka_agent.llm.interface import LanguageModelError
from eureka_agent.parameters import DEFAULTS, Distribution
from eureka_agent.randomisation_records import (
    HeldOutFitness,
    Prior,
    Randomisation,
    RandomisedParameters,
    RangeScore,
)
from eureka_agent.records import Attempt, Operator, Outcome, Proposal, Stage
from eureka_agent.report.html.training_curves import read_fitness
from eureka_agent.search.attempt_training import AttemptTrainer
from eureka_agent.search.seeds import derive_seed, final_seeds
from eureka_agent.search.summary import best_attempt
from eureka_agent.search.trial import TrialRunner

BEGINNING_SHARE = 0.02
"""Share of a curve whose episodes tell what a policy could do before it learned."""


@dataclass(frozen=True)
class Scorable:
    """A training that has a policy."""

    seed: int
    outcome: Outcome
    folder: Path

    @property
    def fitness(self) -> float:
        return self.outcome.fitness or 0.0


class Randomising:
    """The phase after the final trainings. Each decision is recorded before it is acted on."""

    def __init__(
        self,
        run: Run,
        trainer: AttemptTrainer,
        trials: TrialRunner,
        writer: DistributionWriter | None,
        observer: Observer,
    ) -> None:
        """`writer`: None for the offline distributions."""
        self._run, self._trainer, self._trials = run, trainer, trials
        self._writer, self._observer = writer, observer
        self._parameters = run.description.parameters

    async def run(self) -> None:
        """Search for the distribution whose policies do best, if one is asked for."""
        wanted = self._run.settings.randomise
        winner = best_attempt(self._run) if wanted else None
        if winner is None:
            return
        controls = self._controls(winner)
        if not controls:
            self._warn(f"no distributions of parameters: {winner.id} has no scored policy")
            return
        prior = await self._prior(winner, controls)
        if prior is None:
            return
        await self._propose(winner, prior)
        async with asyncio.TaskGroup() as group:
            for control in controls:
                group.create_task(self._score(winner.id, control))
            for attempt in self._run.archive.state.randomised(winner.id)[:wanted]:
                for seed in self._seeds(winner):
                    group.create_task(self._train_and_score(attempt, seed))
        self._choose(winner)

    def _warn(self, text: str) -> None:
        self._observer(Notice(text=text, level="warning"))

    def _seeds(self, winner: Attempt) -> tuple[int, ...]:
        """Seeds of the winner's own trainings, so that nothing but the parameters differs."""
        settings = self._run.settings
        return final_seeds(settings.final_seeds) if settings.finalists else (winner.seed,)

    def _controls(self, winner: Attempt) -> list[Scorable]:
        """The winner's trainings under the defaults: finals, or that of the search."""
        folder, finals = self._run.folder, self._run.archive.state.by_training
        found: list[tuple[int, Outcome | None, Path]] = []
        for seed in self._seeds(winner):
            if not self._run.settings.finalists:
                found.append((seed, winner.outcome, trained_folder(folder, winner, seed)))
            elif (final := finals.get((winner.id, seed))) is not None:
                found.append((seed, final.outcome, training_folder(folder, winner.id, seed)))
        return [
            Scorable(seed, outcome, place)
            for seed, outcome, place in found
            if outcome is not None and outcome.fitness is not None and (place / POLICY).is_file()
        ]

    # ── the prior ─────────────────────────────────────────────────────────────────────────────────

    async def _prior(self, winner: Attempt, controls: list[Scorable]) -> Prior | None:
        """The prior, measured and recorded once; None where nothing follows from it."""
        prior = self._known(winner).prior
        if prior is None:
            mean = statistics.fmean(each.fitness for each in controls)
            prior = await self._measured(min(controls, key=lambda each: abs(each.fitness - mean)))
            if prior is None:
                self._change(winner, text="the policy's fitness, or its beginning, is not known")
                return None
            self._change(winner, prior=prior)
        if prior.base <= prior.floor:
            base, floor = wording.number(prior.base), wording.number(prior.floor)
            text = f"training gained nothing (fitness {base}, at its beginning {floor})"
            self._change(winner, text=f"{text}, so no value can be told to work")
            return None
        return prior

    async def _measured(self, control: Scorable) -> Prior | None:
        """The prior of a policy, with all values scored from the same start states."""
        episodes = self._run.settings.scoring_episodes
        seed = derive_seed("parameter-prior", control.seed)
        ranges: dict[tuple[str, float], Distribution] = {
            (each.name, value): {each.name: (value, value)}
            for each in self._parameters
            for value in values_to_score(each)
            if value != each.default
        }
        policy, floor = control.folder / POLICY, beginning(control)
        if floor is None:
            return None
        found = await asyncio.gather(
            *(self._fitness(policy, seed, episodes, each) for each in (DEFAULTS, *ranges.values()))
        )
        base, *means = (sum(each) / len(each) if each else None for each in found)
        if base is None:
            return None
        scores = dict(zip(ranges, means, strict=True))
        return prior_of(self._parameters, base, floor, scores, episodes)

    async def _fitness(
        self, policy: Path, seed: int, episodes: int, parameters: Distribution
    ) -> list[float]:
        """Fitness of each episode; empty for a policy without a finite score."""
        evaluation = await self._trials.score(policy, seed, episodes, parameters)
        values = [] if evaluation is None else [each.fitness for each in evaluation.episodes]
        return values if math.isfinite(sum(values)) else []

    # ── the distributions ─────────────────────────────────────────────────────────────────────────

    async def _propose(self, winner: Attempt, prior: Prior) -> None:
        """Record the distributions that are missing, then each as an attempt."""
        known, wanted = self._known(winner).distributions, self._run.settings.randomise
        if (missing := wanted - len(known)) > 0:
            request = DistributionRequest(winner.id, winner.proposal.reward, prior, known, missing)
            known += await self._written(request)
            left = wanted - len(known)
            known += tuple(offline_distributions(self._parameters, prior, known, left))
            if len(known) < wanted:
                self._warn(f"the safe ranges leave room for {len(known)} distributions alone")
            if len(known) > wanted - missing:
                self._change(winner, distributions=known)
        for place, each in enumerate(known):
            if f"{winner.id}+{each.name}" not in self._run.archive.state.by_id:
                self._record(winner, each, place)

    async def _written(self, request: DistributionRequest) -> tuple[RandomisedParameters, ...]:
        """The model's distributions; a notice tells why there are fewer than asked for."""
        if self._writer is None:
            return ()
        try:
            found, faults = await self._writer.write(request)
        except (BudgetSpentError, LanguageModelError) as error:
            found, faults = (), (error.message,)
        if missing := request.count - len(found):
            many = wording.plural(missing, "distribution is", "distributions are")
            self._warn(f"{many} the offline designer's: {'; '.join(faults)}")
        return found

    def _record(self, winner: Attempt, distribution: RandomisedParameters, place: int) -> None:
        """Record a distribution as an attempt with the winner's reward."""
        proposal = Proposal(
            reward=winner.proposal.reward.model_copy(update={"author": distribution.author}),
            reasoning=distribution.reason,
            operator=Operator.RANDOMISE,
            parents=(winner.id,),
            distribution=distribution,
        )
        proposed = entries.Proposed(
            attempt=f"{winner.id}+{distribution.name}",
            iteration=winner.iteration,
            sample=place,
            revision=0,
            proposal=proposal,
            seed=self._seeds(winner)[0],
        )
        self._observer(proposed)
        state = self._run.archive.state
        artefacts.write_proposal(self._run.folder, state.by_id[proposed.attempt])

    # ── trainings and scores ──────────────────────────────────────────────────────────────────────

    async def _train_and_score(self, attempt: Attempt, seed: int) -> None:
        if seed not in attempt.outcomes:
            await self._trainer.repeat(attempt.id, attempt.iteration, seed)
        elif seed == attempt.seed and attempt.stage is Stage.PROPOSED:
            await self._trainer.train(attempt, lambda: None)
        outcome = self._run.archive.state.by_id[attempt.id].outcomes[seed]
        if outcome is not None and outcome.fitness is not None:
            folder = trained_folder(self._run.folder, attempt, seed)
            await self._score(attempt.id, Scorable(seed, outcome, folder))

    async def _score(self, name: str, training: Scorable) -> None:
        """Score a policy over the safe ranges, once to choose by and once to report."""
        seed, known = training.seed, self._run.archive.state.by_id[name].range_scores
        if any(each.seed == seed for each in known):
            return
        ranges = {each.name: (each.low, each.high) for each in self._parameters}
        policy, episodes = training.folder / POLICY, self._run.settings.evaluation_episodes
        found = await asyncio.gather(
            self._fitness(policy, derive_seed("parameter-choice", seed), episodes, ranges),
            self._fitness(policy, derive_seed("held-out-parameters", seed), episodes, ranges),
        )
        choice, held_out = (HeldOutFitness.of(each) if each else None for each in found)
        fitness = training.fitness
        score = RangeScore(seed=seed, fitness=fitness, choice=choice, held_out=held_out)
        self._observer(entries.RangesScored(attempt=name, score=score))

    # ── the choice ────────────────────────────────────────────────────────────────────────────────

    def _choose(self, winner: Attempt) -> None:
        """Record the best distribution, and fill `randomised/` with its typical policy."""
        scores = {
            each.id: {score.seed: score.choice.mean for score in each.range_scores if score.choice}
            for each in self._run.archive.state.randomised(winner.id)
        }
        means = {name: statistics.fmean(each.values()) for name, each in scores.items() if each}
        if not means:
            self._change(winner, text="no training under a distribution could be scored")
            return
        best = max(means, key=lambda name: means[name])
        seed = min(scores[best], key=lambda seed: abs(scores[best][seed] - means[best]))
        attempt = self._run.archive.state.by_id[best]
        chosen = attempt.proposal.distribution
        assert chosen is not None  # it is one of the distributions
        self._change(winner, best=chosen.name, seed=seed)
        folder = inside(self._run.folder, RANDOMISED)
        copy_file(trained_folder(self._run.folder, attempt, seed) / POLICY, folder / POLICY)
        content = {"attempt": winner.id, "seed": seed, **chosen.model_dump(mode="json")}
        write_text(folder / artefacts.DISTRIBUTION, dump_json(content))

    def _known(self, winner: Attempt) -> Randomisation:
        return self._run.archive.state.by_id[winner.id].randomisation or Randomisation()

    def _change(self, winner: Attempt, **changes: Any) -> None:
        """Record changed fields of a `Randomisation`; an end that is not among them is dropped."""
        before = self._known(winner)
        now = before.model_copy(update={"best": None, "seed": None, "text": "", **changes})
        if now != before:
            self._observer(entries.RandomisationChanged(attempt=winner.id, now=now))


def beginning(training: Scorable) -> float | None:
    """Fitness over the first episodes of a training, or at its first checkpoint without a curve."""
    try:
        curve = read_fitness(training.folder / artefacts.CURVES).fitness
    except RunFolderError:
        curve = ()
    if values := [each for each in curve if each is not None]:
        return statistics.fmean(values[: max(1, round(BEGINNING_SHARE * len(values)))])
    checkpoints = (each.fitness for each in training.outcome.checkpoints)
    return next((value for value in checkpoints if value is not None), None)
