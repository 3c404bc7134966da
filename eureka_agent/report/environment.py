"""An environment and its task for `eureka envs NAME`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from eureka_agent.invocation import command
from eureka_agent.records import ChannelSpec, Measurements, TaskDescription, VariableSpec
from eureka_agent.report.console import facts_grid
from eureka_agent.value_ranges import column_ranges_text
from eureka_agent.wording import plural

_ORDERS = {"wxyz": "w, x, y, z: the real part first", "xyzw": "x, y, z, w: the real part last"}
_IS_ORIENTATION = re.compile("quaternion|orientation|rotation", re.IGNORECASE)
_LINE_BREAK = re.compile(r"(?<!\n)\n(?![\n\s*•-])")
"""Line break within a paragraph, and not before an entry of a list."""


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
    others = ", ".join(name for name in tasks if name != description.task)
    facts = {
        "task": f"{description.task}: {description.sentence}",
        "fitness": description.fitness_doc,
        "other tasks": f"{others} (--task NAME)" if others else "none",
        "episode": (
            f"{description.max_episode_length} steps of {description.control_dt:g} s = {seconds:g}"
            f" s; ends early by: {', '.join(ends) or 'nothing'}"
        ),
        "episode from": description.episode_source,
        "sizes": sizes,
        "policy": f"{description.num_observations} observations, {_actions(description)}",
        "quaternions": _ORDERS[description.quaternion_order] if _turns(description) else "",
        "one training": (
            f"{description.env_steps:,} environment steps on {description.num_envs} environments"
        ),
    }
    grid = facts_grid({name: text for name, text in facts.items() if text})
    rows = []
    for variable in description.variables:
        private = " (private: the fitness alone reads it)" if variable.private else ""
        rows.append((variable.name, _kind(variable, measured), variable.doc + private))
    for constant in description.constants:
        unit = "" if constant.unit == "1" else f" {constant.unit}"
        rows.append((constant.name, f"constant   {constant.value:g}{unit}", constant.doc))
    head = Text.assemble((description.environment, "bold"), "  ", description.doc)
    note = (
        "Each is an argument of compute_reward, the batch in front; previous_<variable> is its"
        " value one step before."
    )
    if description.constants:
        note += " A constant is a float."
    parts: list[RenderableType] = [head, ""]
    if description.details:
        parts += [Text(_LINE_BREAK.sub(" ", description.details)), ""]
    parts += [grid, ""]
    if description.action_channels and (
        description.num_actions > 1 or not description.action_choices
    ):  # the only choice is in the variable `actions`
        how = (
            "The policy gives the index of a choice"
            if description.action_choices
            else "The policy gives -1 to 1 for each number, which stands for the range"
        )
        channels = _channels(description.action_channels)
        parts += [Text(f"Actions. {how}."), "", _glossary(channels), ""]
    parts += [Text(f"Variables. {note}"), "", _glossary(rows)]
    if description.parameters:
        how = f"see `{command('evaluate --help')}`"
        text = Text(
            f"Parameters. They may differ between episodes, within these safe ranges: {how}."
        )
        parts += ["", text, "", _glossary(_parameters(description))]
    return Group(*parts)


def _glossary(rows: Iterable[tuple[str, str, str]]) -> Table:
    """Names with their kind, and below it their meaning."""
    table = Table.grid(padding=(0, 2, 0, 0), expand=True)
    table.add_column(no_wrap=True)
    table.add_column(ratio=1)
    for name, kind, doc in rows:
        table.add_row(Text(name, style="bold cyan"), kind)
        if doc:
            table.add_row("", Text(doc, style="dim"))
    return table


def _parameters(description: TaskDescription) -> Iterable[tuple[str, str, str]]:
    for parameter in description.parameters:
        unit = "" if parameter.unit == "1" else f" {parameter.unit}"
        values = (
            f"{parameter.low:.5g} … {parameter.high:.5g}{unit}   default {parameter.default:.5g}"
        )
        yield parameter.name, values, parameter.doc


def _channels(channels: Iterable[ChannelSpec]) -> Iterable[tuple[str, str, str]]:
    """Rows of an action's channels; `[0:3]` are their numbers in `actions`."""
    first = 0
    for channel in channels:
        after = first + max(1, len(channel.entries))
        numbers = f"[{first}]" if after == first + 1 else f"[{first}:{after}]"
        parts = [
            f"{numbers} {', '.join(channel.entries)}".strip(),
            channel.unit if channel.unit != "1" else "",
            channel.frame if channel.frame != "-" else "",
            f"{channel.range[0]:.5g} … {channel.range[1]:.5g}" if channel.range else "",
        ]
        yield channel.name, "   ".join(filter(None, parts)), channel.doc
        first = after


def _turns(description: TaskDescription) -> bool:
    """True where a variable is a quaternion by its shape and words."""
    return any(
        variable.shape[-1:] == (4,) and _IS_ORIENTATION.search(f"{variable.name} {variable.doc}")
        for variable in description.variables
    )


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
