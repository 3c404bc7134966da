"""The bench that tools work at, and the answers that they give."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from eureka_agent.analysis.events import Episode
from eureka_agent.analysis.trajectories import read_trajectories
from eureka_agent.archive import artefacts
from eureka_agent.archive.run_folder import Run
from eureka_agent.array_files import failed, succeeded
from eureka_agent.base_record import Record
from eureka_agent.critic.critic import Critic
from eureka_agent.critic.memory import Memory
from eureka_agent.errors import EurekaError, did_you_mean
from eureka_agent.fleet.dry_runner import DryRunner
from eureka_agent.llm.interface import ImagePart
from eureka_agent.records import Attempt, Stage

FAILURE, SUCCESS, TIME_OUT = "failure", "success", "time out"


class ToolError(EurekaError):
    """A call of a tool that has no answer: a wrong name, argument or expression."""


class ToolAnswer(Record):
    """Base of the answers: data for programs, with the words that people and models read."""

    def text(self) -> str:
        raise NotImplementedError

    def pictures(self) -> tuple[ImagePart, ...]:
        return ()


Player = Callable[[Attempt, Path, Path], Awaitable[None]]
"""Plays the evaluated episodes of an attempt's policy file again, into a file."""
Photographer = Callable[[Attempt, Sequence[float]], Awaitable[ImagePart]]
"""Draws moments, in seconds, of the best and the worst episode of an attempt."""


@dataclass
class Bench:
    """A run, and the workers that answer questions about it."""

    run: Run
    runner: DryRunner
    critic: Critic
    memory: Callable[[], Memory]
    """The rewards and episodes that a draft is compared with."""
    play: Player
    photograph: Photographer | None = None
    """None for a model that sees nothing."""
    _turns: defaultdict[str, asyncio.Lock] = field(
        default_factory=lambda: defaultdict(asyncio.Lock), init=False
    )

    def trained(self) -> dict[str, Attempt]:
        """The attempts that can be asked, by id."""
        attempts = self.run.archive.attempts()
        return {each.id: each for each in attempts if each.stage is Stage.TRAINED}

    def attempt(self, name: str) -> Attempt:
        """The trained attempt of this id. Raises ToolError for another one."""
        trained = self.trained()
        if name not in trained:
            hint = did_you_mean(name, trained) if trained else "none is trained yet"
            raise ToolError(f"there is no trained attempt {name!r}", hint)
        return trained[name]

    async def episodes_file(self, attempt: Attempt) -> Path:
        """File of all evaluated episodes of an attempt: they are the same whenever they are played.
        Raises RunFolderError for a pruned policy, and the player's errors."""
        async with self._turns[attempt.id]:
            policy = artefacts.stored_policy(self.run, attempt.id)
            path = policy.with_name(artefacts.EPISODES)
            if not path.is_file() or path.stat().st_mtime < policy.stat().st_mtime:
                await self.play(attempt, policy, path)
        return path

    async def episodes(self, attempt: Attempt) -> Mapping[str, Episode]:
        """All evaluated episodes of an attempt, by number."""
        path = await self.episodes_file(attempt)
        return await asyncio.to_thread(read_trajectories, path)


def end_of(episode: Episode) -> str:
    """The end of an episode, in a word."""
    if failed(episode):
        return FAILURE
    return SUCCESS if succeeded(episode) else TIME_OUT
