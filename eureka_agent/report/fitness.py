"""A written fitness as a person reads it before accepting it."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from eureka_agent import wording
from eureka_agent.records import Verdict, WrittenFitness
from eureka_agent.report.attempt_page import render_findings
from eureka_agent.report.console import PythonSource, facts_grid, panel
from eureka_agent.report.reasoning import reasoning_panel

REDUCTIONS = {
    "sum": "sum over the steps of an episode",
    "mean": "mean over the steps of an episode",
    "last": "last step of an episode",
    "max": "best step of an episode",
}


def render_fitness(fitness: WrittenFitness, verdict: Verdict) -> RenderableType:
    """Panels: facts and source, reasoning, and the critic's findings."""
    facts = facts_grid({name: Text(text) for name, text in fitness_facts(fitness).items()})
    body = Group(facts, Text(), PythonSource(fitness.source.rstrip()))
    parts = [panel(body, f"fitness written by {fitness.author}", "none")]
    if fitness.reasoning.strip():
        parts.append(reasoning_panel(fitness.reasoning))
    if verdict.findings:
        title = "what the critic remarks (it calls it a reward)"
        parts.append(panel(render_findings(verdict), title, "yellow"))
    return Group(*parts)


def fitness_facts(fitness: WrittenFitness) -> dict[str, str]:
    """Facts about a written fitness, by name."""
    unit = "" if fitness.unit == "1" else f" {fitness.unit}"
    solved = "not said"
    if fitness.success_fitness is not None:
        solved = f"from {wording.number(fitness.success_fitness)}{unit} on"
    return {
        "task": fitness.sentence,
        "measures": fitness.doc,
        "unit": unit.strip() or "none",
        "reduction": REDUCTIONS[fitness.reduction],
        "solved": solved,
    }
