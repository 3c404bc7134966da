"""Data of a run's report: the archive's facts without the archive."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from eureka_agent.analysis.coverage import Coverage, coverage
from eureka_agent.analysis.standing import Agreement
from eureka_agent.attempt_words import measure_of
from eureka_agent.cards import Card
from eureka_agent.invocation import command
from eureka_agent.ranking import all_scores, merits
from eureka_agent.records import (
    BASELINES,
    GIVEN_DESIGNER,
    Attempt,
    FinalTraining,
    RunStatus,
    Score,
    TaskDescription,
    WrittenFitness,
)
from eureka_agent.report.ledger import NOTHING_ASKED, Ledger
from eureka_agent.settings import UNMEASURED, SearchSettings

if TYPE_CHECKING:
    from eureka_agent.posterior import Posterior

_TAKE_SETTINGS = frozenset(("search", "train"))
"""Commands that take a search's settings as flags."""


@dataclass(frozen=True, kw_only=True)
class RunCost:
    """Trainings, env steps, tokens and money of a run so far."""

    search_trainings: int = 0
    """Trainings of candidates, failed ones and repeats included."""
    final_trainings: int = 0
    baseline_trainings: int = 0
    """Trained baselines, cached ones excluded."""
    randomised_trainings: int = 0
    """Trainings under distributions of parameters."""
    final_restarts: int = 0
    """Restarts of final trainings and baselines after a worker died."""
    env_steps: int = 0
    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    uncounted: int = 0
    """Requests whose tokens the server did not count."""
    money: Decimal | None = None
    """US dollars; None where unknown for any request."""

    @property
    def trainings(self) -> int:
        at_the_end = self.final_trainings + self.baseline_trainings + self.randomised_trainings
        return self.search_trainings + at_the_end


@dataclass(frozen=True)
class ByStrength:
    """The best attempt's place by comparisons, which rank the attempts."""

    by: Literal["choices", "model"]
    """A person's choices, or a model's comparisons of pictures."""
    answers: int
    strength: float
    deviation: float
    chance: float
    """Probability of being the best."""


@dataclass(frozen=True)
class ByModel:
    """A model's comparisons of the run's attempts."""

    model: str
    comparisons: int
    agreement: Agreement | None
    """With a person's choices; None for too few of these."""
    sub_goals: tuple[str, ...] = ()
    """Steps towards the task by which it judged, in order; empty without any."""


