"""Memory of a run for the judging of proposals, and the choice among several drafts of one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from eureka_agent.analysis.questions import REDUCTIONS
from eureka_agent.analysis.standing import judged
from eureka_agent.analysis.trajectories import read_trajectories
from eureka_agent.archive.artefacts import PRACTICE, TRAJECTORIES, attempt_folder
from eureka_agent.archive.run_folder import Run
from eureka_agent.critic.credit import credit_distances
from eureka_agent.critic.critic import Critic
from eureka_agent.critic.memory import KnownEpisodes, KnownReward, Memory
from eureka_agent.designer.interface import Designer, DesignRequest
from eureka_agent.errors import RunFolderError
from eureka_agent.journal.state import RunState
from eureka_agent.llm.budget import BudgetSpentError
from eureka_agent.records import Attempt, Credit, Operator, Proposal, Stage
from eureka_agent.rewards import RewardSpecification
from eureka_agent.search.seeds import derive_seed

MOST_KNOWN_EPISODES = 64
"""Most attempts whose episodes are compared with: it bounds what the worker reads."""
_PASSED = (Stage.ACCEPTED, Stage.FAILED, Stage.TRAINED)
"""Stages of accepted attempts."""


class RunMemory:
    """Finds the attempts that a reward is compared with: those that the proposal's plan was made
    from, and with designers that work in order the sources of later ones."""

    def __init__(self, run: Run, *, in_order: bool) -> None:
        """With `in_order` each proposal of a round is judged before the next is made."""
        self._run = run
        self._in_order = in_order
        self._read: dict[tuple[str, str], KnownEpisodes | None] = {}

    def before(self, iteration: int, sample: int) -> Memory:
        """The memory for judging the proposals for this sample."""
        archive, here = self._run.archive, (iteration, sample)
        earlier = _passed(self._seen(iteration, sample), iteration, sample)
        known = earlier
        if self._in_order:
            since = (each for each in archive.attempts() if each.stage in _PASSED)
            known = [each for each in since if (each.iteration, each.sample) < here]
        return self._memory(known, earlier)

    def now(self) -> Memory:
        """The memory of all that was accepted so far."""
        known = [each for each in self._run.archive.attempts() if each.stage in _PASSED]
        return self._memory(known, known)

    def _memory(self, known: Sequence[Attempt], earlier: Sequence[Attempt]) -> Memory:
        trained = [each.id for each in earlier if each.stage is Stage.TRAINED]
        episodes = (self._episodes(each, TRAJECTORIES) for each in trained)
        chosen = _spread([each for each in episodes if each is not None])
        practice = (self._episodes(each.attempt, PRACTICE) for each in chosen)
        return Memory(
            rewards=tuple(KnownReward(each.id, each.proposal.reward) for each in known),
            episodes=chosen,
            practice=tuple(each for each in practice if each is not None),
        )

    def trained_before(self, iteration: int, sample: int) -> list[Attempt]:
        """The trained attempts that a sample's plan was made from, as a strategy knows them."""
        seen = self._seen(iteration, sample)
        passed = _passed(seen, iteration, sample)
        return [each for each in judged(passed, seen.feedback) if each.stage is Stage.TRAINED]

    def _seen(self, iteration: int, sample: int) -> RunState:
        """The state that a sample's plan was made from; the present one without a plan."""
        archive = self._run.archive
        plan = archive.state.plans.get((iteration, sample))
        return archive.state if plan is None else archive.state_at(plan.seen)

    def _episodes(self, attempt: str, name: str) -> KnownEpisodes | None:
        """Episodes of an attempt's first training; None if this file is missing or invalid."""
        if (attempt, name) not in self._read:
            path = attempt_folder(self._run.folder, attempt) / name
            reduce = REDUCTIONS[self._run.description.fitness_reduction]
            try:
                episodes = read_trajectories(path, ("fitness",))
                fitness = {
                    name: float(reduce(each["fitness"].astype(np.float64)))
                    for name, each in episodes.items()
                }
                steps = tuple(len(each["fitness"]) for each in episodes.values())
                self._read[attempt, name] = (
                    KnownEpisodes(attempt, path, fitness, steps) if fitness else None
                )
            except RunFolderError:
                self._read[attempt, name] = None
        return self._read[attempt, name]


def _passed(state: RunState, iteration: int, sample: int) -> list[Attempt]:
    """Accepted attempts of other samples."""
    passed = [each for each in state.attempts() if each.stage in _PASSED]
    return [each for each in passed if (each.iteration, each.sample) != (iteration, sample)]


