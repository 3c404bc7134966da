"""Lineage of attempts as a drawing: which one was made from which, a row for each.

Rows follow the tree of first parents, columns are iterations. A view gives plain nodes, so the
drawing of a finished run and that of a live one are the same.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from eureka_agent import wording
from eureka_agent.attempt_words import discard_reason
from eureka_agent.ranking import ranked
from eureka_agent.records import Attempt
from eureka_agent.text import escape_unprintable, one_line

if TYPE_CHECKING:
    from markupsafe import Markup

MOST_NODES = 60
"""Attempts of one drawing."""
ROW, LETTER, TOP, LEFT = 26, 7.2, 30, 12
"""Pixels of a row, of a letter of a name, above the first row, and left of the first column."""
WIDEST_COLUMN, DRAWING = 44, 560
"""Pixels between two columns, and of all columns together."""
ASIDE = 9
"""Pixels between a column and a line beside it."""
LONGEST_REMARK = 60


@dataclass(frozen=True, kw_only=True)
class LineageNode:
    """An attempt in a lineage."""

    id: str
    iteration: int
    """Counted from 1."""
    parents: tuple[str, ...] = ()
    """The first one is the tree's; a revision's is the attempt that it revises."""
    operator: str
    state: str
    """`eureka_agent.records.Stage`."""
    fitness: float | None = None
    """Its strength where strengths rank."""
    remark: str = ""
    """Reason of an end without a fitness."""


@dataclass(frozen=True)
class Lineage:
    """Nodes of a drawing."""

    nodes: tuple[LineageNode, ...]
    """In the order of their attempts."""
    left_out: int
    """Attempts that the drawing has no room for."""
    ancestry: frozenset[str]
    """The best attempt and those that it was made from."""
    best: str


def nodes_of(attempts: Iterable[Attempt]) -> list[LineageNode]:
    """Attempts as nodes, in their order."""
    found: list[LineageNode] = []
    last: dict[tuple[int, int], str] = {}
    """Latest revision of each sample."""
    for attempt in attempts:
        place = attempt.iteration, attempt.sample
        revised = (last[place],) if attempt.revision and place in last else ()
        last[place] = attempt.id
        found.append(
            LineageNode(
                id=attempt.id,
                iteration=attempt.iteration + 1,
                parents=revised or attempt.proposal.parents,
                operator="revision" if revised else wording.words(attempt.proposal.operator.value),
                state=attempt.stage.value,
                fitness=attempt.merit,
                remark="" if attempt.fitness is not None else discard_reason(attempt),
            )
        )
    return found


def lineage(attempts: Sequence[Attempt], best: str = "", most: int = MOST_NODES) -> Lineage:
    """Lineage of at most so many attempts: the best one with its ancestors, then the others by
    rank, each with its ancestors, then those without a fitness."""
    nodes = {node.id: node for node in nodes_of(attempts)}
    ancestry = _with_ancestors(best, nodes, most) if best in nodes else []
    chosen = dict.fromkeys(ancestry)
    order = [attempt.id for attempt in ranked(attempts)]
    for name in itertools.chain(order, nodes):
        if len(chosen) >= most:
            break
        if name not in chosen:
            line = [each for each in _with_ancestors(name, nodes, most) if each not in chosen]
            if len(chosen) + len(line) <= most:
                chosen.update(dict.fromkeys(line))
    shown = tuple(node for name, node in nodes.items() if name in chosen)
    return Lineage(shown, len(nodes) - len(shown), frozenset(ancestry), best)


def _with_ancestors(name: str, nodes: Mapping[str, LineageNode], most: int) -> list[str]:
    """The attempt and its known ancestors, nearest first, at most so many."""
    found, ahead = {name: None}, [name]
    for each in ahead:
        for parent in nodes[each].parents:
            if parent in nodes and parent not in found and len(found) < most:
                found[parent] = None
                ahead.append(parent)
    return list(found)


def draw(drawn: Lineage, unit_note: str = "", link: Callable[[str], str] | None = None) -> Markup:
    """The lineage as an SVG element; empty without nodes. `link`: address of an attempt, or
    empty."""
    from markupsafe import Markup  # most commands write no document

    nodes = {node.id: node for node in drawn.nodes}
    if not nodes:
        return Markup()
    rows = {name: row for row, name in enumerate(_tree(nodes))}
    numbers = sorted({node.iteration for node in drawn.nodes})
    step = min(WIDEST_COLUMN, DRAWING / max(1, len(numbers) - 1))
    columns = {number: LEFT + step * place for place, number in enumerate(numbers)}

    def at(name: str) -> tuple[float, float]:
        return columns[nodes[name].iteration], TOP + ROW * rows[name]

    labels = {name: _label(node, unit_note) for name, node in nodes.items()}
    width = max(at(name)[0] + 12 + LETTER * len(" ".join(labels[name])) for name in nodes)
    height = TOP + ROW * len(nodes)
    parts = [_scale(columns, step)]
    parts += [
        _edge(at(parent), at(name), first=place == 0, ancestry={parent, name} <= drawn.ancestry)
        for name, node in nodes.items()
        for place, parent in enumerate(dict.fromkeys(node.parents))
        if parent in nodes and parent != name
    ]
    for name in rows:
        parts.append(_node(nodes[name], at(name), labels[name], drawn, link))
    whole = Markup('<svg role="group" aria-label="lineage" width="{}" height="{}">{}</svg>')
    return whole.format(f"{width:.0f}", height, Markup().join(parts))


def _tree(nodes: Mapping[str, LineageNode]) -> list[str]:
    """All nodes, each below its first parent, which comes before its other children's trees."""
    children: dict[str, list[str]] = {}
    roots = []
    for name, node in nodes.items():
        parent = next((each for each in node.parents if each in nodes and each != name), None)
        children.setdefault(parent, []).append(name) if parent else roots.append(name)
    order: dict[str, None] = {}
    # an archive that somebody changed may hold a circle, which has no root
    for root in (*roots, *nodes):
        ahead = [root]
        while ahead:
            name = ahead.pop()
            if name not in order:
                order[name] = None
                ahead += reversed(children.get(name, ()))
    return list(order)


