"""The fitness of a search whose task's own metric does not count: written by a model, or none."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from eureka_agent.analysis.judge import check_sight
from eureka_agent.archive.database import Archive
from eureka_agent.archive.files import FILE_NAME, dump_json, storage_errors, write_text
from eureka_agent.archive.run_folder import Run
from eureka_agent.critic.critic import Critic
from eureka_agent.designer.fitness_writer import FitnessWriter
from eureka_agent.designer.interface import GivenDesigner
from eureka_agent.errors import EurekaError, SettingsError
from eureka_agent.feedback_records import Judge
from eureka_agent.fleet.dry_runner import DryRunner
from eureka_agent.invocation import command
from eureka_agent.journal.entries import Notice, Observer
from eureka_agent.llm.budget import Budget
from eureka_agent.llm.gateway import Gateway
from eureka_agent.llm.interface import LanguageModelError
from eureka_agent.records import Message, Verdict, WrittenFitness
from eureka_agent.search.models import Models
from eureka_agent.settings import SearchSettings, judge_of

DRAFTS_FOLDER = ".fitness"
"""Folder beside the runs with each fitness that was shown, its requests and replies."""
FITNESS_SOURCE, FITNESS_WORDS = "fitness.py", "fitness.json"
RANKED_BY = {"chosen": Judge(by="choices"), "judged": Judge(by="model")}
"""Ranking of the attempts of these searches from their start, by the setting `fitness`."""
_NO_FINALS: dict[str, Any] = {"finalists": 0, "confirm": 0}
_DEFAULTS: dict[str, dict[str, Any]] = {
    "chosen": {**_NO_FINALS, "iterations": 1, "video": False},
    "judged": _NO_FINALS,
}
"""Settings of a search without a metric, unless they are given: nothing is decided by one."""
_NOTHING = """def compute_reward(terminated):
    nothing = 0.0 * terminated
    return nothing, {"nothing": nothing}
"""

Acceptance = Literal[
    "accepted by a person at the start",
    "accepted by --yes at the start",
    "as --fitness chosen asks",
    "as --fitness judged asks",
]
Confirm = Callable[[WrittenFitness, Verdict, Path], Awaitable[Acceptance | None]]
"""Shows a fitness, its verdict and folder; how it was accepted, or None."""


class FitnessDeclinedError(EurekaError):
    """A fitness that the user declined. Nothing was started."""

    exit_status = 1


def nobody_to_ask(fitness: WrittenFitness, kept: Path) -> EurekaError:
    """Error of a written fitness, kept in a folder, that waits for somebody who accepts it."""
    return EurekaError(
        f"{fitness.author} wrote a fitness, and there is no terminal to ask whether it is taken",
        f"read {str(kept / FITNESS_SOURCE)!r}, then give the same command with --yes: it is not"
        " written again",
    )


@dataclass(frozen=True)
class AcceptedFitness:
    """An accepted fitness for a new run."""

    fitness: WrittenFitness
    accepted: Acceptance
    messages: tuple[str, ...]
    """Keys of the requests for it."""
    shown_seconds: float
    """Time that the user took to read it."""

    def recorded(self) -> dict[str, Any]:
        """Its part of the journal's first entry."""
        return {
            "written_fitness": self.fitness,
            "fitness_accepted": self.accepted,
            "fitness_messages": self.messages,
        }


def with_defaults(values: Mapping[str, Any]) -> dict[str, Any]:
    """The settings by name, with the defaults of a search without a metric if it is one."""
    return {**_DEFAULTS.get(str(values.get("fitness")), {}), **values}


def check_judge_setting(settings: SearchSettings, given: GivenDesigner | None) -> None:
    """Raise SettingsError if a model is to judge and cannot."""
    if settings.fitness != "judged":
        return
    if given is not None or settings.model == ("offline",):
        raise SettingsError(
            "--fitness judged needs a language model that sees, and none is asked here",
            "search with --model <provider>/<name>, and --judge <provider>/<name> if another one"
            " is to judge; without a model your own choices rank: --fitness chosen",
        )
    if settings.schedule == "steady":
        raise SettingsError(
            "--fitness judged goes with generations, found --schedule 'steady'",
            "leave --schedule out: the model judges what a generation has trained",
        )


def check_fitness_setting(
    settings: SearchSettings, given: GivenDesigner | None, confirm: Confirm | None
) -> None:
    """Raise SettingsError if a fitness is to be written and cannot be."""
    if settings.fitness != "written":
        return
    if given is not None or settings.model == ("offline",):
        raise SettingsError(
            "--fitness written needs a language model that writes it, and none is asked here",
            "name one with --model <provider>/<name>, or leave --fitness out: the task's own metric"
            " counts then",
        )
    if settings.sentence is None or not any(character.isalnum() for character in settings.sentence):
        raise SettingsError(
            f"--fitness written needs the task in plain words, found {settings.sentence!r}",
            "such as: " + command('search "make the ant wave one leg" --env ant --fitness written'),
        )
    if confirm is None:
        raise SettingsError(
            "nobody is there to accept a written fitness", "give `start` a `confirm`"
        )


