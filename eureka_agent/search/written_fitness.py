"""A written fitness for a sentence without a metric: it is written, shown, accepted and stored in
the run."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from eureka_agent.archive.database import Archive
from eureka_agent.archive.files import FILE_NAME, dump_json, storage_errors, write_text
from eureka_agent.archive.run_folder import Run
from eureka_agent.critic.critic import Critic
from eureka_agent.designer.fitness_writer import FitnessWriter
from eureka_agent.designer.interface import GivenDesigner
from eureka_agent.errors import EurekaError, SettingsError
from eureka_agent.fleet.dry_runner import DryRunner
from eureka_agent.invocation import command
from eureka_agent.journal.entries import Notice, Observer
from eureka_agent.llm.budget import Budget
from eureka_agent.llm.gateway import Gateway, request_observer
from eureka_agent.llm.interface import LanguageModelError, MessageStore
from eureka_agent.records import Message, Verdict, WrittenFitness
from eureka_agent.search.models import Models
from eureka_agent.settings import SearchSettings

DRAFTS_FOLDER = ".fitness"
"""Folder beside the runs with requests and replies from before a run, and each fitness that was
shown."""
FITNESS_SOURCE, FITNESS_WORDS = "fitness.py", "fitness.json"

Acceptance = Literal[
    "accepted by a person at the start",
    "accepted by --yes at the start",
    "as --fitness chosen asks",
    "as --fitness judged asks",
]
Confirm = Callable[[WrittenFitness, Verdict, Path], Awaitable[Acceptance | None]]
"""Shows a fitness, the critic's verdict and the folder with it. Returns how it was accepted; None
if it was declined."""


class FitnessDeclinedError(EurekaError):
    """A fitness that the user declined. Nothing was started."""

    exit_status = 1


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
    """Have the first model write a fitness for the sentence, and the user accept it. `runs` is the
    folder of all runs.

    Replies are stored apart from any run, so a user who declines and asks again pays nothing.
    Raises FitnessDeclinedError, and the errors of `FitnessWriter.write`.
    """
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


@asynccontextmanager
async def before_a_run(
    settings: SearchSettings, models: Models, runs: Path, observer: Observer
) -> AsyncIterator[tuple[Gateway, Mapping[str, None]]]:
    """A gateway for requests before a run, whose replies are stored beside the runs, and the keys
    of these requests so far."""
    drafts = runs / DRAFTS_FOLDER
    with storage_errors(drafts):
        drafts.mkdir(parents=True, exist_ok=True)
    archive = Archive(drafts)
    store = _NotedStore(archive)
    budget = Budget(models.limits, models.prices)
    told = request_observer(observer)
    gateway = Gateway(store, budget, settings.concurrency, told, guards=models.guards)
    try:
        yield gateway, store.keys
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
    """Store a written fitness in the run's folder and its requests in the run's archive, unless
    they are there."""
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
    stored = Archive(drafts)
    try:
        for key in missing:
            message = stored.find(key)
            if message is not None:
                archive.put(key, message)
    finally:
        stored.close()


class _NotedStore:
    """A message store that records the keys in use."""

    def __init__(self, store: MessageStore) -> None:
        self._store = store
        self.keys: dict[str, None] = {}
        """Keys of all messages found or stored, in order."""

    def find(self, key: str) -> Message | None:
        """See `MessageStore`."""
        message = self._store.find(key)
        if message is not None:
            self.keys[key] = None
        return message

    def put(self, key: str, message: Message) -> None:
        """See `MessageStore`."""
        self._store.put(key, message)
        self.keys[key] = None
