"""The estimate of a search for `--plan`: for people and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from decimal import Decimal
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from eureka_agent.estimates import Estimate, RoleEstimate, SearchPlan
from eureka_agent.report.console import facts_grid
from eureka_agent.wording import count, duration, plural

_CENT = Decimal("0.01")


def render_estimate(plan: SearchPlan) -> RenderableType:
    """Facts about a search that could be started, with what they rest on below."""
    estimate, settings, description = plan.estimate, plan.settings, plan.description
    facts = {
        "task": f"{description.environment}/{description.task}:"
        f" {settings.sentence or description.sentence}",
        "search": _size(plan),
        "trainings": f"about {estimate.trainings:,}: {_trainings(plan)}",
        "env steps": f"about {count(estimate.env_steps)},"
        f" {count(settings.steps_of_a_training)} a training",
        "wall time": time_text(estimate),
        "devices": plan.devices,
        "models": _models(estimate, plan.roles),
        "cost": money_text(estimate),
    }
    return Group(facts_grid(facts), "", *render_notes(plan.notes))


def render_notes(notes: Sequence[str]) -> list[RenderableType]:
    """The end of a plan: its notes, and that nothing was started."""
    sentences = [Text(f"{note[:1].upper()}{note[1:]}.", style="dim") for note in notes]
    return [*sentences, "Nothing was started."]


def time_text(estimate: Estimate) -> str:
    """`about 42 s`, or that it was not measured."""
    return "not measured" if estimate.seconds is None else f"about {duration(estimate.seconds)}"


def requests_text(estimate: Estimate) -> str:
    """`3 requests, 9.2k tokens of prompts and 1.5k of replies`, or that no model is asked."""
    if not estimate.requests:
        return "none is asked"
    return (
        f"{plural(estimate.requests, 'request')}, {count(estimate.prompt_tokens)} tokens of prompts"
        f" and {count(estimate.reply_tokens)} of replies"
    )


def money_text(estimate: Estimate) -> str:
    """`about $1.23`, `nothing`, or that the price is not known."""
    if not estimate.requests:
        return "nothing: no model is asked"
    if estimate.money is None:
        return "not known: not all prices are"
    if 0 < estimate.money < _CENT:
        return "less than $0.01"
    return f"about ${estimate.money.quantize(_CENT):,}"


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
        "roles": [{**asdict(each), "money": _decimal(each.money)} for each in plan.roles],
        "notes": list(plan.notes),
    }


def estimate_to_json(estimate: Estimate) -> dict[str, Any]:
    """An estimate; money is a decimal number in a string, None where unknown."""
    return {**asdict(estimate), "money": _decimal(estimate.money)}


def _decimal(money: Decimal | None) -> str | None:
    return None if money is None else f"{money.normalize():f}"


def _size(plan: SearchPlan) -> str:
    if not plan.settings.iterations:
        return "none: the human and the sparse reward alone"
    generations = plural(plan.settings.iterations, "generation")
    return f"{generations} of {plural(plan.counts.candidates, 'proposal')}"


def _trainings(plan: SearchPlan) -> str:
    """`16 of proposals, 8 to confirm the best, 15 final, 10 of baselines`."""
    generations, counts = plan.settings.iterations, plan.counts
    parts = {
        "of proposals": generations * counts.candidates,
        "to confirm the best": counts.confirmed * counts.confirmations,
        "final": counts.likely_finals,
        "of baselines": counts.baselines,
        "under distributions of parameters": counts.randomised,
    }
    return ", ".join(f"{number:,} {what}" for what, number in parts.items() if number)


def _models(estimate: Estimate, roles: Sequence[RoleEstimate]) -> str:
    lines = [requests_text(estimate)]
    lines += [
        f"{each.role}, {each.model}: {plural(each.requests, 'request')} of"
        f" {count(each.prompt_tokens / each.requests)} +"
        f" {count(each.reply_tokens / each.requests)} tokens"
        for each in roles
    ]
    return "\n".join(lines)