async def accepted_fitness(
    settings: SearchSettings,
    models: Models,
    dry_runner: DryRunner,
    runs: Path,
    confirm: Confirm,
    observer: Observer,
) -> AcceptedFitness:
    """Have a model write a fitness, and the user accept it. Replies are stored apart from any run:
    who declines and asks again pays nothing. Raises FitnessDeclinedError, the writer's errors."""
    assert settings.sentence is not None  # see check_fitness_setting
    model, drafts = models.designers[0], runs / DRAFTS_FOLDER
    async with before_a_run(settings, models, runs, observer) as (gateway, keys):
        writer = FitnessWriter(
            models.configured(model, gateway),
            Critic(dry_runner.description, dry_runner).judge,
            sample=settings.seed,
        )
        observer(Notice(text=f"{model.name} writes a fitness for {settings.sentence!r}"))
        fitness, verdict = await writer.write(dry_runner.description, settings.sentence)
    kept = drafts / hashlib.sha256(fitness.model_dump_json().encode()).hexdigest()[:12]
    write_fitness(kept, fitness)
    began = time.monotonic()
    accepted = await confirm(fitness, verdict, kept)
    if accepted is None:
        raise FitnessDeclinedError(
            f"the fitness was not taken, and nothing was started; it is kept in {str(kept)!r}. "
            "Say more in the sentence, or have another one written with --seed"
        )
    return AcceptedFitness(fitness, accepted, tuple(keys), time.monotonic() - began)


async def no_fitness(
    settings: SearchSettings, models: Models | None, sentence: str, runs: Path, observer: Observer
) -> AcceptedFitness:
    """The fitness of a search without a metric: nothing. Raises the errors of `check_sight`."""
    keys: tuple[str, ...] = ()
    accepted: Acceptance = "as --fitness chosen asks"
    author, doc = "a person's choices", "what a person chooses among clips of the trained policies"
    if settings.fitness == "judged":
        assert models is not None  # see check_judge_setting
        if models.judge is None:
            raise SettingsError(
                f"in the recording {models.replayed!r} no model judges",
                "replay a search that was recorded with --fitness judged",
            )
        async with before_a_run(settings, models, runs, observer) as (gateway, asked):
            await check_sight(models.configured(models.judge, gateway))
            keys = tuple(asked)
        author, accepted = judge_of(settings), "as --fitness judged asks"
        doc = (
            "how well pictures of the trained policy show what the sentence asks for, as a model"
            " says that compares two policies at a time"
        )
    fitness = WrittenFitness(
        sentence=sentence,
        source=_NOTHING,
        doc=f"{doc}; no number is calculated",
        reduction="last",
        author=author,
    )
    return AcceptedFitness(fitness, accepted, keys, 0.0)


@asynccontextmanager
async def before_a_run(
    settings: SearchSettings, models: Models, runs: Path, observer: Observer
) -> AsyncIterator[tuple[Gateway, Mapping[str, None]]]:
    """A gateway for requests before a run, stored beside the runs, and their keys so far."""
    drafts = runs / DRAFTS_FOLDER
    with storage_errors(drafts):
        drafts.mkdir(parents=True, exist_ok=True)
    archive, budget = _NotedArchive(drafts), Budget(models.limits, models.prices)
    gateway = Gateway(archive, budget, settings.concurrency, observer)
    try:
        yield gateway, archive.keys
    except LanguageModelError as error:  # no run exists yet
        begun = "no run was begun, and the same command asks again for what is missing"
        error.hint = "; ".join(filter(None, (error.hint, begun)))
        raise
    finally:
        if gateway.under_way:  # after Ctrl-C
            observer(
                Notice(text="waiting for the reply that is paid for; Ctrl-C again leaves without")
            )
        with suppress(asyncio.CancelledError):
            await gateway.finish()
        archive.close()


def write_fitness(folder: Path, fitness: WrittenFitness, accepted: str | None = None) -> None:
    """Write a fitness in readable form: its source, and everything else as JSON."""
    write_text(folder / FITNESS_SOURCE, fitness.source)
    words = fitness.model_dump(mode="json", exclude={"source"})
    write_text(
        folder / FITNESS_WORDS,
        dump_json(words if accepted is None else {**words, "accepted": accepted}),
    )


def keep_in_run(run: Run) -> None:
    """Store a written fitness and its requests in the run, unless they are there."""
    fitness, archive = run.written_fitness, run.archive
    if fitness is None:
        return
    if not (run.folder / FITNESS_WORDS).is_file():
        write_fitness(run.folder, fitness, archive.state.began.fitness_accepted or None)
    keys = archive.state.began.fitness_messages
    missing = [key for key in keys if archive.find(key) is None]
    drafts = run.folder.parent / DRAFTS_FOLDER
    if not missing or not (drafts / FILE_NAME).is_file():
        return
    with closing(Archive(drafts)) as stored:
        for key in missing:
            if (message := stored.find(key)) is not None:
                archive.put(key, message)


class _NotedArchive(Archive):
    """An archive that notes the keys of all messages found or stored, in order."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.keys: dict[str, None] = {}

    def find(self, key: str) -> Message | None:
        """See `Archive`."""
        if (message := super().find(key)) is not None:
            self.keys[key] = None
        return message

    def put(self, key: str, message: Message) -> None:
        """See `Archive`."""
        super().put(key, message)
        self.keys[key] = None