@dataclass(frozen=True, kw_only=True)
class RunReport:
    """Data of a run's report."""

    run_name: str
    folder: Path
    description: TaskDescription
    sentence: str
    settings: SearchSettings
    status: RunStatus
    started: str
    """ISO 8601, UTC."""
    seconds: float
    """Wall time over all processes."""
    designer: str
    wall: str
    attempts: tuple[Attempt, ...]
    """Attempts of the search by iteration, sample and revision."""
    randomised: tuple[Attempt, ...] = ()
    """Attempts that train the best reward under distributions of parameters."""
    scores: tuple[Score, ...] = ()
    """Finalists, best first, then the human and the sparse reward."""
    final_trainings: tuple[FinalTraining, ...] = ()
    """Trainings of finalists and baselines, behind the scores."""
    best: Attempt | None = None
    cost: RunCost = RunCost()
    ledger: Ledger = NOTHING_ASKED
    devices: tuple[str, ...] = ()
    """Devices of its trainings, one after the other: `"cpu"`, `"cuda:0 and cuda:1"`."""
    versions: Mapping[str, str] = field(default_factory=dict)
    git_commit: str | None = None
    command: tuple[str, ...] = ()
    message: str = ""
    """Reason for an unusual end."""
    budget: tuple[str, ...] = ()
    """Sentences on the plan of the run's budget and on the end that it made."""
    card: Card | None = None
    """Card that the baselines are from; None where they were trained."""
    chosen: tuple[str, ...] = ()
    """Ids of the attempts chosen as finalists, also of those that could not win before a seed."""
    no_finals: str = ""
    """Reason for training no finalist; empty with finalists, and where none were asked for."""
    remarks: tuple[str, ...] = ()
    """Sentences on deviations from the plan."""
    written_fitness: WrittenFitness | None = None
    sentence_agrees: bool = False
    """True where the sentence asks, in other words than the task's, for its fitness."""
    not_understood: tuple[str, ...] = ()
    """Clauses of the sentence of which the offline designer made nothing."""
    by_strength: ByStrength | None = None
    """None where the fitness ranks the attempts."""
    by_model: ByModel | None = None
    """None where no model compared attempts."""
    fitness_origin: str = ""
    """Author and acceptance of a written fitness, in words."""

    @property
    def all_attempts(self) -> tuple[Attempt, ...]:
        """Attempts of the search, then those under distributions of parameters."""
        return (*self.attempts, *self.randomised)

    @property
    def unit_note(self) -> str:
        """`" (m)"`; empty for a fitness without a unit."""
        unit = self.description.fitness_unit
        return f" ({unit})" if unit not in ("", "1") else ""

    @property
    def merit_unit_note(self) -> str:
        """Note on the unit of what ranks the attempts; a strength has none."""
        return self.unit_note if self.measure == "fitness" else ""

    @property
    def measure(self) -> str:
        """Title of what ranks the attempts: `strength` or `fitness`."""
        return measure_of(self.attempts)

    @cached_property
    def scores_and_posterior(self) -> tuple[dict[str, list[float]], Posterior] | None:
        """Scores of all trained rewards by name, and beliefs about them; None where the best is no
        finalist."""
        best = self.best_score
        if best is None or best.mean is None:
            return None
        from eureka_agent.posterior import posterior  # with numpy, which lists of runs do without

        known = all_scores(self.attempts, self.finalists)
        return known, posterior(list(known.values()))

    @cached_property
    def counted_on(self) -> Mapping[str, float]:
        """Fitness that can be counted on, which ranks the attempts, by their ids. Empty where
        strengths rank, and without a repeat: the fitness itself ranks then."""
        repeated = any(each.repeats for each in self.attempts)
        return merits(self.attempts) if repeated and self.measure == "fitness" else {}

    @property
    def is_measured(self) -> bool:
        """False where no metric is calculated."""
        return self.settings.fitness not in UNMEASURED

    def score(self, name: str) -> Score | None:
        """Score of `"human"`, `"sparse"` or an attempt; None before there is one."""
        return next((score for score in self.scores if score.name == name), None)

    @cached_property
    def coverage(self) -> Coverage | None:
        """Lack of coverage: no training came to what the fitness pays for; None where one did."""
        steps = self.settings.env_steps
        return coverage(self.attempts, self.scores, self.description, steps)

    @property
    def best_score(self) -> Score | None:
        return self.score(self.best.id) if self.best is not None else None

    @property
    def finalists(self) -> tuple[Score, ...]:
        """Scores without the baselines, best first."""
        return tuple(score for score in self.scores if score.name not in BASELINES)

    @property
    def of_own_reward(self) -> bool:
        """True for a run of `train`, on a person's own reward."""
        return self.designer == GIVEN_DESIGNER

    def command_line(self) -> str:
        """Command line that repeats the search."""
        if self.command and self.command[0] != "eureka":
            return shlex.join(self.command)
        return command(shlex.join(self.arguments()))

    def arguments(self, *flag: str) -> list[str]:
        """Arguments of `eureka` that repeat the search, perhaps with another value of a flag."""
        # a batch, or `envs --measure`, has other flags than a search
        if self.command[:1] == ("eureka",) and (
            not flag or _TAKE_SETTINGS.intersection(self.command[1:2])
        ):
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
            **({} if self.settings.fitness == "task" else {"--fitness": self.settings.fitness}),
        }
        pairs = [*(("--model", model) for model in self.settings.model), *flags.items()]
        return ["search", self.sentence, *(part for pair in pairs for part in pair), *flag]