def _spread(episodes: list[KnownEpisodes]) -> tuple[KnownEpisodes, ...]:
    """At most `MOST_KNOWN_EPISODES` of them, with the best and the worst."""
    if len(episodes) <= MOST_KNOWN_EPISODES:
        return tuple(episodes)
    ranked = sorted(episodes, key=lambda each: (max(each.fitness.values()), each.attempt))
    return tuple(
        ranked[place]
        for place in np.linspace(0, len(ranked) - 1, MOST_KNOWN_EPISODES).round().astype(int)
    )


MOST_KEPT = 8
"""Most drafts of a choice that are looked at again in later generations, the most promising."""
MOST_OLD = 32
"""Most drafts of earlier generations that are looked at again, the newest ones."""
Episodes = tuple[Path, ...]


class Drafts:
    """Has a designer make drafts, and takes the one of which most is expected, by the credit that
    they give to the steps of recorded episodes. A fresh draft that is not taken may be later. After
    a person's feedback there is one draft, which goes on from what they liked."""

    def __init__(self, run: Run, designer: Designer, critic: Critic, memory: RunMemory) -> None:
        self._run, self._designer, self._critic = run, designer, critic
        self._memory = memory
        self._credits: dict[Episodes, dict[str, Credit | None]] = {}
        """By source, on the last episodes alone: they grow with every training."""

    async def best(
        self, iteration: int, sample: int, request: DesignRequest
    ) -> tuple[Proposal, tuple[Proposal, ...]]:
        """The best draft, and the fresh ones to keep. Raises the designer's errors."""
        first = await self._designer.propose(request)
        settings = self._run.settings
        memory = self._memory.before(iteration, sample)
        if settings.drafts_of_each == 1 or request.told.leads or not memory.practice:
            return first, ()
        drafts = [first]
        for number in range(1, settings.drafts_of_each):
            known = tuple(each.reward.source for each in drafts)
            seed = derive_seed(settings.seed, "draft", iteration, sample, number)
            another = replace(request, seed=seed, siblings=(*request.siblings, *known))
            # the trainings tell whether a change of the best or something new promises more
            another = another.from_nothing() if number % 2 else another
            try:
                drafts.append(await self._designer.propose(another))
            except BudgetSpentError:
                break
        candidates = [*drafts, *self._kept(sample)]
        gains = await self._gains(iteration, sample, candidates, memory)
        best, *others = _most_promising_first(gains)
        left = [
            candidates[each]
            for each in others
            if each < len(drafts)
            and candidates[each].operator is Operator.FRESH
            and gains[each] is not None
        ]
        chosen = candidates[best].model_copy(update={"drafts": tuple(gains)})
        return chosen, tuple(left[:MOST_KEPT])

    async def left(
        self, iteration: int, sample: int, request: DesignRequest
    ) -> tuple[Proposal, ...]:
        """Fresh drafts that were not taken, most promising first, for a revision."""
        kept = self._kept(sample)
        if not kept or request.told.leads:
            return ()
        memory = self._memory.before(iteration, sample)
        gains = await self._gains(iteration, sample, kept, memory)
        return tuple(kept[each] for each in _most_promising_first(gains))

    def _kept(self, sample: int) -> tuple[Proposal, ...]:
        """Drafts of the same place in this and earlier generations."""
        return self._run.archive.state.kept_drafts.get(sample, ())[-MOST_OLD:]

    async def _gains(
        self, iteration: int, sample: int, drafts: Sequence[Proposal], memory: Memory
    ) -> list[float | None]:
        """Expected improvement of each draft; None where its credit is not known, or nobody's."""
        attempts = self._memory.trained_before(iteration, sample)
        proposals = [*(each.proposal for each in attempts), *drafts]
        found = await self._credits_of([each.reward for each in proposals], memory)
        credits = found[len(attempts) :]
        trained = [
            Known(credit, attempt.fitness, len(attempt.fitness_per_seed))
            for attempt, credit in zip(attempts, found, strict=False)
            if credit is not None and attempt.fitness is not None
        ]
        # of as many steps as most: a reward's own process wrote its credit, and is not trusted
        every = [*(each.credit for each in trained), *credits]
        lengths = Counter(len(each.ranks) for each in every if each is not None)
        usual = max(lengths, key=lambda each: lengths[each], default=0)
        trained = [each for each in trained if len(each.credit.ranks) == usual]
        credits = [
            each if each is not None and len(each.ranks) == usual else None for each in credits
        ]
        known = [each for each in credits if each is not None]
        if not trained or not known:
            return [None] * len(drafts)
        gains = iter(expected_improvements(trained, known))
        return [None if each is None else next(gains) for each in credits]

    async def _credits_of(
        self, rewards: Sequence[RewardSpecification], memory: Memory
    ) -> list[Credit | None]:
        episodes = tuple(each.path for each in memory.practice)
        if episodes not in self._credits:
            self._credits = {episodes: {}}
        known = self._credits[episodes]
        new = {each.source: each for each in rewards if each.source not in known}
        credits = await self._critic.credits(list(new.values()), memory)
        known |= dict(zip(new, credits, strict=True))
        return [known[each.source] for each in rewards]


