"""The texts in `prompts/` with their values filled in, for every role that asks a model."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from eureka_agent import markup
from eureka_agent.llm.interface import ChatMessage
from eureka_agent.records import Measurements, TaskDescription, VariableSpec
from eureka_agent.resources import resource_folder
from eureka_agent.settings import SearchSettings, parse_settings
from eureka_agent.text import clipped, one_line
from eureka_agent.value_ranges import column_ranges_text, mean_text, short_number
from eureka_agent.wording import significant

if TYPE_CHECKING:
    import jinja2

_UNKNOWN = ("", "-", "?")
"""Units and frames that say nothing."""


def system_message(
    template: str,
    description: TaskDescription,
    sentence: str,
    settings: SearchSettings | None = None,
) -> ChatMessage:
    """What a role is told in every request of a run: its instructions, then environment and task.

    The text is the same in all of them, so that a provider can keep it in its cache.
    """
    return ChatMessage(
        "system", f"{render(template)}\n{task_text(description, sentence, settings)}"
    )


def task_text(
    description: TaskDescription, sentence: str, settings: SearchSettings | None = None
) -> str:
    """Environment, task, fitness and training in words; never the environment's source, a private
    variable, or the fitness's code.

    `settings`: those of the run, of which none is told that may change before it is resumed; None:
    the task's own.
    """
    return render(
        "task.md",
        sentence=sentence,
        description=description,
        variables=description.public_variables(),
        settings=settings or _own_settings(description),
    )


def _own_settings(description: TaskDescription) -> SearchSettings:
    own = {
        "env_steps": description.env_steps,
        "num_envs": description.num_envs,
        **description.training_overrides,
    }
    return parse_settings(SearchSettings, own, "the task's training budget")


def render(template: str, **values: Any) -> str:
    """A template of `prompts/` with its values filled in; a value that it misses is an error."""
    return _templates().get_template(template).render(**values).strip() + "\n"


@cache
def _templates() -> jinja2.Environment:
    import jinja2  # a search without a model needs none

    templates = jinja2.Environment(  # plain text for a model, never HTML
        loader=jinja2.FileSystemLoader(resource_folder("prompts")),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for filter_ in (
        facts,
        batch_shape,
        clipped,
        fenced,
        mean_text,
        significant,
        one_line,
        quoted,
        short_number,
    ):
        templates.filters[filter_.__name__] = filter_
    return templates


def facts(variable: VariableSpec, measured: Measurements | None = None) -> str:
    """Unit, frame, range and start states of a variable as they follow its shape: `, m, world
    frame, range 0 to 2, start 0.57`."""
    parts = []
    if variable.unit not in (*_UNKNOWN, "1"):
        parts.append(variable.unit)
    if variable.frame not in _UNKNOWN:
        parts.append(f"{variable.frame} frame")
    if variable.range is not None:
        parts.append(f"range {variable.range[0]:.4g} to {variable.range[1]:.4g}")
    starts = measured.starts.get(variable.name) if measured is not None else None
    if starts:
        parts.append(f"start {column_ranges_text(starts)}")
    return "".join(f", {part}" for part in parts)


def batch_shape(variable: VariableSpec) -> str:
    """`(batch,)`, `(batch, 3)`: the shape in which a reward gets the variable."""
    return (
        f"(batch, {', '.join(str(size) for size in variable.shape)})"
        if variable.shape
        else "(batch,)"
    )


def fenced(text: str, language: str = "") -> str:
    """The text as a code block that none of its own lines can end."""
    return markup.fenced(str(text).strip(), language)  # raises for a value that the template misses


def quoted(text: str, limit: int) -> str:
    """At most `limit` characters of what somebody else wrote, every line marked as a quotation."""
    return "\n".join(f"> {line}".rstrip() for line in clipped(text.strip(), limit).split("\n"))
