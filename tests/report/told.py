"""A run that a test tells entry by entry, and entries on made-up attempts."""

from __future__ import annotations

import io
import statistics
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from eureka_agent.journal.entries import AttemptEnded, BaseEntry, Judged, Proposed, RunStarted
from eureka_agent.journal.progress import Progress, TrainingEnded, TrainingQueued
from eureka_agent.journal.state import Recorded, RunState
from eureka_agent.records import Attempt, Score, Stage, TaskDescription, Verdict
from eureka_agent.report.panels import search_panel
from eureka_agent.settings import SearchSettings


def score(name: str, *fitness: float | None) -> Score:
    """Scores from as many seeds; None is a seed that failed."""
    known = [each for each in fitness if each is not None]
    return Score(
        name=name,
        seeds=tuple(range(len(fitness))),
        fitness=fitness,
        mean=statistics.fmean(known) if known else None,
        std=statistics.stdev(known) if len(known) > 1 else None,
    )


def proposed(attempt: Attempt) -> Proposed:
    """The proposal that an attempt began with."""
    return Proposed(
        attempt=attempt.id,
        iteration=attempt.iteration,
        sample=attempt.sample,
        revision=attempt.revision,
        proposal=attempt.proposal,
        seed=attempt.seed,
    )


def judged(attempt: Attempt) -> Judged:
    """The critic's verdict on it; it passed where it has none."""
    verdict = attempt.verdict or Verdict(findings=(), steps_run=("parse",))
    return Judged(attempt=attempt.id, verdict=verdict)


def ended(attempt: Attempt) -> AttemptEnded:
    """The end of its training."""
    return AttemptEnded(
        attempt=attempt.id,
        stage=attempt.stage,
        reason=attempt.reason,
        retries=attempt.retries,
        outcome=attempt.outcome,
        diagnosis=attempt.diagnosis,
    )


def progress(env_steps: int, fitness: float | None) -> Progress:
    """A point of a curve."""
    return Progress(env_steps=env_steps, fitness=fitness)


def started(description: TaskDescription, settings: SearchSettings, **values: object) -> RunStarted:
    """The start of a run."""
    return RunStarted(
        run_folder=Path("runs/jumper"),
        run_name="20261121-035500_jumper_jump",
        description=description,
        sentence="jump as high as you can",
        settings=settings,
        wall="process",
        designer="offline",
    ).model_copy(update=values)


class Story:
    """A run, and those who observe it. Its time passes as a test says."""

    def __init__(
        self, make: Callable[..., Attempt], *observers: Callable[[BaseEntry], None]
    ) -> None:
        self.make, self.observers = make, observers
        self.state = RunState()
        self.now = 0.0
        self.entries: list[Recorded] = []

    def tell(self, *entries: BaseEntry, seconds: float = 0.0) -> None:
        """Record entries, each so many seconds after the one before."""
        for entry in entries:
            self.now += seconds
            if isinstance(entry, RunStarted):
                entry = entry.model_copy(update={"state": self.state})
            self.entries.append(Recorded(len(self.entries) + 1, "", self.now, entry))
            self.state.apply(self.entries[-1])
            for observer in self.observers:
                observer(entry)

    def accept(self, name: str) -> None:
        """Propose an attempt, which the critic accepts, and queue its training."""
        self.tell(
            proposed(self.make(name, Stage.PROPOSED)),
            judged(self.make(name, Stage.ACCEPTED)),
            TrainingQueued(job=f"{name}@7", label=name, training="search", seed=7),
        )

    def finish(self, name: str, fitness: float, **values: str) -> None:
        """End an attempt's training."""
        job = {"job": f"{name}@7", "label": name, "training": "search"}
        self.tell(
            TrainingEnded(**job, fitness=fitness),
            ended(self.make(name, Stage.TRAINED, fitness, **values)),
        )

    def reject(self, name: str, reason: str) -> None:
        """Propose an attempt that the critic throws out."""
        rejected = self.make(name, Stage.REJECTED, reason=reason)
        self.tell(proposed(self.make(name, Stage.PROPOSED)), judged(rejected))

    def picture(self, width: int = 80, height: int = 24) -> list[str]:
        """Lines of the live view."""
        console = Console(file=io.StringIO(), width=width, height=height, color_system=None)
        console.print(search_panel(self.state, self.now, height))
        return console.file.getvalue().splitlines()  # type: ignore[attr-defined]