def _most_promising_first(gains: Sequence[float | None]) -> list[int]:
    known = [-1.0 if gain is None else gain for gain in gains]
    return sorted(range(len(known)), key=lambda each: -known[each])


Floats = NDArray[np.float64]

SHARED = 0.35
"""Variance of what rewards of equal credit have in common, in units of a single training's."""
OWN = 0.15
"""Variance of what only a reward of nearly the same credit has in common with it."""
NOISE = 0.5
"""Variance between seeds."""
REACH, OWN_REACH = 0.25, 0.01
"""By how much a correlation is below 1 where what rewards have in common is down to 1/e."""
SLOPE, SLOPE_VARIANCE = 0.2, 0.03
"""Rise with the agreement, per deviation of it, and its variance."""
LEVEL_VARIANCE = 4.0
FARTHEST = 2.0
"""Deviations from the median to which fitness counts: an outlier would make the rest look alike."""
_EQUAL = 1e-9
_NORMAL = NormalDist()


@dataclass(frozen=True)
class Known:
    """A trained reward."""

    credit: Credit
    fitness: float
    """Mean over its trainings."""
    trainings: int


def expected_improvements(known: Sequence[Known], drafts: Sequence[Credit]) -> list[float]:
    """Expected lead of each draft over the best known reward, in units of the fitness; what is not
    better counts as 0. All credits are of the same steps."""
    credits = [*(each.credit for each in known), *drafts]
    agreement = _standardised(np.array([each.alignment for each in credits]))
    fitness = _without_outliers(np.array([each.fitness for each in known]))
    values = _standardised(fitness)
    here, there = slice(None, len(known)), slice(len(known), None)
    prior = SLOPE * agreement
    distance = credit_distances(credits)
    covariance = (
        LEVEL_VARIANCE
        + SLOPE_VARIANCE * np.outer(agreement, agreement)
        + SHARED * np.exp(-distance / REACH)
        + OWN * np.exp(-distance / OWN_REACH)
    )
    noise = np.diag([NOISE / each.trainings for each in known])
    weights = np.linalg.solve(covariance[here, here] + noise, covariance[here])
    mean = prior + weights.T @ (values - prior[here])
    left = covariance - covariance[:, here] @ weights
    best = int(mean[here].argmax())
    lead = mean[there] - mean[best]
    variance = np.diag(left)[there] + left[best, best] - 2.0 * left[there, best]
    deviation = np.sqrt(variance.clip(min=_EQUAL))
    unit = float(fitness.std()) or 1.0
    return [unit * _mean_above_0(*each) for each in zip(lead, deviation, strict=True)]


def _mean_above_0(mean: float, deviation: float) -> float:
    """Mean of a normal number where it is above 0, and of 0 elsewhere."""
    scaled = mean / deviation
    return float(mean * _NORMAL.cdf(scaled) + deviation * _NORMAL.pdf(scaled))


def _without_outliers(fitness: Floats) -> Floats:
    """The fitness, winsorised about its median; as it is where half of it is equal."""
    middle = float(np.median(fitness))
    deviation = float(np.median(np.abs(fitness - middle))) / _NORMAL.inv_cdf(0.75)
    if deviation <= _EQUAL:
        return fitness
    reach = FARTHEST * deviation
    near: Floats = fitness.clip(middle - reach, middle + reach)
    return near


def _standardised(values: Floats) -> Floats:
    """Values of mean 0 and deviation 1; 0 where all are equal."""
    deviation = values.std()
    return (values - values.mean()) / (deviation if deviation > _EQUAL else 1.0)