def _label(node: LineageNode, unit_note: str) -> tuple[str, str]:
    """Id, then operator with fitness or state."""
    unit = unit_note.strip(" ()")
    result = f"{wording.number(node.fitness)} {unit}".strip()
    if node.fitness is None:
        result = ": ".join(filter(None, (node.state, one_line(node.remark, LONGEST_REMARK))))
    return escape_unprintable(node.id), escape_unprintable(f"{node.operator} · {result}")


def _scale(columns: Mapping[int, float], step: float) -> Markup:
    """Numbers of the iterations above the columns, as many as there is room for."""
    from markupsafe import Markup

    every = max(1, -int(-2 * LETTER * 1.5 // step))
    numbers = [
        Markup('<text class="muted" x="{}" y="12" text-anchor="middle">{}</text>').format(
            f"{place:.1f}", number
        )
        for index, (number, place) in enumerate(columns.items())
        if index % every == 0
    ]
    return Markup().join(numbers)


def _edge(
    parent: tuple[float, float], child: tuple[float, float], *, first: bool, ancestry: bool
) -> Markup:
    """Line from a parent down its column, then right to the child. That of a second parent, and of
    one that is not up and left, runs beside the column, past the dots in it."""
    from markupsafe import Markup

    (left, above), (right, below) = parent, child
    path = f"M{left:.1f} {above}V{below}H{right:.1f}"
    if not first or right <= left or below <= above:
        path = f"M{left:.1f} {above}H{left - ASIDE:.1f}V{below - 3}H{right:.1f}"
    kinds = ([] if first else ["second"]) + (["ancestry"] if ancestry else [])
    return Markup('<path class="{}" d="{}"/>').format(" ".join(kinds), path)


def _node(
    node: LineageNode,
    place: tuple[float, float],
    label: tuple[str, str],
    drawn: Lineage,
    link: Callable[[str], str] | None,
) -> Markup:
    from markupsafe import Markup

    kind = f"{node.state} best" if node.id == drawn.best else node.state
    x, y = f"{place[0]:.1f}", place[1]
    name, result = label
    text = Markup('<text x="{}" y="{}">{} <tspan class="muted">{}</tspan></text>').format(
        f"{place[0] + 10:.1f}", y + 4.5, name, result
    )
    dot = Markup('<circle cx="{}" cy="{}" r="5"/>').format(x, y)
    inner = dot + text
    if address := link(node.id) if link is not None else "":
        inner = Markup('<a href="{}">{}</a>').format(escape_unprintable(address), inner)
    return Markup('<g class="{}">{}</g>').format(kind, inner)
