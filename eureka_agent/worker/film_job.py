"""Videos of policies: their episodes are played, then played once more to be drawn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from eureka_agent.arguments import variable_of
from eureka_agent.errors import EnvironmentLoadError, EurekaError, RewardLoadError
from eureka_agent.protocol.commands import Film
from eureka_agent.protocol.events import Filmed, ShownEpisode
from eureka_agent.records import EpisodeSummary
from eureka_agent.rendering.encoding import Gif, Mp4
from eureka_agent.rendering.film import RATE, Episode, Scene, scenes
from eureka_agent.rendering.pictures import Picture
from eureka_agent.rendering.sheet import Sheet
from eureka_agent.rendering.sources import Pictures, drawable, pictures_of
from eureka_agent.rendering.strip import TOTAL, Series
from eureka_agent.rewards import RewardSpecification
from eureka_agent.simulation.loading import LoadedEnvironment
from eureka_agent.simulation.time_limit import TimeLimitError
from eureka_agent.simulation.vec_task import VecTask, padded
from eureka_agent.task import PREVIOUS_PREFIX, Task
from eureka_agent.training.acting import check_sizes
from eureka_agent.training.episodes import RunningFitness
from eureka_agent.training.evaluation import (
    PolicyRequest,
    evaluate_policies,
    rows_of,
    watch_policies,
)
from eureka_agent.training.policy import load_policy
from eureka_agent.training.reward import RewardContractError
from eureka_agent.training.trajectory_files import Trajectory, trajectories_bytes
from eureka_agent.worker.channel import File
from eureka_agent.worker.evaluation_job import PASS_SECONDS
from eureka_agent.worker.nursery import Nursery
from eureka_agent.worker.remote_reward import RemoteReward

_REWARD_SECONDS = 30.0
"""Timeout of a reward on the steps of a few episodes."""


@dataclass(frozen=True)
class _Shown:
    """An episode that the video shows."""

    policy: int
    name: str
    number: int
    summary: EpisodeSummary
    trajectory: Trajectory


class FilmJob:
    """One video. Policies play without their rewards; only the lines below the pictures need
    these, each in a process of its own."""

    def __init__(
        self, command: Film, loaded: LoadedEnvironment, task: Task, folder: Path, nursery: Nursery
    ) -> None:
        """`folder`: of the policies' files. Raises RenderingError for an environment that cannot
        be drawn, and the errors of an evaluation for a policy."""
        self._command = command
        self._loaded = drawable(loaded)
        self._task = task
        self._folder = folder
        self._nursery = nursery
        self._numbers: dict[str, int] = {}
        self._requests = [self._request(each.policy) for each in command.policies]
        self._notes: list[str] = []

    @torch.inference_mode()
    def run(self) -> tuple[list[File], Filmed]:
        """Make the video. Raises RenderingError, and the errors of an evaluation."""
        command = self._command
        shown = self._play()
        groups = [
            self._episodes(number, group, command.policies[number].reward)
            for number, group in enumerate(shown)
        ]
        found = scenes(
            groups,
            command.size,
            self._loaded.environment_class.control_dt,
            unit=self._task.fitness_unit,
            seconds=command.seconds,
            strips=command.strips,
        )
        files, begins, seconds, sheet = self._shoot(found)
        sheet_name = None
        if sheet is not None:
            sheet_name = f"{command.job}.jpg"
            files.append(File(sheet_name, sheet.content()))
        trajectories = None
        if command.trajectories:
            trajectories = f"{command.job}.npz"
            episodes_by_name = {
                f"{each.policy}-{each.number}": each.trajectory for group in shown for each in group
            }
            files.append(File(trajectories, trajectories_bytes(episodes_by_name)))
        episodes = tuple(
            ShownEpisode(
                policy=each.policy,
                shown=each.name,
                number=each.number,
                episode=each.summary,
                begins_s=begins[min(order, len(begins) - 1)],
            )
            for group in shown
            for order, each in enumerate(group)
        )
        filmed = Filmed(
            job=command.job,
            video=files[0].name,
            gif=f"{command.job}.gif" if command.gif_seconds else None,
            sheet=sheet_name,
            trajectories=trajectories,
            seconds=seconds,
            episodes=episodes,
            notes=tuple(self._notes),
        )
        return files, filmed

    # ── the episodes ──────────────────────────────────────────────────────────────────────────────

    def _request(self, policy: str) -> PolicyRequest:
        loaded = load_policy(self._folder / policy)
        try:
            check_sizes(loaded, self._loaded.environment_class)
        except EnvironmentLoadError as error:  # the policy is to blame, and no environment
            raise EurekaError(error.message, error.hint) from None
        return PolicyRequest(loaded, self._command.seed, self._command.episodes, self._pick)

    def _pick(self, fitness: Tensor) -> Mapping[str, int]:
        """Numbers of the shown episodes by name. The first policy's fitness decides for all."""
        if not self._numbers:
            order = fitness.argsort(stable=True).tolist()
            by_fitness = {"worst": order[0], "median": order[len(order) // 2], "best": order[-1]}
            for name in self._command.shown:
                number = by_fitness[name] if isinstance(name, str) else min(name, len(order) - 1)
                self._numbers[str(name)] = number
        return self._numbers

    def _play(self) -> list[list[_Shown]]:
        """The shown episodes of each policy."""
        environment = self._make()
        try:
            scores = evaluate_policies(environment, self._task, self._requests, PASS_SECONDS)
        finally:
            environment.close()
        return [
            [
                _Shown(policy, name, number, evaluation.episodes[number], (found or {})[name])
                for name, number in self._numbers.items()
            ]
            for policy, (evaluation, found) in enumerate(scores)
        ]

    def _make(self) -> VecTask:
        multiple = self._loaded.environment_class.row_multiple
        rows = sum(padded(request.episodes, multiple) for request in self._requests)
        return self._loaded.make(self._task, rows)

    def _episodes(
        self, policy: int, shown: Sequence[_Shown], reward: RewardSpecification | None
    ) -> list[Episode]:
        rows = rows_of(self._loaded.environment_class, self._requests)[policy]
        terms: list[dict[str, Series]] = [{} for _ in shown]
        if reward is not None and self._command.strips:
            try:
                terms = self._terms(reward, [each.trajectory for each in shown])
            except (RewardLoadError, RewardContractError) as error:
                self._notes.append(f"terms of {self._title(policy)}: {error.message}")
            except TimeLimitError as error:
                self._notes.append(f"terms of {self._title(policy)}: the reward {error}")
        return [
            Episode(
                title=_title(each, self._title(policy), len(self._requests) > 1),
                row=rows.start + each.number,
                length=each.summary.length,
                ended_by=each.summary.ended_by,
                fitness=self._fitness_so_far(each.trajectory),
                terms=found,
            )
            for each, found in zip(shown, terms, strict=True)
        ]

    def _title(self, policy: int) -> str:
        return self._command.policies[policy].title

    def _fitness_so_far(self, trajectory: Trajectory) -> Series:
        running = RunningFitness((1,), self._task.fitness_reduction, "cpu")
        values = []
        for value in torch.from_numpy(np.asarray(trajectory["fitness"])):
            running.add(value.view(1))
            values.append(float(running.result()))
        return np.array(values)

    def _terms(
        self, reward: RewardSpecification, trajectories: Sequence[Trajectory]
    ) -> list[dict[str, Series]]:
        """The reward's terms in each step of each episode, and their `total`. Raises
        RewardLoadError, RewardContractError and TimeLimitError."""
        cls = self._loaded.environment_class
        lengths = [len(trajectory["fitness"]) for trajectory in trajectories]
        remote = RemoteReward.on(cls, self._nursery, reward, sum(lengths))
        try:
            values = {
                name: torch.cat([_argument(name, each) for each in trajectories])
                for name in remote.arguments
            }
            total, components = remote.begin(values, _REWARD_SECONDS)()
        finally:
            remote.close()
        parts = {TOTAL: total, **components}
        split = {name: value.split(lengths) for name, value in parts.items()}
        return [
            {name: value[place].numpy() for name, value in split.items()}
            for place in range(len(trajectories))
        ]

    # ── the pictures ──────────────────────────────────────────────────────────────────────────────

    def _shoot(self, found: Sequence[Scene]) -> tuple[list[File], list[float], float, Sheet | None]:
        """The files, the time in the video at which each scene begins, its length (s), and the
        sheet of the first scene, if one is asked for."""
        command = self._command
        path = self._folder / f"{command.job}.mp4"
        begins: list[float] = []
        recorder = _Recorder(path, command.gif_seconds)
        control_dt = self._loaded.environment_class.control_dt
        sheet = Sheet(found[0].episodes, command.sheet, control_dt) if command.sheet else None
        try:
            for scene in found:
                begins.append(recorder.seconds)
                self._shoot_scene(scene, recorder, sheet if scene is found[0] else None)
            recorder.close()
            files = [File(path.name, path.read_bytes())]
        finally:
            recorder.close()
            path.unlink(missing_ok=True)
        if recorder.gif is not None:
            files.append(File(f"{command.job}.gif", recorder.gif.content()))
        return files, begins, recorder.seconds, sheet

    def _shoot_scene(self, scene: Scene, recorder: _Recorder, sheet: Sheet | None) -> None:
        environment = self._make()
        try:
            pictures = pictures_of(self._loaded, environment, self._command.size)
            try:
                shooting = _Shooting(scene, pictures, recorder, sheet)
                requests = [replace(request, record=None) for request in self._requests]
                watch_policies(environment, self._task, requests, shooting.watch, PASS_SECONDS)
            finally:
                pictures.close()
        finally:
            environment.close()


def _title(shown: _Shown, policy: str, several: bool) -> str:
    name = f"{shown.name} episode" if shown.name.isalpha() else f"episode {shown.name}"
    if several and shown.name.isalpha():
        name = f"start {shown.number}"  # the best one of the first policy, perhaps of no other
    return f"{policy} · {name}"


def _argument(name: str, trajectory: Trajectory) -> Tensor:
    """Values of a reward's argument in each step, float32."""
    values = torch.from_numpy(np.ascontiguousarray(trajectory[variable_of(name)], np.float32))
    if not name.startswith(PREVIOUS_PREFIX):
        return values
    # the start state before the first step is not recorded
    return torch.cat([values[:1], values[:-1]])


class _Recorder:
    """The files of a video, which begin with the first picture."""

    def __init__(self, path: Path, gif_seconds: float) -> None:
        self._path = path
        self._gif_seconds = gif_seconds
        self._video: Mp4 | None = None
        self.gif: Gif | None = None
        self._pictures = 0

    @property
    def seconds(self) -> float:
        """Length so far."""
        return self._pictures / RATE

    def add(self, picture: Picture) -> None:
        """Append a picture."""
        size = picture.shape[1], picture.shape[0]
        if self._video is None:
            self._video = Mp4(self._path, size, RATE)
            if self._gif_seconds:
                self.gif = Gif(size, RATE, self._gif_seconds)
        self._video.add(picture)
        if self.gif is not None:
            self.gif.add(picture)
        self._pictures += 1

    def close(self) -> None:
        """Complete the video; a second call does nothing."""
        video, self._video = self._video, None
        if video is not None:
            video.close()


class _Shooting:
    """Draws a scene's pictures while its episodes are played."""

    def __init__(
        self, scene: Scene, pictures: Pictures, recorder: _Recorder, sheet: Sheet | None
    ) -> None:
        self._scene = scene
        self._sheet = sheet
        self._times: Iterator[int | None] = iter([*scene.times(), None])
        self._next = next(self._times)
        self._pictures = pictures
        self._recorder = recorder
        self._last: dict[int, Picture] = {}

    def watch(self, step: int) -> bool:
        """Add the video's pictures of this step; False after the last one."""
        while self._next == step:
            for place, episode in enumerate(self._scene.episodes):
                if self._scene.is_under_way(place, step) or place not in self._last:
                    self._last[place] = self._pictures.picture(episode.row)
            drawn = self._scene.drawn(step, [self._last[place] for place in sorted(self._last)])
            self._recorder.add(drawn)
            self._next = next(self._times)
        wanted = False
        if self._sheet is not None:
            for place, episode in enumerate(self._scene.episodes):
                if self._sheet.wants(place, step):
                    self._sheet.add(place, step, self._pictures.picture(episode.row))
                wanted |= step < episode.length
        return self._next is not None or wanted
