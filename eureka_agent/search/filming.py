"""Videos of what a run has trained."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from eureka_agent.archive import artefacts
from eureka_agent.archive.run_folder import Run, unknown_attempt
from eureka_agent.archive.safe_files import inside
from eureka_agent.boundary.bounds import MOST_FILMED
from eureka_agent.boundary.events import Filmed
from eureka_agent.errors import EurekaError, RunFolderError, SettingsError
from eureka_agent.fleet.jobs import Problem
from eureka_agent.fleet.warm_worker import FilmMaker, FilmSettings, FilmSubject, ShownName
from eureka_agent.invocation import show_command
from eureka_agent.records import BASELINES
from eureka_agent.sandbox.wall import Wall
from eureka_agent.search.final import typical_training
from eureka_agent.search.seeds import derive_seed
from eureka_agent.search.summary import best_attempt
from eureka_agent.settings import SearchSettings

VIDEO_VARIABLE = "EUREKA_VIDEO"
"""Environment variable; `off` for machines where nobody watches: no search makes a video."""
VIDEOS = "videos"
"""Folder of videos of several trainings, in a run folder."""
MOST_EPISODES = 64
"""Episodes that are played, of which a few are shown."""
EPISODES: tuple[ShownName, ...] = ("best", "median", "worst")
GIF_SECONDS = 5.0


@dataclass(frozen=True)
class TrainedPolicy:
    """A training of a run that can be shown."""

    name: str
    """As a person names it: `2-03`, `2-03@1412`, `human`."""
    seed: int
    """Seed of its training, from which the episodes follow that scored it."""
    subject: FilmSubject


def trained_policies(run: Run, names: Sequence[str]) -> list[TrainedPolicy]:
    """The trainings of these names: an attempt's id, `human`, `sparse` or `randomised`, perhaps
    with `@` and a seed; without names that of the best attempt. Raises RunFolderError."""
    if len(names) > MOST_FILMED:
        what = f"{len(names)} trainings are named, expected at most {MOST_FILMED} side by side"
        raise SettingsError(what, "make several videos")
    if names:
        return [_trained_policy(run, name) for name in dict.fromkeys(names)]
    best = best_attempt(run)
    if best is None:
        raise RunFolderError(f"the run {run.name!r} has no best attempt", _hint(run))
    typical = typical_training(run.archive.trainings(), best.id)
    found = _trained_policy(run, best.id if typical is None else f"{best.id}@{typical.seed}")
    subject = replace(found.subject, title=f"attempt {best.id}, the best")
    return [replace(found, subject=subject)]


def _trained_policy(run: Run, name: str) -> TrainedPolicy:
    of, _, word = name.partition("@")
    if word and not word.isdecimal():
        what = f"{name!r} has the seed {word!r}, expected a number"
        raise RunFolderError(what, "such as 2-03@7")
    finders = dict.fromkeys(BASELINES, _of_baseline) | {artefacts.RANDOMISED: _of_randomised}
    find = finders.get(of, _of_attempt)
    title, seed, folder = find(run, of, int(word) if word else None)
    policy = inside(folder, artefacts.POLICY)
    if not policy.is_file():
        artefacts.check_not_pruned(run, of)
        seeds = sorted(training.seed for training in run.archive.trainings() if training.name == of)
        known = f"; it was trained from the seeds {', '.join(map(str, seeds))}" if seeds else ""
        raise RunFolderError(f"{name!r} has no policy in the run {run.name!r}{known}", _hint(run))
    return TrainedPolicy(name, seed, FilmSubject(title, policy))


def _of_baseline(run: Run, name: str, seed: int | None) -> tuple[str, int, Path]:
    training = typical_training(run.archive.trainings(), name)
    if training is None:
        raise RunFolderError(f"the run {run.name!r} has not trained the {name} reward", _hint(run))
    if training.card:
        raise RunFolderError(
            f"the run {run.name!r} has the {name} reward's scores from the task's card, and no"
            " policy of it",
            "a search with --train-baselines trains it",
        )
    seed = training.seed if seed is None else seed
    return f"{name} reward", seed, artefacts.training_folder(run.folder, name, seed)


def _of_randomised(run: Run, name: str, seed: int | None) -> tuple[str, int, Path]:
    found, typical = artefacts.best_randomised(run, best_attempt(run))
    return _of_attempt(run, found, typical if seed is None else seed)


def _of_attempt(run: Run, name: str, seed: int | None) -> tuple[str, int, Path]:
    attempt = run.archive.attempt(name)
    if attempt is None:
        raise unknown_attempt(run, name, BASELINES)
    if seed is None or seed == attempt.seed:
        return f"attempt {name}", attempt.seed, artefacts.attempt_folder(run.folder, name)
    folder = artefacts.repeat_folder(run.folder, name, seed)
    if not folder.is_dir():
        folder = artefacts.training_folder(run.folder, name, seed)
    return f"attempt {name}, seed {seed}", seed, folder


def _hint(run: Run) -> str:
    return f"`{show_command(run.folder)}` lists what was trained"


def default_video(run: Run, names: Sequence[str], shown: Sequence[TrainedPolicy]) -> Path:
    """Place of a video in the run folder."""
    if not names:
        return inside(run.folder, artefacts.BEST, artefacts.VIDEO)
    if len(shown) == 1:
        return inside(shown[0].subject.policy.parent, artefacts.VIDEO)
    return inside(run.folder, VIDEOS, f"{'_'.join(each.name for each in shown)}.mp4")


def film_settings(
    run: Run,
    shown: Sequence[TrainedPolicy],
    episodes: Sequence[int | ShownName] = EPISODES,
    *,
    seconds: float = 10.0,
    size: tuple[int, int] | None = None,
    sheet: int = 0,
) -> FilmSettings:
    """The episodes that scored the first policy, of which `episodes` are shown."""
    panels = len(shown) if len(shown) > 1 else len(episodes)
    return FilmSettings(
        seed=derive_seed("evaluation", shown[0].seed),
        episodes=min(run.settings.evaluation_episodes, MOST_EPISODES),
        shown=tuple(dict.fromkeys(episodes)),
        size=size or ((480, 360) if panels < 3 else (320, 240)),
        seconds=seconds,
        gif_seconds=GIF_SECONDS,
        sheet=sheet,
    )


async def film(
    run: Run,
    wall: Wall,
    shown: Sequence[TrainedPolicy],
    settings: FilmSettings,
    video: Path,
    gif: Path | None,
) -> Filmed:
    """Write a video and a GIF of a run's trainings. Raises the errors of `FilmMaker.film`."""
    problem = Problem(run.settings.env, run.description.task, run.written_fitness)
    with tempfile.TemporaryDirectory(prefix="eureka-video-") as scratch:
        maker = FilmMaker(wall, problem, Path(scratch))
        try:
            subjects = [each.subject for each in shown]
            return await maker.film(subjects, settings, run.description.fingerprint, video, gif)
        finally:
            await maker.close()


def films_best(settings: SearchSettings) -> bool:
    """True if a search ends with the video of its best attempt."""
    wanted = os.environ.get(VIDEO_VARIABLE, "").lower() not in ("off", "0", "no")
    return settings.video and wanted


async def film_best(run: Run, maker: FilmMaker) -> str:
    """Write the video of the best attempt. Returns the reason why there is none, or ""."""
    if best_attempt(run) is None:
        return ""
    try:
        shown = trained_policies(run, ())
        video = default_video(run, (), shown)
        settings = film_settings(run, shown)
        subjects, gif = (
            [each.subject for each in shown],
            inside(run.folder, artefacts.BEST, artefacts.GIF),
        )
        await maker.film(subjects, settings, run.description.fingerprint, video, gif)
    except EurekaError as error:
        return f"no video: {error.message}" + (f" ({error.hint})" if error.hint else "")
    return ""
