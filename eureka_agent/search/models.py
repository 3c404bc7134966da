"""The language models of a run, from its settings, live or replayed."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from eureka_agent.archive.run_folder import Run, find_run, open_run
from eureka_agent.errors import RunFolderError, SettingsError
from eureka_agent.invocation import command
from eureka_agent.llm import replay
from eureka_agent.llm.access import ModelAccess
from eureka_agent.llm.batch_provider import batch_provider
from eureka_agent.llm.breaker import Breakers
from eureka_agent.llm.budget import ModelLimits
from eureka_agent.llm.clients import language_model
from eureka_agent.llm.gateway import ConfiguredModel, Gateway
from eureka_agent.llm.interface import LanguageModel, RetryObserver
from eureka_agent.llm.prices import Price, find_prices
from eureka_agent.resources import resource_folder
from eureka_agent.search.budget import outage_limit
from eureka_agent.settings import (
    SearchSettings,
    judge_of,
    parse_settings,
    schedule_of,
    strategy_name,
)
from eureka_agent.wording import flag_text

OFF, AUTO = "off", "auto"
RECORDINGS = "recorded"
"""Folder of the recordings in the package, beside the prompts."""
RECORDING_SUFFIX = ".jsonl"

NOTHING = Price(prompt=Decimal(0), completion=Decimal(0), origin="replayed")


@dataclass(frozen=True)
class Models:
    """The models of a run."""

    designers: tuple[LanguageModel, ...]
    """At least one."""
    reviewer: LanguageModel | None
    analyst: LanguageModel | None
    prices: Mapping[str, Price]
    """By model. Unknown prices are missing."""
    limits: ModelLimits
    temperature: float | None
    reply_tokens: int | None
    review_all: bool = True
    """True for a reviewer that the user named, which does not only read what the critic doubts."""
    replayed: str = ""
    """Name of the replayed recording; empty for live models."""
    recorded_settings: Mapping[str, Any] = field(default_factory=dict)
    """The recording's settings."""
    judge: LanguageModel | None = None
    """None where no model judges attempts."""
    tools: bool = True
    """True: designers may call tools."""

    @property
    def all(self) -> tuple[LanguageModel, ...]:
        """All models without duplicates."""
        asked = (
            *self.designers,
            *(each for each in (self.reviewer, self.analyst, self.judge) if each is not None),
        )
        return tuple({model.name: model for model in asked}.values())

    async def close(self) -> None:
        """Close the connections of all models."""
        for model in self.all:
            await model.close()

    def configured(self, model: LanguageModel, gateway: Gateway) -> ConfiguredModel:
        """A model with a gateway, the run's temperature and its bound on reply tokens."""
        return ConfiguredModel(model, gateway, self.temperature, self.reply_tokens)


def models_of(
    settings: SearchSettings, on_retry: RetryObserver, breakers: Breakers | None = None
) -> Models | None:
    """The models that the settings name; None for the offline designer. Raises SettingsError for a
    model that cannot be had, or not in batches, or a limit that cannot hold."""
    if settings.llm_batch and (
        settings.model[0] == "offline" or settings.model[0].startswith(replay.REPLAY)
    ):
        raise SettingsError(
            f"--llm-batch is asked for, but with --model {settings.model[0]} no provider is asked",
            "leave --llm-batch out, or name a model of openai/ or anthropic/",
        )
    outage_s = outage_limit(settings)
    if settings.model == ("offline",):
        for name, value in (("reviewer", settings.reviewer), ("analyst", settings.analyst)):
            if value not in (OFF, AUTO):
                raise SettingsError(
                    f"--{name} {value!r} is asked for, but the offline designer does not listen to"
                    " models",
                    "name a designer with --model <provider>/<name>",
                )
        return None
    if settings.model[0].startswith(replay.REPLAY):
        return _replayed(settings, on_retry)
    return _live(settings, on_retry, breakers or Breakers(), outage_s)


def _live(
    settings: SearchSettings, on_retry: RetryObserver, breakers: Breakers, outage_s: float
) -> Models:
    own_server = _provider(settings.model[0]) if settings.base_url else None
    known: dict[str, LanguageModel] = {}

    def model(name: str) -> LanguageModel:
        if name not in known:
            base_url = settings.base_url if _provider(name) == own_server else None
            access = ModelAccess(
                base_url=base_url,
                api=settings.api,
                timeout_s=settings.request_timeout,
                on_retry=on_retry,
                tools="written" if settings.designer_tools == "written" else "native",
                breaker=breakers.of(name, base_url) if outage_s else None,
                outage_s=outage_s,
            )
            known[name] = language_model(name, access)
        return known[name]

    def role(name: str) -> LanguageModel | None:
        return None if name == OFF else model(settings.model[0] if name == AUTO else name)

    designers = tuple(model(name) for name in settings.model)
    tools = _takes_tools(settings)
    reviewer, analyst = (
        role(settings.reviewer),
        role(_analyst_of(settings.analyst, settings, tools)),
    )
    judge = judge_of(settings)
    judging = model(judge) if judge else None
    if settings.llm_batch:
        for each in known.values():
            batch_provider(each)
    # the price table does not hold for names on the user's own server
    listed = find_prices((name for name in known if _provider(name) != own_server), settings.price)
    prices = {name: listed[name] for name in known if name in listed}
    for name in settings.price:
        if name.rpartition("=")[0] not in known:
            raise SettingsError(
                f"--price {name!r} is for a model that this search does not ask",
                f"it asks {', '.join(known)}",
            )
    unpriced = [name for name in known if name not in prices]
    if settings.max_cost is not None and unpriced:
        raise SettingsError(
            f"--max-cost cannot hold: the price of {' and of '.join(unpriced)} is not known",
            "limit the tokens with --max-tokens instead, or give the price: --price"
            f" {unpriced[0]}=<dollars for a million tokens of prompts>,<of replies>",
        )
    return Models(
        designers,
        reviewer,
        analyst,
        prices,
        ModelLimits(money=settings.max_cost, tokens=settings.max_tokens),
        settings.temperature,
        settings.reply_tokens,
        review_all=settings.reviewer != AUTO,
        judge=judging,
        tools=tools,
    )


