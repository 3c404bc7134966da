"""Cost of a run, in words."""

from __future__ import annotations

from eureka_agent import wording
from eureka_agent.llm.replay import REPLAY
from eureka_agent.report.ledger import format_money
from eureka_agent.report.run_report import RunReport


def cost_sentence(report: RunReport) -> str:
    """Sentence on trainings, env steps, time and requests to models."""
    cost = report.cost
    again = sum(len(attempt.repeats) for attempt in report.attempts)
    parts = [
        f"{cost.search_trainings - again} of"
        f" {'your reward' if report.of_own_reward else 'proposals'}"
    ]
    if again:
        parts.append(f"{again} to train the best of them again")
    if cost.final_trainings:
        parts.append(f"{cost.final_trainings} final")
    if cost.baseline_trainings:
        parts.append(f"{cost.baseline_trainings} of baselines")
    return (
        f"It took {wording.plural(cost.trainings, 'training')} ({', '.join(parts)}),"
        f" {wording.count(cost.env_steps)} env steps and {wording.duration(report.seconds)} of wall"
        f" time; {model_cost(report)}."
    )


def remarks(report: RunReport) -> list[str]:
    """Sentences on the run's budget, and on what went otherwise than was asked for."""
    return [f"{text[:1].upper()}{text[1:]}." for text in (*report.budget, *report.remarks)]


def model_cost(report: RunReport) -> str:
    """Requests, tokens and money; of a replay, which asks nobody, the replies."""
    cost = report.cost
    if cost.requests == 0:
        return "no LLM was asked"
    if report.settings.model[0].startswith(REPLAY):
        return (
            f"{wording.plural(cost.requests, 'recorded reply was', 'recorded replies were')} played"
            " back"
        )
    money = (
        "at a cost that is not known" if cost.money is None else f"for {format_money(cost.money)}"
    )
    tokens = f"{wording.count(cost.prompt_tokens + cost.completion_tokens)} tokens"
    if cost.uncounted:
        tokens += f", {wording.plural(cost.uncounted, 'reply', 'replies')} without a count"
    asked = (
        ", ".join(dict.fromkeys(line.model for line in report.ledger.by_role)) or report.designer
    )
    return (
        f"{asked} {'were' if ', ' in asked else 'was'} asked"
        f" {wording.plural(cost.requests, 'time')} ({tokens}) {money}"
    )
