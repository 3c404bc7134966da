"""Scores, measurements and videos of a command environment, each by a job that gets no reward."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from eureka_agent.array_files import command_policy
from eureka_agent.boundary.commands import Evaluate, Film, Prepare
from eureka_agent.boundary.events import Evaluated, Filmed, PolicyScore
from eureka_agent.records import EpisodeSummary, Evaluation, Measurements
from eureka_agent.simulation import command_events as told
from eureka_agent.simulation.command_environment import (
    LIMIT_SECONDS,
    CommandTask,
    PlayedEpisode,
    command_of,
    played,
)
from eureka_agent.simulation.command_job import (
    CommandJob,
    UserCommand,
    fitness_source,
)
from eureka_agent.simulation.loading import LoadedEnvironment
from eureka_agent.simulation.pictures import Picture, Pictures, RenderingError
from eureka_agent.simulation.rollouts import column_ranges
from eureka_agent.simulation.vec_task import ALWAYS_THERE
from eureka_agent.task import Task
from eureka_agent.training.evaluation import Trajectory, trajectories_bytes
from eureka_agent.worker.channel import File
from eureka_agent.worker.command_training import CommandPopulation
from eureka_agent.worker.evaluation_job import untrained_score
from eureka_agent.worker.film import RATE, FilmScene, Sheet
from eureka_agent.worker.film_job import FilmJob, PlayedScene, watching

_MOST_PICTURES = 300
"""Pictures of an episode: 256 MiB hold twice as many of the largest size in use."""


def command_for(loaded: LoadedEnvironment, task_name: str) -> UserCommand:
    """The command of an opened environment, with a written fitness where there is one."""
    cls = loaded.environment_class
    assert issubclass(cls, CommandTask)
    command = command_of(cls.folder, cls.command, task_name)
    if loaded.written is None:
        return command
    written = loaded.written
    source = fitness_source(written)
    return UserCommand(command.folder, command.file, task_name, source, written.reduction)


def measured(episodes: Sequence[PlayedEpisode]) -> Measurements:
    """Start states, and scores of zero and random actions, from a description's episodes."""
    starts: dict[str, list[Tensor]] = {}
    for each in episodes:
        for name, value in each.start.items():
            if name not in ALWAYS_THERE:
                starts.setdefault(name, []).append(torch.from_numpy(value))
    by = {name: [each for each in episodes if each.told.by == name] for name in ("zero", "random")}
    scores = {
        f"{name}_actions": untrained_score(evaluation_of(own, 0).episodes)
        for name, own in by.items()
        if len(own) > 1
    }
    ranges = {name: column_ranges(torch.stack(values)) for name, values in starts.items()}
    return Measurements(starts=ranges, resets=len(episodes), **scores)


class CommandScorer:
    """Jobs with policies of one command environment."""

    def __init__(
        self, command: UserCommand, loaded: LoadedEnvironment, device: str, folder: Path
    ) -> None:
        """`folder`: holds the driver's files."""
        cls, described = loaded.environment_class, loaded.described
        assert issubclass(cls, CommandTask)
        assert described is not None
        self._command, self._loaded, self._episodes = command, loaded, described.episodes
        self._can = cls.described.can
        self._device, self._folder = device, folder
        self._variables = cls.all_variables()
        self._num_envs = command.file.tasks[command.task].num_envs

    def measured(self) -> Measurements:
        """Measurements of the description."""
        return measured(self._episodes)

    def population(self, command: Prepare) -> CommandPopulation:
        """Trainings for later `Train` commands."""
        slots = min(command.slots, self._can.rewards)
        rest = command, slots, self._device, self._folder
        return CommandPopulation(self._command, *rest)

    def film(self, command: Film, task: Task) -> list[File | Filmed]:
        """Make a video. Raises RenderingError where the command makes no pictures."""
        if not self._can.film:
            raise RenderingError("the command makes no pictures", "say --no-video")
        return CommandFilm(command, self._loaded, task, self._folder, self).run()

    def evaluate(self, command: Evaluate) -> list[File | Evaluated]:
        """Score policies in one process: trajectories, then scores or faults."""
        policies = {}
        for place, file in enumerate(command.policies):
            wanted = list(range(file.episodes)) if file.recorded == "all" else "extremes"
            record = wanted if file.trajectories is not None else []
            asked = {"seed": file.seed, "episodes": file.episodes, "record": record}
            policies[str(place)] = (self._folder / file.policy, asked)
        episodes = self.play(policies)
        files: list[File | Evaluated] = []
        scores = []
        for place, file in enumerate(command.policies):
            own = episodes[str(place)]
            scores.append(PolicyScore(evaluation=evaluation_of(own, file.seed)))
            recorded = sorted((it for it in own if it.values), key=lambda it: it.told.fitness)
            if file.trajectories is not None and recorded:
                together = file.recorded == "all"
                extremes = {"worst": recorded[0], "best": recorded[-1]}
                every = {str(it.told.number): it for it in own if it.values}
                named = every if together else extremes
                found = {name: trajectory(each) for name, each in named.items()}
                content = trajectories_bytes(found, together=together)
                files.append(File(file.trajectories, content))
        return [*files, Evaluated(job=command.job, scores=tuple(scores))]

    def play(
        self, policies: Mapping[str, tuple[Path, Mapping[str, Any]]]
    ) -> dict[str, list[PlayedEpisode]]:
        """Episodes of policies, by their ids, in the order of their numbers. Raises EurekaError
        where one has not all of its episodes."""
        found: dict[str, list[PlayedEpisode]] = {name: [] for name in policies}
        done = set()
        with self._job("evaluate", policies, {}) as job:
            for event in job.run(LIMIT_SECONDS):
                if isinstance(event, told.EpisodeEvent) and event.by in found:
                    found[event.by].append(played(event, self._variables))
                elif isinstance(event, told.EvaluatedEvent):
                    done.add(event.policy)
            for name, (_, asked) in policies.items():
                found[name].sort(key=lambda each: each.told.number)
                numbers = [each.told.number for each in found[name]]
                if name not in done or numbers != list(range(asked["episodes"])):
                    raise job.unfinished(f"all {asked['episodes']} episodes of a policy")
        return found

    def pictures(
        self, policies: Mapping[str, tuple[Path, Mapping[str, Any]]], asked: Mapping[str, Any]
    ) -> dict[tuple[str, int], np.ndarray]:
        """Pictures by policy and number of the episode. Shape: (pictures, height, width, 3)."""
        width, height = asked["size"]
        found = {}
        with self._job("film", policies, asked) as job:
            for event in job.run(LIMIT_SECONDS):
                if isinstance(event, told.FilmedEvent):
                    content = np.frombuffer(job.file(event.pictures), np.uint8)
                    if not len(content) or len(content) % (width * height * 3):
                        what = f"{len(content)} bytes are no pictures of {width}×{height} pixels"
                        raise told.ProtocolFaultError(what, "write RGB, 8 bits a channel")
                    found[event.policy, event.number] = content.reshape(-1, height, width, 3)
        return found

    def _job(
        self,
        mode: str,
        policies: Mapping[str, tuple[Path, Mapping[str, Any]]],
        asked: Mapping[str, Any],
    ) -> CommandJob:
        files = {f"policy-{name}": command_policy(path) for name, (path, _) in policies.items()}
        listed = [
            {"id": name, "policy": f"policy-{name}", **each} for name, (_, each) in policies.items()
        ]
        job = {"device": self._device, "num_envs": self._num_envs, "policies": listed, **asked}
        return CommandJob(self._command, mode, job, files, self._folder)


