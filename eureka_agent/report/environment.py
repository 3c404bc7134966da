"""An environment and its task, as `eureka envs NAME` shows them."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from eureka_agent.records import TaskDescription, VariableSpec


def render_environment(description: TaskDescription, tasks: Sequence[str]) -> RenderableType:
    """The environment in words, its task, and the table of variables that a reward may read."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column in ("variable", "shape", "unit", "frame", "range"):
        table.add_column(column, no_wrap=column != "unit")
    table.add_column("what it is", ratio=1)
    for variable in description.variables:
        table.add_row(*(escape(cell) for cell in _cells(variable)))
    seconds = description.max_episode_length * description.control_dt
    lines = [
        f"[bold]{escape(description.environment)}[/bold]  {escape(description.doc)}",
        "",
        f"[bold]task[/bold] {escape(description.task)}: {escape(description.sentence)}",
        f"[bold]fitness[/bold] {escape(description.fitness_doc)}",
        f"[bold]other tasks[/bold] {escape(', '.join(name for name in tasks if name != description.task) or 'none')}",
        f"[bold]episode[/bold] {description.max_episode_length} steps of {description.control_dt:g} s = {seconds:g} s;"
        f" ends early by: {escape(', '.join(description.termination_causes) or 'nothing')}",
        f"[bold]policy[/bold] {description.num_observations} observations, {description.num_actions} actions;"
        f" one training: {description.env_steps:,} environment steps on {description.num_envs} environments",
        "",
    ]
    note = Text(
        "Each is an argument of compute_reward, with the batch in front; previous_<variable> is its value one step before.",
        style="dim",
    )
    return Group(*lines, table, "", note)


def _cells(variable: VariableSpec) -> tuple[str, ...]:
    shape = "(" + ", ".join(["batch", *map(str, variable.shape)]) + ("," if not variable.shape else "") + ")"
    span = "" if variable.range is None else f"{variable.range[0]:g} … {variable.range[1]:g}"
    doc = variable.doc + (" (private: the fitness alone reads it)" if variable.private else "")
    return variable.name, shape, variable.unit, variable.frame, span, doc
