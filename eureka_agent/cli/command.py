"""Commands, options and usage errors in this program's own words: click only parses."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from eureka_agent.amounts import EXAMPLES, whole_number
from eureka_agent.cli.interruption import raise_from_now_on
from eureka_agent.errors import EurekaError, close_match, did_you_mean
from eureka_agent.invocation import command, pasteable

OptionGroups = Mapping[str, Sequence[str]]
"""Names of parameters by their title in `--help`."""
OTHER_OPTIONS = "Other options"


class UsageError(EurekaError):
    """An invalid command line."""


class DeclinedError(EurekaError):
    """A person's no; nothing was done."""

    exit_status = 1


class Command(click.Command):
    """A command whose help has pasteable commands and groups of options."""

    def __init__(self, *arguments: Any, groups: OptionGroups | None = None, **options: Any) -> None:
        """`groups`: titles and parameters of the help; others come under `OTHER_OPTIONS`."""
        super().__init__(*arguments, **options)
        self.groups = groups or {}

    def get_help(self, context: click.Context) -> str:
        return pasteable(super().get_help(context))

    def invoke(self, context: click.Context) -> Any:
        """Run the command; from here on Ctrl-C raises KeyboardInterrupt."""
        raise_from_now_on()
        return super().invoke(context)

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        """Parse the command line. Raises UsageError for superfluous words."""
        context.allow_extra_args = True
        try:
            super().parse_args(context, args)
        except click.UsageError as error:
            error.ctx = error.ctx or context  # some of the parser's errors lack it
            raise
        if context.args and not context.resilient_parsing:
            words = " ".join(map(repr, context.args))
            usage = f"it is called as: {_usage(context)}"
            raise UsageError(f"{context.info_name} does not take {words}", usage)
        return context.args

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        if not self.groups:
            super().format_options(context, formatter)
            return
        left = {
            parameter.name: record
            for parameter in self.get_params(context)
            if isinstance(parameter, click.Option)
            and (record := parameter.get_help_record(context)) is not None
        }
        for title, names in self.groups.items():
            records = [left.pop(name) for name in names if name in left]
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)
        if left:
            with formatter.section(OTHER_OPTIONS):
                formatter.write_dl(list(left.values()))


class Group(click.Group):
    command_class = Command

    def get_help(self, context: click.Context) -> str:
        return pasteable(super().get_help(context))

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Command of the first word. Raises UsageError with a suggestion."""
        names = self.list_commands(context)
        if not context.resilient_parsing and args[0].startswith("-"):
            raise UsageError(f"there is no option {args[0]!r}", _option_hint(args[0], context))
        if not context.resilient_parsing and args[0] not in names:
            hint = did_you_mean(args[0], names)
            if any(character.isspace() for character in args[0]):
                search = command(shlex.join(["search", *args]))
                hint = f"a task in plain words goes to search: {search}"
            raise UsageError(f"there is no command {args[0]!r}", hint)
        return super().resolve_command(context, args)


class BadValueError(click.BadParameter):
    """An invalid value. The message follows the parameter's name: `is 'x', expected …`."""


class NamedChoice(click.Choice[str]):
    """One of a few words."""

    def convert(
        self, value: Any, parameter: click.Parameter | None, context: click.Context | None
    ) -> str:
        if value in self.choices:
            return str(value)
        raise BadValueError(f"is {value!r}, expected {one_of(self.choices)}")


class Number(click.ParamType):
    """A whole or decimal number, perhaps within bounds."""

    def __init__(
        self, kind: type[int] | type[float], least: float | None = None, most: float | None = None
    ) -> None:
        """`least` and `most` are inclusive."""
        self._kind, self._least, self.most = kind, least, most
        self.name = "integer" if kind is int else "number"

    def convert(
        self, value: Any, parameter: click.Parameter | None, context: click.Context | None
    ) -> float:
        try:
            whole = self._kind is int and isinstance(value, str)
            number = whole_number(value) if whole else self._kind(value)
        except (ValueError, OverflowError):
            raise BadValueError(f"is {value!r}, expected {self._expected()}") from None
        too_small = self._least is not None and not number >= self._least
        if too_small or (self.most is not None and not number <= self.most):  # NaN is both
            raise BadValueError(f"is {value}, expected {self._expected()}")
        return number

    def _expected(self) -> str:
        kind = "a whole number" if self._kind is int else "a number"
        if self.most is not None:
            return f"{kind} from {self._least} to {self.most}"
        return f"{kind} {EXAMPLES}" if self._kind is int else kind


def one_of(words: Sequence[str]) -> str:
    """`"a, b or c"`."""
    *others, last = words
    return f"{', '.join(others)} or {last}" if others else last


FILE = click.Path(path_type=Path)


def typed_options(context: click.Context, leave_out: Collection[str] = ()) -> list[str]:
    """Options of the command line as typed, but those of the names in `leave_out`."""
    typed: list[str] = []
    for parameter in context.command.params:
        name = parameter.name or ""
        value: Any = context.params.get(name)
        is_typed = context.get_parameter_source(name) == ParameterSource.COMMANDLINE
        if not isinstance(parameter, click.Option) or not is_typed or name in leave_out:
            continue
        if parameter.is_flag:
            typed.append((parameter.opts if value else parameter.secondary_opts)[0])
        elif parameter.multiple:
            typed += [word for each in value for word in (parameter.opts[0], str(each))]
        else:
            text = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
            typed += [parameter.opts[0], text]
    return typed


def reworded(error: click.UsageError) -> UsageError:
    """Error of click's parser in this program's words."""
    context, hint = error.ctx, _help_hint(error.ctx)
    match error:
        case click.NoSuchOption(option_name=name):
            return UsageError(f"there is no option {name!r}", _option_hint(name, context))
        case click.MissingParameter(param=click.Parameter() as parameter) if context is not None:
            usage = f"it is called as: {_usage(context)}"
            return UsageError(f"{_name(parameter)} is missing", usage)
        case click.BadOptionUsage(option_name=name):
            is_flag = "does not take a value" in error.message
            what = "takes no value" if is_flag else "needs a value, and none follows"
            return UsageError(f"{name} {what}", hint)
        case click.BadParameter(param=click.Parameter() as parameter) if context is not None:
            return UsageError(f"{_name(parameter)} {error.message}", hint)
    return UsageError(error.message, hint)


def _name(parameter: click.Parameter) -> str:
    if isinstance(parameter, click.Option):
        return max(parameter.opts, key=len)
    return parameter.human_readable_name.strip("…")


def _option_hint(name: str, context: click.Context | None) -> str:
    parameters = context.command.get_params(context) if context is not None else ()
    known = [word for each in parameters for word in (*each.opts, *each.secondary_opts)]
    close = close_match(name, [word for word in known if word.startswith("--")])
    return f"did you mean {close!r}?" if close else _help_hint(context)


def _help_hint(context: click.Context | None) -> str:
    path = context.command_path.partition(" ")[2] if context is not None else ""
    return f"see `{command(f'{path} --help'.strip())}`"


def _usage(context: click.Context) -> str:
    words = [context.command_path.partition(" ")[2], *context.command.collect_usage_pieces(context)]
    return command(" ".join(word for word in words if word))
