"""Command-line options from the definition of the settings, and their groups in `--help`."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Mapping
from decimal import Decimal
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin

import click
from pydantic.fields import FieldInfo

from eureka_agent import settings, syntax
from eureka_agent.amounts import whole_number
from eureka_agent.cli import completing
from eureka_agent.cli.command import BadValueError, NamedChoice, Number
from eureka_agent.errors import SettingsError
from eureka_agent.settings import (
    THE_FLAGS,
    SearchSettings,
    TrainingSettings,
    parse_settings,
    scalar_type,
)
from eureka_agent.settings_files import read_settings_file

CommandFunction = TypeVar("CommandFunction", bound=Callable[..., Any])


COMPLETED = {"env": completing.environments, "task": completing.tasks, "model": completing.models}


class Numbers(click.ParamType):
    """Numbers separated by commas: `64,64`; empty for an empty text."""

    name = "numbers"

    def __init__(self, number: type[int] | type[float], example: str) -> None:
        self._number = number
        self._example = example

    def convert(
        self, value: Any, parameter: click.Parameter | None, context: click.Context | None
    ) -> tuple[float, ...]:
        if isinstance(value, tuple):
            return value
        if not str(value).strip():
            return ()
        try:
            read = whole_number if self._number is int else self._number
            return tuple(read(part) for part in str(value).split(","))
        except ValueError:
            kind = "whole numbers" if self._number is int else "numbers"
            raise BadValueError(
                f"is {value!r}, expected {kind} with commas between them, such as {self._example}"
            ) from None


def settings_options(
    names: Iterable[str], *, defaults: bool = True, hidden: bool = False
) -> Callable[[CommandFunction], CommandFunction]:
    """Decorator that adds an option, with the value None, for each of these fields of
    `SearchSettings`. `defaults`: the help has the settings' defaults; `hidden`: it omits the
    options."""

    def add(function: CommandFunction) -> CommandFunction:
        for name in reversed(list(names)):
            function = _option(name, SearchSettings.model_fields[name], defaults, hidden)(function)
        return function

    return add


def _option(
    name: str, field: FieldInfo, default: bool, hidden: bool
) -> Callable[[CommandFunction], CommandFunction]:
    flag = "--" + name.replace("_", "-")
    shown = field.default
    if isinstance(shown, tuple):
        shown = ",".join(map(str, shown)) or None
    text = " ".join(_docstrings()[name].split())
    if default and shown is not None:
        text += f"  [default: {shown}]"
    option = partial(click.option, help=text, hidden=hidden)
    kind = scalar_type(field.annotation)
    if kind is bool:
        return option(f"{flag}/--no-{name.replace('_', '-')}", name, default=None)
    complete = COMPLETED.get(name)
    if get_origin(kind) is Literal:
        choice = NamedChoice([*map(str, get_args(kind))])
        if get_origin(field.annotation) is tuple:
            return option(flag, name, type=choice, multiple=True, callback=_none_for_none)
        return option(flag, name, type=choice, default=None)
    if kind is Decimal:  # checked by the settings, for a better error
        return option(flag, name, type=str, default=None, metavar="NUMBER")
    if get_origin(field.annotation) is tuple and kind is str:
        return option(flag, name, multiple=True, callback=_none_for_none, shell_complete=complete)
    if get_origin(field.annotation) is tuple:
        return option(flag, name, type=Numbers(kind, str(shown)), default=None)
    if kind in (int, float):
        return option(flag, name, type=Number(kind), default=None)
    return option(flag, name, type=kind, default=None, shell_complete=complete)


@cache
def _docstrings() -> dict[str, str]:
    """Docstring of every setting. Read here, as pydantic would read them at each start of the
    program, which takes longer than the rest of the settings' module."""
    tree = syntax.parsed(Path(settings.__file__).read_text(encoding="utf-8"))
    bodies = [node.body for node in tree.body if isinstance(node, ast.ClassDef)]
    return {
        field.target.id: str(text.value.value)
        for body in bodies
        for field, text in pairwise(body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant)
    }


def _none_for_none(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> tuple[str, ...] | None:
    """Value of a repeatable option; None where it was not given."""
    return values or None


def given_settings(
    config: Path | None,
    flags: Mapping[str, Any],
    takes: Collection[str] = SearchSettings.model_fields,
) -> dict[str, Any]:
    """Settings from the `--config` file, overridden by flags. Raises SettingsError, also for a
    setting in the file that the command does not take."""
    values: dict[str, Any] = {}
    if config is not None:
        values.update(read_settings_file(config))
        parse_settings(SearchSettings, values, str(config), _help_command())
        for name in values:
            if name not in takes:
                raise SettingsError(
                    f"this command does not take the setting {name!r} in {str(config)!r}",
                    f"take it out; it takes {', '.join(sorted(takes))}",
                )
    values.update({name: value for name, value in flags.items() if value is not None})
    parse_settings(SearchSettings, values, THE_FLAGS, _help_command())
    return values


def _help_command() -> str:
    context = click.get_current_context(silent=True)
    return f"{context.info_name if context is not None else 'search'} --help"


_GROUPS = {
    "To know first": "env task model budget iterations samples max_cost seed plan config",
    "Language models": (
        "base_url api temperature reply_tokens request_timeout outage concurrency llm_batch"
        " llm_batch_wait reviewer analyst analyst_sees designer_tools judge blind max_tokens price"
    ),
    "What counts": (
        "rewards labels label_requests design fitness yes scoring_episodes evaluation_episodes"
    ),
    "The search": (
        "strategy max_time drafts revisions retry_rounds novelty rungs schedule confirm"
        " confirm_seeds"
    ),
    "The end": (
        "finalists baselines train_baselines baseline_seeds final_seeds randomise video log"
    ),
    "Trainings (PPO); what the task brings is the default": " ".join(TrainingSettings.model_fields),
    "This machine": (
        "sandbox device workers cluster slots dry_run_timeout training_timeout snapshot_interval"
    ),
}
OPTION_GROUPS = {title: names.split() for title, names in _GROUPS.items()}
