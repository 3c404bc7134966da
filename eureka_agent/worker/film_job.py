"""Videos of policies: their episodes are played, then played once more to be drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from eureka_agent.boundary.commands import Film
from eureka_agent.boundary.events import Filmed, ShownEpisode
from eureka_agent.errors import EnvironmentLoadError, EurekaError
from eureka_agent.records import EpisodeSummary
from eureka_agent.simulation.loading import LoadedEnvironment
from eureka_agent.simulation.pictures import Picture, Pictures, drawable, pictures_of
from eureka_agent.simulation.vec_task import ALWAYS_THERE, VecTask
from eureka_agent.task import Task
from eureka_agent.training.environment_faults import OBSERVATIONS
from eureka_agent.training.evaluation import (
    PolicyRequest,
    Trajectory,
    Watch,
    evaluate_policies,
    rows_needed,
    rows_of,
    trajectories_bytes,
    watch_policies,
)
from eureka_agent.training.fitness import RunningFitness
from eureka_agent.training.policy import check_sizes, load_policy
from eureka_agent.worker.channel import File
from eureka_agent.worker.evaluation_job import PASS_SECONDS
from eureka_agent.worker.film import RATE, Episode, FilmScene, Gif, Mp4, Sheet, scenes

_STILL = 1e-6
"""Range in an episode up to which a number does not change."""


@dataclass(frozen=True)
class PlayedScene:
    policy: int
    name: str
    number: int
    summary: EpisodeSummary
    trajectory: Trajectory


class FilmJob:
    """One video. Policies play without their rewards."""

    def __init__(self, command: Film, loaded: LoadedEnvironment, task: Task, folder: Path) -> None:
        """`folder`: of the policies' files. Raises RenderingError, and errors of an evaluation."""
        self._command = command
        self._loaded = drawable(loaded)
        self._class = self._loaded.environment_class
        self._task = task
        self._folder = folder
        self._numbers: dict[str, int] = {}
        self._requests = [self._request(each.policy) for each in command.policies]

    @torch.inference_mode()
    def run(self) -> list[File | Filmed]:
        """Make the video: its files, then `Filmed`. Raises as `__init__`."""
        command, job = self._command, self._command.job
        shown = self._play()
        unit = "" if self._task.fitness_unit == "1" else self._task.fitness_unit
        groups = [self._episodes(number, group) for number, group in enumerate(shown)]
        sizes, told = (command.size, self._class.control_dt), unit if command.fitness else None
        found = scenes(groups, *sizes, unit=told, seconds=command.seconds)
        files, begins, seconds = self._shoot(found)
        if command.trajectories:
            every = (each for group in shown for each in group)
            by_name = {f"{each.policy}-{each.number}": each.trajectory for each in every}
            files.append(File(f"{job}.npz", trajectories_bytes(by_name)))
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
            job=job,
            video=files[0].name,
            gif=f"{job}.gif" if command.gif_seconds else None,
            sheet=f"{job}.jpg" if command.sheet else None,
            trajectories=f"{job}.npz" if command.trajectories else None,
            seconds=seconds,
            episodes=episodes,
        )
        return [*files, filmed]

    # ── the episodes ──────────────────────────────────────────────────────────────────────────────

    def _request(self, policy: str) -> PolicyRequest:
        loaded = load_policy(self._folder / policy)
        try:
            check_sizes(loaded, self._class)
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

    def _play(self) -> list[list[PlayedScene]]:
        with closing(self._make()) as environment:
            scores = evaluate_policies(environment, self._task, self._requests, PASS_SECONDS)
        return [
            [
                PlayedScene(policy, name, number, evaluation.episodes[number], (found or {})[name])
                for name, number in self._numbers.items()
            ]
            for policy, (evaluation, found) in enumerate(scores)
        ]

    def _make(self) -> VecTask:
        return self._loaded.make(self._task, rows_needed(self._class, self._requests))

    def _episodes(self, policy: int, shown: Sequence[PlayedScene]) -> list[Episode]:
        title = self._command.policies[policy].title
        episodes = []
        for each in shown:
            name = f"{each.name} episode" if each.name.isalpha() else f"episode {each.name}"
            if each.name.isalpha() and len(self._command.policies) > 1:
                # the best one of the first policy, perhaps of no other
                name = f"start {each.number}"
            running = RunningFitness((1,), self._task.fitness_reduction, "cpu")
            so_far = []
            for value in torch.from_numpy(np.asarray(each.trajectory["fitness"])):
                running.add(value.view(1))
                so_far.append(float(running.result()))
            end = each.summary.length, each.summary.ended_by
            place = f"{title} · {name}", self._row(policy, each.number)
            by_change = self._command.sheet if self._command.by_change else 0
            moments = changing_steps(each.trajectory, by_change) if by_change else None
            episodes.append(Episode(*place, *end, np.array(so_far), moments))
        return episodes

    def _row(self, policy: int, number: int) -> int:
        """The row that plays an episode, as its pictures name it."""
        return rows_of(self._class, self._requests)[policy].start + number

    # ── the pictures ──────────────────────────────────────────────────────────────────────────────

    def _shoot(self, found: Sequence[FilmScene]) -> tuple[list[File], list[float], float]:
        """The files, the time in the video at which each scene begins, and its length (s)."""
        command, job = self._command, self._command.job
        path = self._folder / f"{job}.mp4"
        begins: list[float] = []
        control_dt = self._class.control_dt
        video, gif = Mp4(path, RATE), Gif(RATE, command.gif_seconds)
        moments = command.moments or command.sheet
        sheet = Sheet(found[0].episodes, moments, control_dt) if command.sheet else None

        def add(picture: Picture) -> None:
            video.add(picture)
            gif.add(picture)

        try:
            for scene in found:
                begins.append(video.seconds)
                self._shoot_scene(scene, add, sheet if scene is found[0] else None)
            video.close()
            files = [File(path.name, path.read_bytes())]
        finally:
            video.close()
            path.unlink(missing_ok=True)
        if command.gif_seconds:
            files.append(File(f"{job}.gif", gif.content()))
        if sheet is not None:
            files.append(File(f"{job}.jpg", sheet.content()))
        return files, begins, video.seconds

    def _shoot_scene(
        self, scene: FilmScene, add: Callable[[Picture], None], sheet: Sheet | None
    ) -> None:
        requests = [replace(request, record=None) for request in self._requests]
        with (
            closing(self._make()) as environment,
            closing(pictures_of(self._loaded, environment, self._command.size)) as pictures,
        ):
            if not self._command.two_sides:
                pictures = replace(pictures, turned=None)
            watch = watching(scene, pictures, add, sheet)
            watch_policies(environment, self._task, requests, watch, PASS_SECONDS)


