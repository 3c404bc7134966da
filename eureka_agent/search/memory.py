"""Memory of a run for the critic: it depends on archive and place, never on timing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from eureka_agent.analysis.standing import judged
from eureka_agent.analysis.trajectories import read_trajectories
from eureka_agent.archive.artefacts import PRACTICE, TRAJECTORIES, attempt_folder
from eureka_agent.archive.run_folder import Run
from eureka_agent.critic.memory import KnownEpisodes, KnownReward, Memory
from eureka_agent.errors import RunFolderError
from eureka_agent.journal.state import RunState
from eureka_agent.records import Attempt, Stage

MOST_KNOWN_EPISODES = 64
"""Most attempts whose episodes are compared with: it bounds what the worker reads."""
_PASSED = (Stage.ACCEPTED, Stage.FAILED, Stage.TRAINED)
"""Stages of accepted attempts."""
_REDUCTIONS: dict[str, Callable[[npt.NDArray[np.float64]], float]] = {
    "sum": np.sum,
    "mean": np.mean,
    "max": np.max,
    "last": lambda values: values[-1],
}


class RunMemory:
    """Finds the attempts that a reward is compared with: those that the proposal's plan was made from,
    and with designers that work in order the sources of later ones."""

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
        trained = [each.id for each in earlier if each.stage is Stage.TRAINED]
        episodes = (self._episodes(each, TRAJECTORIES) for each in trained)
        chosen = _spread([each for each in episodes if each is not None])
        practice = (self._episodes(each.attempt, PRACTICE) for each in chosen)
        return Memory(
            rewards=_known(known),
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
            reduce = _REDUCTIONS[self._run.description.fitness_reduction]
            try:
                episodes = read_trajectories(path, ("fitness",))
                fitness = {
                    name: float(reduce(each["fitness"].astype(np.float64)))
                    for name, each in episodes.items()
                }
                self._read[attempt, name] = (
                    KnownEpisodes(attempt, path, fitness) if fitness else None
                )
            except RunFolderError:
                self._read[attempt, name] = None
        return self._read[attempt, name]


def _passed(state: RunState, iteration: int, sample: int) -> list[Attempt]:
    """Accepted attempts of other samples."""
    passed = [each for each in state.attempts() if each.stage in _PASSED]
    return [each for each in passed if (each.iteration, each.sample) != (iteration, sample)]


def _known(attempts: list[Attempt]) -> tuple[KnownReward, ...]:
    return tuple(KnownReward(each.id, each.proposal.reward) for each in attempts)


def _spread(episodes: list[KnownEpisodes]) -> tuple[KnownEpisodes, ...]:
    """At most `MOST_KNOWN_EPISODES` of them, with the best and the worst."""
    if len(episodes) <= MOST_KNOWN_EPISODES:
        return tuple(episodes)
    ranked = sorted(episodes, key=lambda each: (max(each.fitness.values()), each.attempt))
    return tuple(
        ranked[place]
        for place in np.linspace(0, len(ranked) - 1, MOST_KNOWN_EPISODES).round().astype(int)
    )
