"""Searches without a metric: a person's choices, or a model that sees, rank what they train."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eureka_agent.designer.interface import GivenDesigner
from eureka_agent.errors import SettingsError
from eureka_agent.feedback.judge import check_sight
from eureka_agent.feedback_records import Judge
from eureka_agent.journal.entries import Observer
from eureka_agent.records import WrittenFitness
from eureka_agent.search.models import Models
from eureka_agent.search.written_fitness import Acceptance, AcceptedFitness, before_a_run
from eureka_agent.settings import SearchSettings, judge_of

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


async def no_fitness(
    settings: SearchSettings,
    models: Models | None,
    sentence: str,
    runs: Path,
    observer: Observer,
) -> AcceptedFitness:
    """The fitness of a search without a metric: nothing, for all. A model that is to judge is
    asked once if it sees; raises the errors of `check_sight`."""
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
