"""The templates in `prompts/`, rendered for every role that asks a model."""

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
"""Units and frames without information."""


def system_message(
    template: str,
    description: TaskDescription,
    sentence: str,
    settings: SearchSettings | None = None,
    **values: Any,
) -> ChatMessage:
    """A role's system message: the same in every request of a run, for the provider's cache.
    `values`: of its template."""
    task = task_text(description, sentence, settings)
    return ChatMessage("system", f"{render(template, **values)}\n{task}")


def task_text(
    description: TaskDescription, sentence: str, settings: SearchSettings | None = None
) -> str:
    """Environment, task, fitness and training in words, without source code, private variables and
    settings that may change at a resume. `settings`: of the run; None: the task's own."""
    if settings is None:
        budget = description.training_on("cpu")
        settings = parse_settings(SearchSettings, budget, "the task's training budget")
    return render(
        "task.md",
        sentence=sentence,
        description=description,
        variables=description.public_variables(),
        settings=settings,
    )


def render(template: str, **values: Any) -> str:
    """Render a template of `prompts/`; a missing value is an error."""
    return _templates().get_template(template).render(**values).strip() + "\n"


@cache
def _templates() -> jinja2.Environment:
    import jinja2  # not needed without a model

    templates = jinja2.Environment(  # plain text for a model, never HTML
        loader=jinja2.FileSystemLoader(resource_folder("prompts")),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters = (facts, batch_shape, clipped, fenced, mean_text, significant, one_line, quoted)
    for filter_ in (*filters, short_number):
        templates.filters[filter_.__name__] = filter_
    return templates


def facts(variable: VariableSpec, measured: Measurements | None = None) -> str:
    """Unit, frame, range and start states: `, m, world frame, range 0 to 2, start 0.57`."""
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
    """Shape of a variable in a reward: `(batch,)`, `(batch, 3)`."""
    return f"(batch, {', '.join(map(str, variable.shape))})" if variable.shape else "(batch,)"


def fenced(text: str, language: str = "") -> str:
    """The text as a code block that its own lines cannot end."""
    return markup.fenced(str(text).strip(), language)  # str() raises for a missing value


def quoted(text: str, limit: int) -> str:
    """At most `limit` characters of a text, with every line marked as a quotation."""
    return "\n".join(f"> {line}".rstrip() for line in clipped(text.strip(), limit).split("\n"))
