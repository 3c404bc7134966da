"""A document as blocks, which a terminal (`report/terminal.py`), Markdown (`report/markdown.py`)
and HTML (`report/html/document.py`) show alike. Text may come from models, persons and
environments: the three escape it. Parts of it in backticks are shown as code."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from markupsafe import Markup

Style = Literal["", "muted", "strong", "warn"]


@dataclass(frozen=True)
class Words:
    """A paragraph."""

    text: str
    style: Style = ""


@dataclass(frozen=True)
class Facts:
    """Names with what is to be said of each."""

    rows: Mapping[str, str]
    strong: str = ""
    """Name of the most important one."""


@dataclass(frozen=True)
class Grid:
    """A table; the first cell of a row is its name."""

    titles: Sequence[str]
    rows: Sequence[Sequence[str]]
    best: str = ""
    """Id of the row that stands out."""
    ids: Sequence[str] = ()
    """Ids of attempts, one for each row; empty for other rows."""
    numbers: Collection[str] = ()
    """Titles of columns of numbers."""
    spare: Collection[str] = ()
    """Titles of columns that a narrow terminal leaves out."""

    def id_of(self, place: int) -> str:
        """Id of a row; empty for none."""
        return self.ids[place] if place < len(self.ids) else ""


@dataclass(frozen=True)
class Source:
    """Code in full."""

    text: str
    title: str = ""
    language: Literal["python", "sh", "text"] = "python"


@dataclass(frozen=True)
class Quote:
    """Words of a model."""

    text: str
    title: str = ""


@dataclass(frozen=True)
class Items:
    """A list."""

    lines: Sequence[str]


@dataclass(frozen=True)
class DrawingBlock:
    """A chart, a clip or another element, which a browser alone shows."""

    html: Callable[[], Markup]
    """Makes the element."""


@dataclass(frozen=True)
class Folded:
    """Blocks for a browser that are seen on demand."""

    summary: str
    blocks: Sequence[Block]


Block: TypeAlias = Words | Facts | Grid | Source | Quote | Items | DrawingBlock | Folded


@dataclass(frozen=True)
class Section:
    """Blocks under a title; one without blocks is not shown."""

    name: str
    title: str
    make: Callable[[], Sequence[Block]]

    @cached_property
    def blocks(self) -> Sequence[Block]:
        """The blocks, made for the views that show them."""
        return self.make()


@dataclass(frozen=True)
class Document:
    """A document."""

    title: str
    head: Sequence[Words] = ()
    sections: Sequence[Section] = field(default_factory=tuple)

    def chosen(self, *names: str) -> list[Section]:
        """The sections of these names, in the order of the names."""
        by_name = {each.name: each for each in self.sections}
        return [by_name[name] for name in names]
