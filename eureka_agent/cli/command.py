"""Commands, options and usage errors in this program's own words: click parses, and says nothing
itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from eureka_agent.cli.interruption import raise_from_now_on
from eureka_agent.errors import EurekaError, close_match, did_you_mean
from eureka_agent.invocation import command, pasteable

OptionGroups = Mapping[str, Sequence[str]]
"""Names of parameters by the title that they stand under in `--help`."""
OTHER_OPTIONS = "Other options"


class UsageError(EurekaError):
    """A command line that cannot be understood."""


class Command(click.Command):
    """A command whose help names commands that can be pasted, and lists its options in groups where
    it has many."""

    def __init__(self, *arguments: Any, groups: OptionGroups | None = None, **options: Any) -> None:
        """`groups`: titles and parameters of the help; one that is in none stands under
        `OTHER_OPTIONS`. The others: click's own."""
        super().__init__(*arguments, **options)
        self.groups = groups or {}

    def get_help(self, context: click.Context) -> str:
        """The help, with commands as they are typed here."""
        return pasteable(super().get_help(context))

    def invoke(self, context: click.Context) -> Any:
        """Run the command, which Ctrl-C interrupts from here on."""
        raise_from_now_on()
        return super().invoke(context)

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        """The words of the command line. Raises UsageError for those that the command has no use
        for."""
        context.allow_extra_args = True
        try:
            super().parse_args(context, args)
        except click.UsageError as error:
            error.ctx = error.ctx or context  # the parser does not know it of all of its errors
            raise
        if context.args and not context.resilient_parsing:
            words = " ".join(map(repr, context.args))
            raise UsageError(
                f"{context.info_name} has no use for {words}", f"it is called as: {_usage(context)}"
            )
        return context.args

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """The options, those of a group together."""
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
    """A group of such commands."""

    command_class = Command

    def get_help(self, context: click.Context) -> str:
        """The help, with commands as they are typed here."""
        return pasteable(super().get_help(context))

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the first word names. Raises UsageError, with a suggestion."""
        names = self.list_commands(context)
        if not context.resilient_parsing and args[0].startswith("-"):
            raise UsageError(f"there is no option {args[0]!r}", _option_hint(args[0], context))
        if not context.resilient_parsing and args[0] not in names:
            hint = did_you_mean(args[0], names)
            if any(character.isspace() for character in args[0]):
                import shlex

                hint = (
                    "a task in plain words goes to search:"
                    f" {command(shlex.join(['search', *args]))}"
                )
            raise UsageError(f"there is no command {args[0]!r}", hint)
        return super().resolve_command(context, args)


class BadValueError(click.BadParameter):
    """A value that a parameter cannot have. The message goes on after the parameter's name: `is
    'x', expected …`."""

    def __init__(self, message: str, hint: str = "") -> None:
        """`hint`: the next step, where there is a better one than to read the help."""
        super().__init__(message)
        self.hint = hint


class Choice(click.Choice[str]):
    """One of a few words."""

    def convert(
        self, value: Any, parameter: click.Parameter | None, context: click.Context | None
    ) -> str:
        """The word. Raises BadValueError, with a suggestion."""
        if value in self.choices:
            return str(value)
        close = close_match(str(value), self.choices)
        raise BadValueError(
            f"is {value!r}, expected {one_of(self.choices)}",
            f"did you mean {close!r}?" if close else "",
        )


class Number(click.ParamType):
    """A whole number or a decimal one, perhaps within bounds."""

    def __init__(
        self, kind: type[int] | type[float], least: float | None = None, most: float | None = None
    ) -> None:
        """`kind`: `int` or `float`; `least`, `most`: both may be taken."""
        self._kind, self._least, self.most = kind, least, most
        self.name = "integer" if kind is int else "number"

    def convert(
        self, value: Any, parameter: click.Parameter | None, context: click.Context | None
    ) -> float:
        """The number. Raises BadValueError."""
        try:
            number = self._kind(value)
        except (ValueError, OverflowError):
            raise BadValueError(f"is {value!r}, expected {self._expected()}") from None
        at_least, at_most = (
            self._least is None or number >= self._least,
            self.most is None or number <= self.most,
        )
        if not (at_least and at_most):
            raise BadValueError(f"is {value}, expected {self._expected()}")
        return number

    def _expected(self) -> str:
        kind = "a whole number" if self._kind is int else "a number"
        if self.most is not None:
            return f"{kind} from {self._least} to {self.most}"
        return kind if self._least is None else f"{kind}, {self._least} or more"


def one_of(words: Sequence[str]) -> str:
    """`"a, b or c"`."""
    *others, last = words
    return f"{', '.join(others)} or {last}" if others else last


FILE = click.Path(path_type=Path)
"""A path: whoever opens it says what is wrong with it."""


def reworded(error: click.UsageError) -> UsageError:
    """An error of click's parser as one of this program."""
    context = error.ctx
    if isinstance(error, click.NoSuchOption):
        return UsageError(
            f"there is no option {error.option_name!r}", _option_hint(error.option_name, context)
        )
    if (
        isinstance(error, click.MissingParameter)
        and error.param is not None
        and context is not None
    ):
        return UsageError(f"{_name(error.param)} is missing", f"it is called as: {_usage(context)}")
    if isinstance(error, click.BadOptionUsage):
        needs = _takes_value(error.option_name, context)
        what = "needs a value, and none follows" if needs else "takes no value"
        return UsageError(f"{error.option_name} {what}", _help_hint(context))
    if isinstance(error, click.BadParameter) and error.param is not None and context is not None:
        hint = getattr(error, "hint", "") or _help_hint(context)
        return UsageError(f"{_name(error.param)} {error.message}", hint)
    return UsageError(error.message, _help_hint(context))


def _takes_value(name: str, context: click.Context | None) -> bool:
    return any(
        name in (*parameter.opts, *parameter.secondary_opts)
        and not getattr(parameter, "is_flag", False)
        for parameter in (context.command.params if context is not None else ())
    )


def _name(parameter: click.Parameter) -> str:
    """`--samples` or `RUN`."""
    if isinstance(parameter, click.Option):
        return max(parameter.opts, key=len)
    return parameter.human_readable_name.strip("…")


def _option_hint(name: str, context: click.Context | None) -> str:
    parameters = context.command.get_params(context) if context is not None else ()
    known = [
        option
        for parameter in parameters
        for option in (*parameter.opts, *parameter.secondary_opts)
    ]
    close = close_match(name, [option for option in known if option.startswith("--")])
    return f"did you mean {close!r}?" if close else _help_hint(context)


def _help_hint(context: click.Context | None) -> str:
    path = context.command_path.partition(" ")[2] if context is not None else ""
    return f"see `{command(f'{path} --help'.strip())}`"


def _usage(context: click.Context) -> str:
    words = [context.command_path.partition(" ")[2], *context.command.collect_usage_pieces(context)]
    return command(" ".join(word for word in words if word))