def changing_steps(trajectory: Trajectory, many: int) -> list[int]:
    """Start and end of an episode, and between them one after the other the step whose state is
    farthest from all that are chosen: `many` in all, in order (greedy k-centre, Gonzalez 1985).

    Time counts as much as all variables of the state together, and each variable alike, by its
    range in the episode. So a long calm is seen, too, and where nothing changes, the steps are
    evenly spread."""
    length = len(trajectory["fitness"])
    columns = []
    for name in sorted(trajectory.keys() - {"fitness", OBSERVATIONS, *ALWAYS_THERE}):
        values = np.nan_to_num(trajectory[name].reshape(length, -1).astype(np.float64))
        ranges = np.ptp(values, axis=0)
        if (changes := ranges > _STILL).any():
            columns.append((values / np.maximum(ranges, _STILL))[:, changes] / changes.sum() ** 0.5)
    state = [each / len(columns) ** 0.5 for each in columns]
    states = np.hstack([np.linspace(0.0, 1.0, length)[:, None], *state])

    def gaps_to(step: int) -> NDArray[np.float64]:
        # what is recorded at an index is the state after that step
        return np.linalg.norm(states - states[max(step - 1, 0)], axis=1)

    chosen = [0, length]
    gaps = np.minimum(gaps_to(0), gaps_to(length))
    while len(chosen) < many:
        chosen.append(int(gaps.argmax()) + 1)
        gaps = np.minimum(gaps, gaps_to(chosen[-1]))
    return sorted(chosen)


def watching(
    scene: FilmScene, pictures: Pictures, add: Callable[[Picture], None], sheet: Sheet | None
) -> Watch:
    sides = [pictures.picture, *([pictures.turned] if pictures.turned else [])]
    times = iter([*scene.times(), None])
    due = next(times)
    last: dict[int, Picture] = {}

    def watch(step: int) -> bool:
        """Add the video's pictures of this step; False after the last one."""
        nonlocal due
        while due == step:
            for place, episode in enumerate(scene.episodes):
                if scene.is_under_way(place, step) or place not in last:
                    last[place] = pictures.picture(episode.row)
            add(scene.drawn(step, [last[place] for place in sorted(last)]))
            due = next(times)
        wanted = False
        if sheet is not None:
            for place, episode in enumerate(scene.episodes):
                if sheet.wants(place, step):
                    sheet.add(place, step, *(side(episode.row) for side in sides))
                wanted |= step < episode.length
        return due is not None or wanted

    return watch
