"""All that a report of a run is made from, as data: the archive's facts without the archive."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

from eureka_agent.invocation import command
from eureka_agent.records import (
    BASELINES,
    GIVEN_DESIGNER,
    Attempt,
    RunStatus,
    Score,
    TaskDescription,
    WrittenFitness,
)
from eureka_agent.report.ledger import NOTHING_ASKED, Ledger
from eureka_agent.settings import SearchSettings


@dataclass(frozen=True, kw_only=True)
class RunCost:
    """Trainings, env steps, tokens and money that a run has used so far."""

    search_trainings: int = 0
    """Candidates trained, failed trainings included."""
    final_trainings: int = 0
    baseline_trainings: int = 0
    """Without the cached ones."""
    final_restarts: int = 0
    """Times that final trainings and baselines were started again because a worker died."""
    env_steps: int = 0
    """Sum over all those trainings."""
    requests: int = 0
    """Requests to an LLM; 0 for a run of the offline designer."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    uncounted: int = 0
    """Requests whose tokens the server did not count."""
    money: Decimal | None = None
    """US dollars; None where it is unknown for any request."""

    @property
    def trainings(self) -> int:
        return self.search_trainings + self.final_trainings + self.baseline_trainings


@dataclass(frozen=True, kw_only=True)
class RunReport:
    """A run as a person is told of it."""

    run_name: str
    folder: Path
    description: TaskDescription
    sentence: str
    settings: SearchSettings
    status: RunStatus
    started: str
    """ISO 8601, UTC."""
    seconds: float
    """Wall time over all resumptions."""
    designer: str
    wall: str
    attempts: tuple[Attempt, ...]
    """In the order of iteration, sample, revision."""
    scores: tuple[Score, ...] = ()
    """Finalists, best first, then the human and the sparse reward."""
    best: Attempt | None = None
    cost: RunCost = RunCost()
    ledger: Ledger = NOTHING_ASKED
    """Account of the requests to models."""
    devices: tuple[str, ...] = ()
    """Devices that its trainings ran on, one after the other: `"cpu"`, or GPUs such as `"cuda:0 and
    cuda:1"`."""
    versions: Mapping[str, str] = field(default_factory=dict)
    git_commit: str | None = None
    command: tuple[str, ...] = ()
    """The command line that started the run."""
    message: str = ""
    """Why the run ended where it did, where that is not plain."""
    budget: tuple[str, ...] = ()
    """Sentences on what the run's budget came to, and where it ended the search; empty for a run
    without one."""
    remarks: tuple[str, ...] = ()
    """Sentences on what went otherwise than was asked for, and was dealt with."""
    written_fitness: WrittenFitness | None = None
    """None for a run by the task's own metric."""
    sentence_agrees: bool = False
    """True where the sentence, in other words than the task's, asks for what its fitness
    measures."""
    fitness_origin: str = ""
    """Its author and how it was accepted, in words."""

    def score(self, name: str) -> Score | None:
        """The score of `"human"`, `"sparse"` or an attempt; None before there is one."""
        return next((score for score in self.scores if score.name == name), None)

    @property
    def best_score(self) -> Score | None:
        return self.score(self.best.id) if self.best is not None else None

    @property
    def finalists(self) -> tuple[Score, ...]:
        """Scores without the baselines, best first."""
        return tuple(score for score in self.scores if score.name not in BASELINES)

    @property
    def of_own_reward(self) -> bool:
        """True for the run of `train`, on a reward that a person wrote."""
        return self.designer == GIVEN_DESIGNER

    def command_line(self) -> str:
        """Command line that runs the search again."""
        if self.command and self.command[0] != "eureka":
            return shlex.join(self.command)
        return command(shlex.join(self.arguments()))

    def arguments(self, *flag: str) -> list[str]:
        """Arguments of `eureka` that run the search again; with a flag and its value in place of
        what it was, where they are given."""
        if self.command and self.command[0] == "eureka":
            first = list(self.command[1:])
            while flag and flag[0] in first:
                place = first.index(flag[0])
                del first[place : place + 2]
            return [*first, *flag]
        flags = {
            "--env": self.settings.env,
            "--task": self.description.task,
            "--strategy": self.settings.strategy,
            "--iterations": str(self.settings.iterations),
            "--samples": str(self.settings.samples),
            "--seed": str(self.settings.seed),
            **({} if self.written_fitness is None else {"--fitness": self.settings.fitness}),
        }
        models = [part for model in self.settings.model for part in ("--model", model)]
        return [
            "search",
            self.sentence,
            *models,
            *(part for pair in flags.items() for part in pair),
            *flag,
        ]
