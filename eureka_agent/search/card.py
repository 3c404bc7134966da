"""The difficulty card of a task, from a run that trained its baselines."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Literal

from pydantic import JsonValue

from eureka_agent import cards
from eureka_agent.archive.cache import trainer_files
from eureka_agent.archive.files import write_text
from eureka_agent.archive.run_folder import Run, versions
from eureka_agent.errors import EurekaError, RunFolderError
from eureka_agent.invocation import command
from eureka_agent.records import BASELINES, FinalTraining, Outcome, Score, TaskDescription
from eureka_agent.report.comparison import FEWEST_SEEDS, compare_scores
from eureka_agent.sandbox.client import built_in_folder, environment_folder
from eureka_agent.sandbox.cores import available_cores
from eureka_agent.search.scoring import score
from eureka_agent.search.seeds import final_seeds
from eureka_agent.settings import SearchSettings, TrainingSettings, training_part
from eureka_agent.wording import plural

_PHYSICS = ("mujoco", "gymnasium")
"""Packages of which another version may make another environment."""
HALF_WAY = 0.5
MOST_OF_THE_WAY = 0.9
_PACKAGES = ("torch", "mujoco", "gymnasium")


class NoCardError(EurekaError):
    """A run from which no card can be made."""


def card_of(run: Run) -> cards.Card:
    """The card that follows from a run's baselines. Raises NoCardError where one is missing."""
    began = run.archive.state.began
    card = make_card(
        run.description,
        run.archive.trainings(),
        run.settings,
        _minutes(run),
        {name: began.versions[name] for name in _PACKAGES if name in began.versions},
    )
    device = "cuda" if run.archive.state.devices[-1].startswith("cuda") else "cpu"
    facts = {"device": device, "settings": _settings_of(run.settings)}
    day = run.archive.state.created[:10]
    return card.model_copy(update={**facts, "measured": day, "trainer": cards.TRAINER})


def make_card(
    description: TaskDescription,
    trainings: Sequence[FinalTraining],
    settings: TrainingSettings,
    minutes: dict[str, float],
    packages: dict[str, str],
) -> cards.Card:
    """The card that follows from trainings of the baselines. Raises NoCardError."""
    scores = {name: score(name, trainings) for name in BASELINES}
    for name, found in scores.items():
        if found.mean is None:
            raise NoCardError(
                f"the {name} reward of task {description.task!r} has no training that ended",
                "a card compares a human and a sparse reward:"
                f" {command('envs --check')} tries both",
            )
    measured = description.measured
    if measured is None or measured.random_actions is None:
        raise NoCardError(
            f"it is not known what random actions score on task {description.task!r}",
            f"{command('envs --check')} says what fails when they are taken",
        )
    untrained = measured.random_actions.mean
    level = description.success_fitness
    if level is None or level <= untrained:
        level = max(each.mean for each in scores.values() if each.mean is not None)
    half_way = untrained + HALF_WAY * (level - untrained)
    made = {
        name: sorted((each for each in trainings if each.name == name), key=lambda each: each.seed)
        for name in BASELINES
    }
    curves = {
        name: _curve([each.outcome for each in found if each.outcome is not None])
        for name, found in made.items()
    }
    known = [point.mean for point in curves["human"] if point.mean is not None]
    best = max(known, default=untrained)
    reached = untrained + MOST_OF_THE_WAY * (best - untrained)

    def reward(name: str) -> cards.CardReward:
        found, curve = scores[name], curves[name]
        at_level = (
            each.env_steps for each in curve if each.mean is not None and each.mean >= reached
        )
        return cards.CardReward(
            fitness=found.fitness,
            mean=found.mean,
            std=found.std,
            learned=sum(value is not None and value >= half_way for value in found.fitness),
            env_steps_to_level=next(at_level, None) if best > untrained else None,
            curve=tuple(curve),
            ended_by=tuple(each.outcome.ended_by if each.outcome else {} for each in made[name]),
        )

    human, sparse = reward("human"), reward("sparse")
    if not human.learns:
        no_level = {"env_steps_to_level": None}
        human, sparse = (each.model_copy(update=no_level) for each in (human, sparse))
    return cards.Card(
        task=description.task,
        fingerprint=description.fingerprint,
        unit=description.fitness_unit,
        env_steps=settings.env_steps,
        budget=None if settings.env_steps == description.env_steps else description.env_steps,
        num_envs=settings.num_envs,
        untrained=untrained,
        level=level,
        human=human,
        sparse=sparse,
        decides=_better(scores["human"], scores["sparse"]),
        minutes=minutes,
        packages=packages,
    )


def _curve(outcomes: Sequence[Outcome]) -> list[cards.CardPoint]:
    """Mean, lowest and highest fitness at each checkpoint."""
    points = []
    for checkpoints in zip(*(each.checkpoints for each in outcomes), strict=True):
        values = [each.fitness for each in checkpoints if each.fitness is not None]
        points.append(
            cards.CardPoint(
                env_steps=checkpoints[0].env_steps,
                mean=statistics.fmean(values) if values else None,
                low=min(values, default=None),
                high=max(values, default=None),
            )
        )
    return points


