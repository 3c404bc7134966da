"""Results of a benchmark, read from the runs in its batch."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from eureka_agent.archive.files import FILE_NAME
from eureka_agent.archive.run_folder import reading
from eureka_agent.batch.folder import BatchSearch, SearchState, searches_of
from eureka_agent.batch.intents import IntentsFile
from eureka_agent.batch.matrix import name_word
from eureka_agent.cards import read_card
from eureka_agent.errors import EnvironmentLoadError, RunFolderError
from eureka_agent.records import BASELINES, Score, Stage
from eureka_agent.report.comparison import known_fitness, told_apart
from eureka_agent.report.run_report import RunReport
from eureka_agent.search.summary import run_overview
from eureka_agent.simulation.catalogue import find_folder


@dataclass(frozen=True)
class Cell:
    """One search of a benchmark: a method on a task from a seed."""

    task: str
    method: str
    seed: int
    state: str
    fitness: tuple[float, ...] = ()
    """Fitness of the winner over fresh seeds."""
    attempts: int = 0
    """First proposals and their revisions."""
    trained: int = 0
    pending: int = 0
    """Attempts that are judged, trained or wait for it."""
    env_steps: int = 0
    """Env steps of all trainings before the finals."""
    requests: int = 0
    seconds: float = 0.0
    message: str = ""

    @property
    def mean(self) -> float | None:
        """Mean over the fresh seeds; None without a final training."""
        return fmean(self.fitness) if self.fitness else None

    @property
    def executable(self) -> float | None:
        """Share of attempts whose training came to its end."""
        return executable_share([self])


def executable_share(cells: Sequence[Cell]) -> float | None:
    """Share of the attempts of searches whose training came to its end, of those that have ended;
    None before the first training has, since refusals come sooner."""
    trained = sum(cell.trained for cell in cells)
    pending = sum(cell.pending for cell in cells)
    ended = sum(cell.attempts for cell in cells) - pending
    return trained / ended if ended and (trained or not pending) else None


@dataclass(frozen=True)
class TaskScale:
    """Zero and unit of a task's normalised scores."""

    task: str
    unit: str = ""
    human: tuple[float, ...] = ()
    """Fitness of the human reward over fresh seeds; empty until it is trained."""
    sparse: tuple[float, ...] = ()
    refusal: str = ""
    """Reason for which no score of this task is normalised; empty where it may be."""
    environment_task: str = ""
    """Name of the task in its environment; empty until a search of it has begun."""

    @property
    def label(self) -> str:
        """Name of the task, with that in its environment where it has another one."""
        inside = self.environment_task
        return self.task if name_word(inside) in self.task else f"{self.task} ({inside})"

    @property
    def denominator(self) -> float | None:
        """|human − sparse| (Ma et al. 2023); None where it is refused."""
        if self.refusal or not self.human or not self.sparse:
            return None
        return abs(fmean(self.human) - fmean(self.sparse))

    def normalised(self, fitness: float | None) -> float | None:
        """(fitness − sparse) / |human − sparse|; None where it is refused."""
        scale = self.denominator
        return None if scale is None or fitness is None else (fitness - fmean(self.sparse)) / scale


@dataclass(frozen=True)
class Results:
    """All of a benchmark that there is so far."""

    cells: tuple[Cell, ...]
    scales: Mapping[str, TaskScale]
    """Scales of the tasks of which a search has begun, by task."""
    methods: tuple[str, ...]
    tasks: tuple[str, ...]

    def scale(self, task: str) -> TaskScale:
        """Scale of a task; an empty one where nothing is known."""
        return self.scales.get(task) or TaskScale(task)

    def means(self, task: str, method: str) -> list[float]:
        """Means of the searches of a method on a task that have a score, by seed."""
        found = [each for each in self.cells if (each.task, each.method) == (task, method)]
        ordered = sorted(found, key=lambda each: each.seed)
        return [cell.mean for cell in ordered if cell.mean is not None]


def read_results(folder: Path, tasks: Sequence[str], methods: Sequence[str]) -> Results:
    """Read a benchmark's batch. `tasks`, `methods`: their names in the searches' names."""
    cells: list[Cell] = []
    scales: dict[str, TaskScale] = {}
    task, method = ("|".join(map(re.escape, names)) for names in (tasks, methods))
    for search in searches_of(IntentsFile(folder)):
        named = re.fullmatch(rf"({task})-({method})-seed(\d+)", search.name)
        if named is None:  # a search that somebody added to the batch
            continue
        place = named[1], named[2], int(named[3])
        if not (folder / search.name / FILE_NAME).is_file():
            cells.append(Cell(*place, search.state.value, message=search.message))
            continue
        try:
            with reading(str(folder / search.name)) as run:
                report = run_overview(run)
        except RunFolderError as error:
            cells.append(Cell(*place, SearchState.FAILED.value, message=error.message))
            continue
        cells.append(_cell(report, search, place))
        scale = _scale(report, place[0])
        if place[0] not in scales or len(scale.human) > len(scales[place[0]].human):
            scales[place[0]] = scale
    return Results(tuple(cells), scales, tuple(methods), tuple(tasks))


def _cell(report: RunReport, search: BatchSearch, place: tuple[str, str, int]) -> Cell:
    attempts = report.attempts
    best = report.best_score if search.state is SearchState.FINISHED else None
    outcomes = [each.outcome for each in attempts]
    outcomes += [repeat.outcome for each in attempts for repeat in each.repeats]
    return Cell(
        *place,
        search.state.value,
        () if best is None else tuple(known_fitness(best)),
        len(attempts),
        sum(each.stage is Stage.TRAINED for each in attempts),
        sum(each.stage in (Stage.PROPOSED, Stage.ACCEPTED) for each in attempts),
        sum(found.env_steps for found in outcomes if found is not None),
        report.cost.requests,
        report.seconds,
        search.message or report.message,
    )


def _scale(report: RunReport, task: str) -> TaskScale:
    human, sparse = (report.score(name) for name in BASELINES)
    unit, name = report.description.fitness_unit, report.description.task
    if human is None or sparse is None:
        return TaskScale(task, unit, environment_task=name)
    return TaskScale(
        task,
        unit,
        tuple(known_fitness(human)),
        tuple(known_fitness(sparse)),
        _refusal(human, sparse, report),
        name,
    )


def _refusal(human: Score, sparse: Score, report: RunReport) -> str:
    try:
        card = read_card(find_folder(report.settings.env), report.description.task)
    except EnvironmentLoadError:
        card = None
    # a card counts for the files that were searched alone
    same = card is not None and card.fingerprint == report.description.fingerprint
    if card is not None and same and not card.human.learns:
        return "the human reward does not learn it"
    if human.mean is None or sparse.mean is None:
        return "a baseline failed"
    if not told_apart(human, sparse):
        return "human and sparse are not told apart"
    if human.mean < sparse.mean:
        return "the human reward is below the sparse one"
    return ""
