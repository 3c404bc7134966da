"""Cost of a run, in words."""

from __future__ import annotations

from eureka_agent import wording
from eureka_agent.llm.replay import REPLAY
from eureka_agent.report.run_report import RunReport


def cost_sentence(report: RunReport) -> str:
    """Sentence on trainings, env steps, time and requests to models."""
    cost = report.cost
    again = sum(len(attempt.repeats) for attempt in report.attempts)
    what = "your reward" if report.of_own_reward else "proposals"
    parts = [f"{cost.search_trainings - again} of {what}"]
    if again:
        parts.append(f"{again} to train the best of them again")
    if cost.final_trainings:
        parts.append(f"{cost.final_trainings} final")
    if cost.baseline_trainings:
        parts.append(f"{cost.baseline_trainings} of baselines")
    if cost.randomised_trainings:
        parts.append(f"{cost.randomised_trainings} under distributions of parameters")
    return (
        f"It took {wording.plural(cost.trainings, 'training')} ({', '.join(parts)}),"
        f" {wording.count(cost.env_steps)} env steps and {wording.duration(report.seconds)} of wall"
        f" time; {model_cost(report)}."
    )


def remarks(report: RunReport) -> list[str]:
    """Sentences on the run's budget and on deviations from the plan."""
    return [f"{text[:1].upper()}{text[1:]}." for text in (*report.budget, *report.remarks)]


def model_cost(report: RunReport) -> str:
    """Requests, tokens and money; the replies of a replay."""
    cost = report.cost
    if cost.requests == 0:
        return "no LLM was asked"
    if report.settings.model[0].startswith(REPLAY):
        replies = wording.plural(cost.requests, "recorded reply was", "recorded replies were")
        return f"{replies} played back"
    money = "at a cost that is not known"
    if cost.money is not None:
        money = f"for {wording.money(cost.money)}"
    tokens = f"{wording.count(cost.prompt_tokens + cost.completion_tokens)} tokens"
    if cost.uncounted:
        tokens += f", {wording.plural(cost.uncounted, 'reply', 'replies')} without a count"
    models = ", ".join(dict.fromkeys(line.model for line in report.ledger.by_role))
    asked = models or report.designer
    times = wording.plural(cost.requests, "time")
    return f"{asked} {'were' if ', ' in asked else 'was'} asked {times} ({tokens}) {money}"
