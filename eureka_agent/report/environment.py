"""An environment and its task for `eureka envs NAME`."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from eureka_agent.records import Measurements, TaskDescription, VariableSpec
from eureka_agent.report.console import facts_grid
from eureka_agent.value_ranges import column_ranges_text
from eureka_agent.wording import plural


def render_environment(description: TaskDescription, tasks: Sequence[str]) -> RenderableType:
    """Facts about the environment and its task, and the variables that a reward may read."""
    seconds = description.max_episode_length * description.control_dt
    good = description.success_causes
    ends = [
        f"{cause}{', a success' if cause in good else ''}{f' ({condition})' if condition else ''}"
        for cause, condition in description.endings.items()
    ]
    measured = description.measured
    sizes = "; ".join(measured.masses_and_sizes) if measured else ""
    facts = {
        "task": f"{description.task}: {description.sentence}",
        "fitness": description.fitness_doc,
        "other tasks": ", ".join(name for name in tasks if name != description.task) or "none",
        "episode": (
            f"{description.max_episode_length} steps of {description.control_dt:g} s = {seconds:g}"
            f" s; ends early by: {', '.join(ends) or 'nothing'}"
        ),
        "episode from": description.episode_source,
        "sizes": sizes,
        "policy": f"{description.num_observations} observations, {_actions(description)}",
        "one training": (
            f"{description.env_steps:,} environment steps on {description.num_envs} environments"
        ),
    }
    grid = facts_grid({name: text for name, text in facts.items() if text})
    table = Table.grid(padding=(0, 2, 0, 0), expand=True)
    table.add_column(no_wrap=True)
    table.add_column(ratio=1)
    for variable in description.variables:
        table.add_row(Text(variable.name, style="bold cyan"), _kind(variable, measured))
        private = " (private: the fitness alone reads it)" if variable.private else ""
        table.add_row("", Text(variable.doc + private, style="dim"))
    for constant in description.constants:
        unit = "" if constant.unit == "1" else f" {constant.unit}"
        value = f"constant   {constant.value:g}{unit}"
        table.add_row(Text(constant.name, style="bold cyan"), value)
        table.add_row("", Text(constant.doc, style="dim"))
    head = Text.assemble((description.environment, "bold"), "  ", description.doc)
    note = (
        "Each is an argument of compute_reward, the batch in front; previous_<variable> is its"
        " value one step before."
    )
    if description.constants:
        note += " A constant is a float."
    return Group(head, "", grid, "", Text(f"Variables. {note}"), "", table)


def _kind(variable: VariableSpec, measured: Measurements | None) -> str:
    sizes = ", ".join(["batch", *map(str, variable.shape)])
    shape = f"({sizes})" if variable.shape else "(batch,)"
    parts = [
        shape,
        variable.unit if variable.unit != "1" else "",
        variable.frame if variable.frame != "-" else "",
    ]
    if variable.range is not None:
        parts.append(f"{variable.range[0]:.5g} … {variable.range[1]:.5g}")
    if measured is not None and variable.name in measured.starts:
        parts.append(f"start {column_ranges_text(measured.starts[variable.name])}")
    return "   ".join(part for part in parts if part)


def _actions(description: TaskDescription) -> str:
    """`3 actions`, `1 action of 2 choices`, `2 actions of 3 and 2 choices`."""
    text = plural(description.num_actions, "action")
    choices = " and ".join(map(str, description.action_choices))
    return f"{text} of {choices} choices" if choices else text
