"""The plan of a search, with its estimate, for `--plan`: as records, for people and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from eureka_agent.records import TaskDescription
from eureka_agent.report.terminal import facts_grid
from eureka_agent.settings import SearchSettings
from eureka_agent.training_counts import TrainingCounts
from eureka_agent.wording import count, duration, plural

_CENT = Decimal("0.01")


@dataclass(frozen=True)
class SearchEstimate:
    """The size of a search before it starts, as much as is likely."""

    trainings: int
    env_steps: int
    seconds: float | None
    """Wall time on this machine; None where it was not measured."""
    requests: int
    prompt_tokens: int
    reply_tokens: int
    money: Decimal | None
    """US dollars; None where a price is not known."""


@dataclass(frozen=True)
class RoleEstimate:
    """Requests of one role to one model, with the tokens and US dollars of all of them."""

    role: str
    model: str
    requests: int
    prompt_tokens: int
    reply_tokens: int
    money: Decimal | None
    """None for an unknown price."""


@dataclass(frozen=True)
class SearchPlan:
    """A search that could be started, with its estimate."""

    estimate: SearchEstimate
    settings: SearchSettings
    """Settings of the run, with those that a budget chose."""
    description: TaskDescription
    counts: TrainingCounts
    """Candidates are those of one generation."""
    roles: Sequence[RoleEstimate]
    devices: str
    """Sentence on devices and workers."""
    busy_seconds: float | None
    """Part of the wall time in which this machine works, without waits for models alone."""
    notes: Sequence[str]
    """Sentences on budget and limits, and on what is assumed."""


def asked_in_all(parts: Sequence[SearchEstimate | RoleEstimate]) -> dict[str, Any]:
    """The sums of requests, tokens and money by their names."""
    money = [each.money for each in parts]
    return {
        "requests": sum(each.requests for each in parts),
        "prompt_tokens": sum(each.prompt_tokens for each in parts),
        "reply_tokens": sum(each.reply_tokens for each in parts),
        "money": None if None in money else sum(filter(None, money), Decimal(0)),
    }


def render_plan(plan: SearchPlan) -> RenderableType:
    """Facts about a search that could be started, with what they rest on below."""
    estimate, settings, description = plan.estimate, plan.settings, plan.description
    generations, made = settings.iterations, plan.counts
    parts = {
        "of proposals": generations * made.candidates,
        "to confirm the best": made.confirmed * made.confirmations,
        "final": made.likely_finals,
        "of baselines": made.baselines,
        "under distributions of parameters": made.randomised,
    }
    trainings = ", ".join(f"{number:,} {what}" for what, number in parts.items() if number)
    models = [
        f"{each.role}, {each.model}: {plural(each.requests, 'request')} of"
        f" {count(each.prompt_tokens / each.requests)} +"
        f" {count(each.reply_tokens / each.requests)} tokens"
        for each in plan.roles
    ]
    size = f"{plural(generations, 'generation')} of {plural(made.candidates, 'proposal')}"
    facts = {
        "task": f"{description.environment}/{description.task}:"
        f" {settings.sentence or description.sentence}",
        "search": size if generations else "none: the human and the sparse reward alone",
        **facts_of(estimate),
        "devices": plan.devices,
    }
    facts["trainings"] += f": {trainings}"
    facts["env steps"] += f", {count(settings.steps_of_a_training)} a training"
    facts["models"] = "\n".join([facts.pop("models"), *models])
    facts["cost"] = facts.pop("cost")
    return Group(facts_grid(facts), "", *render_notes(plan.notes))


def render_notes(notes: Sequence[str]) -> list[RenderableType]:
    """The end of a plan: its notes, and that nothing was started."""
    sentences = [Text(f"{note[:1].upper()}{note[1:]}.", style="dim") for note in notes]
    return [*sentences, "Nothing was started."]


def facts_of(estimate: SearchEstimate) -> dict[str, str]:
    """The numbers of an estimate in words."""
    seconds, money = estimate.seconds, estimate.money
    models = (
        f"{plural(estimate.requests, 'request')}, {count(estimate.prompt_tokens)} tokens of prompts"
        f" and {count(estimate.reply_tokens)} of replies"
    )
    if not estimate.requests:
        cost = "nothing: no model is asked"
    elif money is None:
        cost = "not known: not all prices are"
    else:
        cost = "less than $0.01" if 0 < money < _CENT else f"about ${money.quantize(_CENT):,}"
    return {
        "trainings": f"about {estimate.trainings:,}",
        "env steps": f"about {count(estimate.env_steps)}",
        "wall time": "not measured" if seconds is None else f"about {duration(seconds)}",
        "models": models if estimate.requests else "none is asked",
        "cost": cost,
    }


def plan_to_json(plan: SearchPlan) -> dict[str, Any]:
    """A plan in plain JSON types."""
    return {
        "environment": plan.description.environment,
        "task": plan.description.task,
        "sentence": plan.settings.sentence or plan.description.sentence,
        "settings": plan.settings.model_dump(mode="json"),
        "devices": plan.devices,
        **estimate_to_json(plan.estimate),
        "per_generation": {
            "candidates": plan.counts.candidates,
            "confirmations": plan.counts.confirmations,
        },
        "finals": plan.counts.likely_finals,
        "baselines": plan.counts.baselines,
        "randomised": plan.counts.randomised,
        "roles": [estimate_to_json(each) for each in plan.roles],
        "notes": list(plan.notes),
    }


def estimate_to_json(estimate: SearchEstimate | RoleEstimate) -> dict[str, Any]:
    """An estimate; money is a decimal number in a string, None where unknown."""
    money = None if estimate.money is None else f"{estimate.money.normalize():f}"
    return {**asdict(estimate), "money": money}
