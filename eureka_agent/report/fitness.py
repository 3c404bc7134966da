"""A written fitness as a person reads it before it is taken."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from eureka_agent import wording
from eureka_agent.records import Verdict, WrittenFitness
from eureka_agent.report.reasoning import reasoning_panel
from eureka_agent.report.tables import render_findings

REDUCTIONS = {
    "sum": "sum over the steps of an episode",
    "mean": "mean over the steps of an episode",
    "last": "last step of an episode",
    "max": "best step of an episode",
}


def render_fitness(fitness: WrittenFitness, verdict: Verdict) -> RenderableType:
    """Panels: what it measures, its source and reasoning, and what the critic remarks."""
    facts = Table.grid(padding=(0, 2, 0, 0))
    facts.add_column(style="bold", no_wrap=True)
    facts.add_column()
    for name, text in fitness_facts(fitness).items():
        facts.add_row(name, Text(text))
    syntax = Syntax(
        fitness.source.rstrip(),
        "python",
        theme="ansi_dark",
        background_color="default",
        word_wrap=True,
    )
    title = Text(f"fitness written by {fitness.author}")  # as a string it would be read as markup
    parts: list[RenderableType] = [
        Panel(Group(facts, Text(), syntax), title=title, title_align="left")
    ]
    if fitness.reasoning.strip():
        parts.append(reasoning_panel(fitness.reasoning))
    if verdict.findings:
        remarks = "what the critic remarks (it calls it a reward)"
        parts.append(
            Panel(
                render_findings(verdict), title=remarks, title_align="left", border_style="yellow"
            )
        )
    return Group(*parts)


def fitness_facts(fitness: WrittenFitness) -> dict[str, str]:
    """Facts that it states of itself, by name."""
    unit = "" if fitness.unit == "1" else f" {fitness.unit}"
    solved = (
        "not said"
        if fitness.success_fitness is None
        else f"from {wording.number(fitness.success_fitness)}{unit} on"
    )
    return {
        "task": fitness.sentence,
        "measures": fitness.doc,
        "unit": "none" if fitness.unit == "1" else fitness.unit,
        "reduction": REDUCTIONS[fitness.reduction],
        "solved": solved,
    }