def _replayed(settings: SearchSettings, tell: RetryObserver) -> Models:
    """Models that answer from a recording, with its settings, and cost nothing."""
    recording = find_recording(settings.model[0].removeprefix(replay.REPLAY))
    asked = parse_settings(
        SearchSettings, dict(recording.settings), f"the recording {recording.name!r}"
    )
    flags, judge = _flags_of(recording, settings), judge_of(asked)
    tools = _takes_tools(asked)

    def role(now: str, then: str) -> LanguageModel | None:
        if OFF in (now, then):
            return None
        return replay.ReplayModel(asked.model[0] if then == AUTO else then, recording, flags, tell)

    return Models(
        tuple(replay.ReplayModel(name, recording, flags, tell) for name in asked.model),
        role(settings.reviewer, asked.reviewer),
        role(settings.analyst, _analyst_of(asked.analyst, settings, tools)),
        dict.fromkeys((message.model for message in recording.messages.values()), NOTHING),
        ModelLimits(),
        asked.temperature,
        asked.reply_tokens,
        review_all=asked.reviewer != AUTO,
        replayed=recording.name,
        recorded_settings=recording.settings,
        judge=replay.ReplayModel(judge, recording, flags, tell) if judge else None,
        tools=tools,
    )


def _takes_tools(settings: SearchSettings) -> bool:
    """True where designers may call tools: each turn of a batch takes hours."""
    return settings.designer_tools != OFF and not settings.llm_batch


def _analyst_of(name: str, settings: SearchSettings, tools: bool) -> str:
    """The analyst's name: where designers can ask about episodes, none reads tables for them, but
    one may look at pictures."""
    return OFF if name == AUTO and tools and not settings.analyst_sees else name


def _flags_of(recording: replay.Recording, settings: SearchSettings) -> str:
    """Flags that give a search the recorded settings; fewer generations do not differ."""
    chosen = {"strategy": strategy_name(settings), "schedule": schedule_of(settings)}
    given = {**dict(settings), **chosen}
    differing = {
        name: value
        for name, value in recording.search.items()
        if (now := given[name]) is not None
        and now != value
        and not (name == "iterations" and now < value)
    }
    sentence = differing.pop("sentence", None)
    flags = [flag_text(name, value) for name, value in differing.items()]
    return " ".join(flags if sentence is None else [shlex.quote(sentence), *flags])


def find_recording(word: str) -> replay.Recording:
    """The recording named by a file, a run, or a name in the package. Raises RunFolderError."""
    path = Path(word)
    if path.is_file():
        return replay.read_recording(path)
    shipped = {
        each.stem: each
        for each in (resource_folder("prompts") / RECORDINGS).glob(f"*{RECORDING_SUFFIX}")
    }
    if word in shipped:
        return replay.read_recording(shipped[word])
    try:
        run = open_run(find_run(word), reading=True)
    except RunFolderError as error:
        raise RunFolderError(
            f"there is nothing to replay at {word!r}: {error.message}",
            f"name a run (`{command('runs')}` lists them), a messages{RECORDING_SUFFIX}, or one of"
            f" these: {', '.join(sorted(shipped))}",
        ) from None
    try:
        return recording_of(run)
    finally:
        run.archive.close()


def recording_of(run: Run) -> replay.Recording:
    """Recording of a run's replies. A run that replayed another has the other's settings."""
    settings: dict[str, Any] = run.archive.state.began.recorded_settings or {
        name: value
        for name, value in run.settings.model_dump(mode="json").items()
        if name in replay.SETTINGS
    }
    messages = run.archive.keyed_messages()
    if not messages:
        raise RunFolderError(
            f"the run {run.name!r} has no replies to play back: no model was asked",
            "name another run",
        )
    known = {name: getattr(run.settings, name) for name in replay.SEARCH_SETTINGS}
    search = {
        **known,
        "sentence": run.sentence,
        "strategy": strategy_name(run.settings),
        "schedule": schedule_of(run.settings),
    }
    return replay.Recording(
        run.name,
        messages,
        settings,
        {name: value for name, value in search.items() if value is not None},
    )


def _provider(model: str) -> str:
    return model.partition("/")[0]
