"""The list of `eureka envs`, with the figures of each task's difficulty card."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from eureka_agent.cards import Card
from eureka_agent.invocation import command
from eureka_agent.report.card import OUTDATED, card_cells
from eureka_agent.report.console import facts_grid


def render_environments(
    sentences: Mapping[str, Mapping[str, str]],
    cards: Mapping[str, Mapping[str, Card | None]],
    outdated: Mapping[str, Collection[str]],
) -> RenderableType:
    """A line for each task, and what the columns mean. `sentences`: of each task by environment and
    name; `outdated`: tasks whose files have changed since their card was measured."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 1, 0, 0))
    for heading in ("task", "human", "sparse", "better", "steps"):
        table.add_column(heading, no_wrap=True)
    table.add_column("sentence")
    for environment, tasks in sentences.items():
        table.add_row(Text(environment, style="bold cyan"))
        for name, sentence in tasks.items():
            card = cards[environment][name]
            cells = card_cells(card, outdated=name in outdated[environment])
            # the sentence alone gives way where the terminal is narrow
            table.add_row(f"  {name}", *cells, Text(sentence, no_wrap=True, overflow="ellipsis"))
    legend = {
        "human, sparse": f"mean fitness that these rewards train to; {command('envs NAME')} has"
        " the units and the deviations",
        "better": "which of the two, beyond the noise of their seeds; same: neither; open: neither,"
        " and both fail to learn it",
        "steps": "env steps until the human reward has learned; never: not within the budget",
        "no figures": f"no card yet: {command('envs --measure NAME')} makes one",
        OUTDATED: "measured before the task's files changed",
        "one of them": f"{command('envs NAME')}: its rules, actions, variables and cards",
        "your own": f"--env path/to/folder; {command('envs --new FOLDER')} begins one",
        "Gymnasium's": "--env gymnasium:Hopper-v5",
    }
    if not any(outdated.values()):
        del legend[OUTDATED]
    return Group(table, "", facts_grid(legend))