def _better(human: Score, sparse: Score) -> Literal["human", "sparse", "neither"]:
    comparison = compare_scores(human, sparse)
    if comparison is None or not (comparison.better or comparison.worse):
        return "neither"
    return "human" if comparison.better else "sparse"


def _minutes(run: Run) -> dict[str, float]:
    """Wall time of the trainings by device; nothing where some are an earlier run's."""
    devices = run.archive.state.devices
    if not devices or any(each.cached for each in run.archive.trainings()):
        return {}
    device = devices[-1]
    if not device.startswith("cuda"):
        device = plural(run.settings.workers or len(available_cores()), "CPU core")
    return {device: round(run.seconds / 60.0, 1)}


def card_for(
    description: TaskDescription, settings: SearchSettings, device: str
) -> tuple[cards.Card | None, str]:
    """The card from which such a search may take its baselines, and a sentence on their origin."""
    folder = environment_folder(description.environment) or built_in_folder(description.environment)
    card = None if folder is None else cards.read_card(folder, description.task)
    wanted = settings.trains_baselines and settings.iterations and settings.fitness == "task"
    if card is None or not wanted or len(description.baselines) < len(BASELINES):
        return None, ""
    here = (
        "the human and the sparse reward are trained here, unless an earlier run here has done so"
    )
    if settings.train_baselines:
        return None, f"{here}, as --train-baselines asks"
    if why := why_stale(card, description, settings, device):
        return None, f"{here}: the task's card {why}"
    return (
        card,
        f"the human and the sparse reward are not trained: their scores are from {card.origin}",
    )


def why_stale(
    card: cards.Card, description: TaskDescription, settings: SearchSettings, device: str
) -> str:
    """Why a card does not hold for this search, after "the task's card"; empty where it does."""
    if card.fingerprint != description.fingerprint:
        return "was measured before the environment's files changed"
    if not card.settings:
        return "does not say how it was measured"
    if (card.trainer, cards.TRAINER_FILES) != (cards.TRAINER, trainer_files()):
        return "was measured with another trainer"
    if card.device != device:
        return f"was measured on a device of kind {card.device}, not {device}"
    here = versions()
    for name, version in card.packages.items():
        if name in _PHYSICS and here.get(name) != version:
            return f"was measured with {name} {version}, and {here.get(name, 'none')} is here"
    for name, value in _settings_of(settings).items():
        if card.settings.get(name) != value:
            return f"was measured with {name} {card.settings.get(name)}, and it is {value} here"
    if card.seeds < (settings.baseline_seeds or FEWEST_SEEDS):
        return f"has {card.seeds} seeds, fewer than --baseline-seeds"
    return ""


def final_trainings_of(card: cards.Card, env_steps: int) -> list[FinalTraining]:
    """A card's scores as final trainings, from the seeds that it was measured with, in order."""
    found = []
    for name, reward in card.rewards.items():
        ends = reward.ended_by or ({},) * len(reward.fitness)
        seeds = sorted(final_seeds(len(reward.fitness)))
        for seed, fitness, ended_by in zip(seeds, reward.fitness, ends, strict=True):
            outcome = None
            if fitness is not None:
                outcome = Outcome(
                    env_steps=env_steps,
                    seconds=0.0,
                    checkpoints=(),
                    best_checkpoint=-1,
                    training_fitness=None,
                    fitness=fitness,
                    ended_by=ended_by,
                )
            failure = "" if outcome else "it failed when the card was measured"
            found.append(
                FinalTraining(
                    name=name, seed=seed, outcome=outcome, failure=failure, cached=True, card=True
                )
            )
    return found


def makes_card(description: TaskDescription, settings: SearchSettings, device: str) -> bool:
    """True for a search whose baselines become the card of a person's own environment."""
    folder = environment_folder(description.environment)
    wanted = settings.trains_baselines and settings.iterations and settings.fitness == "task"
    own = SearchSettings.model_validate(description.training_on(device))
    if folder is None or not wanted or settings.seeds_of_baselines < FEWEST_SEEDS:
        return False
    known = cards.read_card(folder, description.task)
    holds = known is not None and not why_stale(known, description, settings, device)
    return not holds and _settings_of(settings) == _settings_of(own)


def keep_card(run: Run) -> str:
    """Write a run's baselines as a card, where it makes one; a sentence on it, else empty."""
    folder = environment_folder(run.description.environment)
    try:
        card = card_of(run)
        if folder is None or not makes_card(run.description, run.settings, card.device):
            return ""
        path = cards.card_path(folder, card.task)
        write_text(path, card.model_dump_json(indent=1) + "\n")
    except (NoCardError, RunFolderError):  # a reward is missing, or the folder is read-only
        return ""
    return f"later searches take the human and the sparse reward's scores from {path}"


def _settings_of(settings: SearchSettings) -> dict[str, JsonValue]:
    """All settings that scores of baselines depend on."""
    known = training_part(settings).model_dump(mode="json")
    episodes = ("evaluation_episodes", "scoring_episodes")
    return known | {name: getattr(settings, name) for name in episodes}
