"""Lineage of attempts: what is chosen, and where its lines begin and end."""

from __future__ import annotations

import re
from collections.abc import Callable
from xml.etree import ElementTree

import pytest

from eureka_agent.records import Attempt, Operator, Stage
from eureka_agent.report.html.lineage import MOST_NODES, draw, lineage, nodes_of


def svg(text: str) -> ElementTree.Element:
    return ElementTree.fromstring(text)


def dots(drawing: ElementTree.Element) -> dict[str, tuple[float, float]]:
    """Place of each attempt's dot."""
    found = {}
    for group in drawing.iter("g"):
        circle, text = group.find(".//circle"), group.find(".//text")
        assert circle is not None
        assert text is not None
        assert text.text is not None
        found[text.text.strip()] = (float(circle.get("cx", "")), float(circle.get("cy", "")))
    return found


def edges(drawing: ElementTree.Element) -> set[tuple[str, str]]:
    """Parent and child of each line, by the dots at its ends."""
    at = {place: name for name, place in dots(drawing).items()}
    found = set()
    for path in drawing.iter("path"):
        d = path.get("d", "")
        start = re.match(r"M([\d.]+) ([\d.]+)", d)
        assert start is not None
        right = float(d.rpartition("H")[2])
        below = float(re.findall(r"V([\d.]+)", d)[-1])
        # a line beside the column ends 3 pixels above the middle of the dot
        child = at.get((right, below)) or at[right, below + 3]
        found.add((at[float(start[1]), float(start[2])], child))
    return found


def test_lines_lead_from_parents_to_children(attempt: Callable[..., Attempt]) -> None:
    attempts = [
        attempt("1-01", Stage.TRAINED, 1.0),
        attempt("1-02", Stage.TRAINED, 2.0),
        attempt("2-01", Stage.TRAINED, 3.0, operator=Operator.IMPROVE, parents=("1-02",)),
        attempt(
            "2-02",
            Stage.TRAINED,
            4.0,
            operator=Operator.CROSSOVER,
            parents=("1-02", "1-01", "1-02"),
        ),
        attempt("3-01", Stage.FAILED, reason="NaN", parents=("2-02", "9-99")),
    ]
    drawn = lineage(attempts, "2-02")
    assert drawn.left_out == 0
    assert drawn.ancestry == {"2-02", "1-02", "1-01"}
    drawing = svg(draw(drawn, " (m)"))
    places = dots(drawing)
    # columns are iterations; a tree's rows follow each other
    assert places["1-01"][0] == places["1-02"][0] < places["2-01"][0] < places["3-01"][0]
    order = sorted(places, key=lambda name: places[name][1])
    assert order == ["1-01", "1-02", "2-01", "2-02", "3-01"]
    assert edges(drawing) == {
        ("1-02", "2-01"),
        ("1-02", "2-02"),
        ("1-01", "2-02"),
        ("2-02", "3-01"),
    }
    bold = [
        path.get("class") for path in drawing.iter("path") if "ancestry" in path.get("class", "")
    ]
    assert sorted(filter(None, bold)) == ["ancestry", "second ancestry"]
    text = " ".join("".join(drawing.itertext()).split())
    assert "2-02 crossover · 4.00 m" in text
    assert "3-01 fresh · failed: NaN" in text


def test_a_revision_comes_from_what_it_revises(attempt: Callable[..., Attempt]) -> None:
    rejected = attempt("1-02", Stage.REJECTED, reason="unknown variable")
    revision = attempt("1-02", Stage.TRAINED, 2.0).model_copy(
        update={"id": "1-02-r1", "revision": 1}
    )
    nodes = nodes_of([attempt("1-01", Stage.TRAINED, 1.0), rejected, revision])
    assert [(node.id, node.parents, node.operator) for node in nodes] == [
        ("1-01", (), "fresh"),
        ("1-02", (), "fresh"),
        ("1-02-r1", ("1-02",), "revision"),
    ]
    drawing = svg(draw(lineage([rejected, revision], "1-02-r1")))
    assert edges(drawing) == {("1-02", "1-02-r1")}


def test_a_long_run_shows_the_best_with_all_its_ancestors(attempt: Callable[..., Attempt]) -> None:
    """Of 1,000 attempts the best is the last of a line of 40, each worse than all others."""
    line = [f"{place}-01" for place in range(1, 41)]
    attempts = []
    for place in range(1, 126):
        for sample in range(1, 9):
            name = f"{place}-{sample:02}"
            fitness = 0.01 if name in line else 1.0 + place / 1000
            parents = (f"{place - 1}-01",) if name in line[1:] else ()
            attempts.append(attempt(name, Stage.TRAINED, fitness, parents=parents))
    drawn = lineage(attempts, "40-01")
    names = [node.id for node in drawn.nodes]
    assert len(names) == MOST_NODES
    assert drawn.left_out == 1000 - MOST_NODES
    assert set(line) <= set(names)
    assert drawn.ancestry == set(line)
    # the others are the best by fitness: of 8 each in the last iterations, and the first 4 before
    last = [f"{place}-{sample:02}" for place in (123, 124, 125) for sample in range(1, 9)]
    assert [name for name in names if name not in line] == last[:4] + last[8:]
    drawing = svg(draw(drawn))
    assert float(drawing.get("width", "")) < 1000
    assert len(edges(drawing)) == 39


def test_a_line_longer_than_the_drawing_is_cut_at_its_far_end(
    attempt: Callable[..., Attempt],
) -> None:
    attempts = [
        attempt(f"{place}-01", Stage.TRAINED, float(place), parents=(f"{place - 1}-01",))
        for place in range(1, 101)
    ]
    drawn = lineage(attempts, "100-01", most=10)
    assert [node.iteration for node in drawn.nodes] == list(range(91, 101))


def test_a_circle_of_parents_is_drawn(attempt: Callable[..., Attempt]) -> None:
    """An archive that somebody changed may hold one."""
    attempts = [
        attempt("1-01", Stage.TRAINED, 1.0, parents=("2-01", "1-01")),
        attempt("2-01", Stage.TRAINED, 2.0, parents=("1-01",)),
    ]
    drawing = svg(draw(lineage(attempts, "2-01")))
    assert edges(drawing) == {("1-01", "2-01"), ("2-01", "1-01")}


@pytest.mark.parametrize("words", ["</svg><script>alert(1)</script>", "a\x1b[31mb\x00", "a & b"])
def test_names_and_reasons_are_text(attempt: Callable[..., Attempt], words: str) -> None:
    hostile = attempt("1-01", Stage.FAILED, reason=words).model_copy(update={"id": words})
    drawn = draw(lineage([hostile, attempt("1-02", Stage.TRAINED, 1.0)]), words, lambda name: name)
    drawing = svg(drawn)
    assert {element.tag for element in drawing.iter()} <= {
        "svg",
        "text",
        "tspan",
        "g",
        "a",
        "circle",
    }
    shown = words.replace("\x1b", "\\x1b").replace("\x00", "\\x00")
    assert shown.split()[0] in "".join(drawing.itertext())


def test_nothing_is_drawn_of_no_attempt() -> None:
    assert draw(lineage([])) == ""