def evaluation_of(episodes: Sequence[PlayedEpisode], seed: int) -> Evaluation:
    """Scores of a policy's episodes."""
    summaries = (
        EpisodeSummary(
            fitness=each.told.fitness, length=each.told.length, ended_by=each.told.ended_by
        )
        for each in episodes
    )
    return Evaluation(episodes=tuple(summaries), seed=seed)


def trajectory(episode: PlayedEpisode) -> Trajectory:
    """The episode's arrays, as `training.evaluation` has them."""
    steps = episode.told.fitness_steps
    length = episode.told.length
    fitness = np.zeros(length) if steps is None or len(steps) != length else np.asarray(steps)
    return {**episode.values, "fitness": fitness.astype(np.float32)}


# ── videos ────────────────────────────────────────────────────────────────────────────────────────


class CommandFilm(FilmJob):
    """A video whose episodes and pictures come from the command."""

    def __init__(
        self,
        command: Film,
        loaded: LoadedEnvironment,
        task: Task,
        folder: Path,
        scorer: CommandScorer,
    ) -> None:
        self._command = command
        self._loaded = loaded
        self._class = loaded.environment_class
        self._task = task
        self._folder = folder
        self._numbers = {}
        self._requests = []
        self._scorer = scorer
        self._taken: dict[int, np.ndarray] = {}
        """Pictures by `_row`."""
        self._every = 1
        """Control steps between two pictures."""

    def _policies(self, record: Iterable[int]) -> dict[str, tuple[Path, dict[str, Any]]]:
        """The policies and what is asked of them; `record`: numbers of episodes."""
        asked = {
            "seed": self._command.seed,
            "episodes": self._command.episodes,
            "record": list(record),
        }
        files = (self._folder / each.policy for each in self._command.policies)
        return {str(place): (file, asked) for place, file in enumerate(files)}

    def _play(self) -> list[list[PlayedScene]]:
        """Choose the episodes by their scores, then have them played once more with pictures."""
        scores = self._scorer.play(self._policies(range(self._command.episodes)))
        self._pick(torch.tensor([each.told.fitness for each in scores["0"]]))
        numbers = sorted(set(self._numbers.values()))
        longest = max(it[n].told.length for it in scores.values() for n in numbers)
        shown = min(longest, math.ceil(self._command.seconds / self._class.control_dt))
        length = longest if self._command.sheet else shown
        steps = max(1.0 / (RATE * self._class.control_dt), length / _MOST_PICTURES)
        self._every = max(1, round(steps))
        asked = {"size": list(self._command.size), "every": self._every, "most_steps": length}
        taken = self._scorer.pictures(self._policies(numbers), asked)
        self._taken = {self._row(int(it), number): each for (it, number), each in taken.items()}
        return [
            [
                PlayedScene(
                    int(policy),
                    name,
                    number,
                    evaluation_of([episodes[number]], 0).episodes[0],
                    trajectory(episodes[number]),
                )
                for name, number in self._numbers.items()
            ]
            for policy, episodes in scores.items()
        ]

    def _row(self, policy: int, number: int) -> int:
        return policy * self._command.episodes + number

    def _shoot_scene(
        self, scene: FilmScene, add: Callable[[Picture], None], sheet: Sheet | None
    ) -> None:
        step = 0

        def picture(row: int) -> Picture:
            found = self._taken.get(row)
            if found is None:
                raise RenderingError("the command filmed another episode", "docs/protocol.md")
            taken: Picture = found[min(step // self._every, len(found) - 1)]
            return taken

        watch = watching(scene, Pictures(picture), add, sheet)
        while watch(step):
            step += 1
