"""YAML files of settings."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from eureka_agent.errors import SettingsError, system_reason

MOST_SETTINGS_BYTES = 64 << 10
"""Longest file of settings: parsing YAML takes a second for half a megabyte."""
_SHOWN_CHARACTERS = 60
"""Characters of a faulty line that an error shows."""


class _RefusedError(yaml.MarkedYAMLError):
    """Valid YAML that settings do not allow."""


class _SettingsLoader(yaml.SafeLoader):
    """YAML in which a name stands once and there are no aliases. Plain YAML takes the last of two
    equal names without a word, and a few lines of aliases can become gigabytes.

    Dates are text. Numbers and booleans are those of YAML 1.2.
    """

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Compose the next node. Raises _RefusedError for an alias."""
        if self.check_event(yaml.AliasEvent):
            place = self.peek_event().start_mark
            raise _RefusedError(None, None, "settings have no aliases", place)
        return super().compose_node(parent, index)

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """Value of a node. Raises _RefusedError for `!!bool maybe`, which is no bool."""
        try:
            return super().construct_object(node, deep)
        except (ValueError, LookupError, AttributeError):  # whatever a tag's reader stumbles over
            if not isinstance(node, yaml.ScalarNode):
                raise
            kind = node.tag.rpartition(":")[2]
            what = f"{node.value[:_SHOWN_CHARACTERS]!r} is no {kind} that can be read"
            raise _RefusedError(None, None, what, node.start_mark) from None

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Mapping of a node. Raises _RefusedError for a repeated name."""
        seen = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            if key.value in seen:
                raise _RefusedError(None, None, f"{key.value!r} is written twice", key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


_SettingsLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag.endswith((":null", ":merge"))]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
# YAML 1.2: `yes` and `no` are text, 010 is not eight, 1:30 is not ninety, 1e-3 is a number
_SettingsLoader.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile(r"(?:true|True|TRUE|false|False|FALSE)$"), None
)
_SettingsLoader.add_implicit_resolver(
    "tag:yaml.org,2002:int", re.compile(r"[-+]?(?:0|[1-9][0-9_]*)$"), None
)
_SettingsLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(
        r"[-+]?(?:(?:[0-9][0-9_]*)?\.[0-9]+|[0-9][0-9_]*\.)(?:[eE][-+]?[0-9]+)?$"
        r"|[-+]?[0-9]+[eE][-+]?[0-9]+$|[-+]?\.(?:inf|Inf|INF)$|\.(?:nan|NaN|NAN)$"
    ),
    None,
)


def read_settings_file(
    path: Path, read: Callable[[Path, int], bytes] | None = None
) -> dict[str, Any]:
    """Mapping in a YAML file. `read`: reads at most so many bytes, in place of `open`. Raises
    SettingsError where there is none."""
    content = b""
    try:
        content = (read or _first_bytes)(path, MOST_SETTINGS_BYTES + 1)
        if len(content) > MOST_SETTINGS_BYTES:
            raise ValueError(f"it has more than {MOST_SETTINGS_BYTES} bytes")
        values = yaml.load(content.decode(), _SettingsLoader)  # a subclass of the safe loader
    except OSError as error:
        raise SettingsError(
            f"cannot read the settings file {str(path)!r}: {system_reason(error)}", "check the path"
        ) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise SettingsError(
            f"cannot read the settings in {str(path)!r}: {_yaml_problem(error, content)}",
            "write one `name: value` a line",
        ) from None
    if values is None:
        return {}
    if not isinstance(values, dict):
        kind = {"list": "a list", "str": "text"}.get(type(values).__name__, "one value")
        raise SettingsError(
            f"{str(path)!r} holds {kind}, expected names with values",
            "write one `name: value` a line",
        )
    return values


def _first_bytes(path: Path, most: int) -> bytes:
    with path.open("rb") as file:
        return file.read(most)


def _yaml_problem(error: Exception, content: bytes) -> str:
    """Fault of a YAML text in one line, with its line number."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        number = error.problem_mark.line
        if isinstance(error, _RefusedError):
            return f"{error.problem}, line {number + 1}"
        lines = content.decode().splitlines()
        if number < len(lines) and "\t" in lines[number]:
            return f"a tab in line {number + 1}: indent with spaces"
        shown = lines[number].strip()[:_SHOWN_CHARACTERS] if number < len(lines) else ""
        if not shown:
            return f"it ends in the middle of a value, line {number + 1}"
        return f"line {number + 1} is not YAML: {shown!r}"
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8"
    if isinstance(error, yaml.reader.ReaderError):
        return "it is not a text: it has control characters"
    return " ".join(str(error).split())


def read_value(text: str) -> Any:
    """A value that is typed as in a settings file. Raises SettingsError."""
    try:
        return yaml.load(text, _SettingsLoader)  # a subclass of the safe loader
    except (yaml.YAMLError, ValueError, RecursionError):
        raise SettingsError(f"{text!r} is no value", "write it as in a settings file") from None


def line_numbers(path: Path) -> dict[tuple[str | int, ...], int]:
    """Line of every key and list member in a YAML file that `read_settings_file` has read."""
    lines: dict[tuple[str | int, ...], int] = {}

    def visit(node: yaml.Node, place: tuple[str | int, ...]) -> None:
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                inside = (*place, str(key.value))
                lines[inside] = key.start_mark.line + 1
                visit(value, inside)
        elif isinstance(node, yaml.SequenceNode):
            for number, member in enumerate(node.value):
                lines[*place, number] = member.start_mark.line + 1
                visit(member, (*place, number))

    root = yaml.compose(_first_bytes(path, MOST_SETTINGS_BYTES).decode(), _SettingsLoader)
    if root is not None:
        visit(root, ())
    return lines
