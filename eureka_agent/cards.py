"""Difficulty cards: how hard a task is, measured with the rewards in its folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, FiniteFloat, JsonValue, ValidationError

from eureka_agent.base_record import Record
from eureka_agent.records import ShortName, ShortSentence, TaskName
from eureka_agent.settings import MOST_ENV_STEPS

Count = Annotated[int, Field(ge=0, le=MOST_ENV_STEPS)]

CARDS_FOLDER = "cards"
"""Folder of the cards in an environment's folder, which no result depends on."""
_LARGEST_FILE = 1 << 20
CARD_SEEDS = 8
"""Seeds of each reward on a card."""
TRAINER = 1
"""Number of the trainer, raised by a change after which trainings come to other scores. All cards
are to be measured again then (`eureka envs --measure`)."""
TRAINER_FILES = "4028c3843b3ab2ce9488fa930d0353168104ebc8709798ded53b437c3cac4f3d"
"""SHA-256 of the trainer's files (`eureka_agent.archive.cache`). Whoever changes them
renews it, and says with that whether `TRAINER` is still the same one."""


class CardPoint(Record):
    """A point of a learning curve, of the exploring policies of all seeds."""

    env_steps: Count
    mean: FiniteFloat | None
    """Mean fitness over the seeds; None before an episode has ended."""
    low: FiniteFloat | None
    high: FiniteFloat | None
    """Lowest and highest seed."""


class CardReward(Record):
    """Trainings of one reward."""

    fitness: tuple[FiniteFloat | None, ...]
    """Fitness of each seed, scored without exploration noise; None for a failed training."""
    mean: FiniteFloat | None
    std: FiniteFloat | None
    """Sample standard deviation over the seeds (n − 1)."""
    learned: Count
    """Number of seeds that came at least half of the way from the untrained policy to
    `Card.level`."""
    env_steps_to_level: Count | None
    """Env steps at which the mean curve has 90 % of the way to the human reward's best point; None
    where it never has, or the human reward did not learn."""
    curve: tuple[CardPoint, ...]
    ended_by: tuple[dict[ShortName, Count], ...] = ()
    """Evaluated episodes by cause of their end, of each seed; empty where not known."""

    @property
    def learns(self) -> bool:
        """True where most seeds learn."""
        return 2 * self.learned > len(self.fitness)


class Card(Record):
    """The difficulty card of a task."""

    version: Literal[1] = 1
    task: TaskName
    fingerprint: ShortSentence
    """Hash of the files that the results depend on."""
    unit: ShortSentence
    env_steps: Count
    """Env steps of one training."""
    budget: Count | None = None
    """Env steps that the task has for a training, where these were others."""
    num_envs: Count
    untrained: FiniteFloat
    """Fitness of random actions."""
    level: FiniteFloat
    """Fitness that counts as solved: the task's `success_fitness`, else the higher of the means."""
    human: CardReward
    sparse: CardReward
    decides: Literal["human", "sparse", "neither"]
    """The reward that is better beyond the noise of its seeds (Welch's 95 % interval)."""
    minutes: dict[ShortName, FiniteFloat]
    """Wall time of all these trainings, by the device: `"2 CPU cores"`."""
    packages: dict[ShortName, ShortSentence]
    """Versions of the packages that trained."""
    measured: ShortSentence = ""
    """Day. Without it and the rest no search uses the card."""
    trainer: Count = 0
    """`TRAINER` then."""
    device: Literal["", "cpu", "cuda"] = ""
    settings: dict[ShortName, JsonValue] = Field(default_factory=dict)
    """All settings of the trainings, and the episodes that scored them."""

    @property
    def rewards(self) -> dict[str, CardReward]:
        """Its rewards by name."""
        return {"human": self.human, "sparse": self.sparse}

    @property
    def seeds(self) -> int:
        """Fewest seeds of its rewards."""
        return min(len(each.fitness) for each in self.rewards.values())

    @property
    def origin(self) -> str:
        """`the card (8 seeds, measured on 2026-11-28)`."""
        return f"the card ({self.seeds} seeds, measured on {self.measured})"


def read_card(folder: Path, task: str) -> Card | None:
    """The card of a task in an environment's folder; None where there is none that can be read, or
    another task's."""
    path = card_path(folder, task)
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST_FILE:  # a pipe would wait
            return None
        card = Card.model_validate_json(path.read_text(encoding="utf-8"))
    except (OSError, ValidationError, UnicodeDecodeError):
        return None
    return card if card.task == task else None


def card_path(folder: Path, task: str) -> Path:
    return folder / CARDS_FOLDER / f"{task}.json"
