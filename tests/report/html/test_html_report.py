"""`report.html` as a file: what it says, what it holds back, what it may load, how large it is."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from test_hostile_text import HOSTILE, infected

from eureka_agent.records import Attempt, ComponentSummary, Operator, Stage
from eureka_agent.report.html.document import html_report
from eureka_agent.report.run_report import RunReport

VOID = {"meta", "br"}
APART = {"td", "th", "li", "dt", "dd", "br"}
"""Elements that begin a new line or a new cell."""
CODE = {"code", "span", "br"}
"""Elements whose number depends on the words themselves."""


class Document(HTMLParser):
    """Elements, attributes, inline scripts and styles, and the text of a document."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.source = text
        self.elements: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.scripts: list[str] = []
        self.charts: list[dict[str, Any]] = []
        self.styles: list[str] = []
        self.text = ""
        self._open: list[str] = []
        self._is_chart = False
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        self.text += " " if tag in APART else ""
        if tag not in VOID:
            self._open.append(tag)
        self._is_chart = ("type", "application/json") in attrs

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        match self._open[-1:]:
            case ["script"] if self._is_chart:
                self.charts.append(json.loads(data))
            case ["script"]:
                self.scripts.append(data)
            case ["style"]:
                self.styles.append(data)
            case _:
                self.text += data

    def attribute(self, tag: str, name: str) -> list[str]:
        return [value for a_tag, a_name, value in self.attributes if (a_tag, a_name) == (tag, name)]

    @property
    def words(self) -> str:
        return " ".join(self.text.split())


def document(report: RunReport) -> Document:
    return Document(html_report(report))


@pytest.fixture
def with_terms(report: RunReport) -> RunReport:
    """The best attempt has two terms, of three quarters and of one."""
    assert report.best is not None
    assert report.best.diagnosis is not None
    terms = (
        ComponentSummary(
            name="effort", values=(-0.5, -0.25), maximum=-0.25, mean=-0.4, minimum=-0.5, share=0.25
        ),
        ComponentSummary(
            name="height", values=(0.5, 2.0), maximum=2.0, mean=1.2, minimum=0.5, share=0.75
        ),
    )
    diagnosis = report.best.diagnosis.model_copy(update={"components": terms})
    return replace(report, best=report.best.model_copy(update={"diagnosis": diagnosis}))


# ── what it says ──────────────────────────────────────────────────────────────────────────────────


def test_it_says_what_was_asked_what_won_and_why(with_terms: RunReport) -> None:
    found = document(with_terms)
    words = found.words
    headings = re.findall(r"<h2 .*?>(.*?)</h2>", found.source)
    assert headings == [
        "Verdict",
        "Scores",
        "The best reward function",
        "How it came about",
        "A clip of its policy",
        "Curves",
        "Lineage",
        "What failed, and why",
        "All attempts",
        "Cost and time",
        "How to reproduce it",
    ]
    assert words.index("jump as high as you can") < words.index("2.50 ± 0.50 m over 3 fresh seeds")
    assert "Attempt 2-01 (improve from 1-01), by the offline designer." in words
    assert "Compared with 1-01, which had fitness 1.50: no difference." in words
    assert "height is what counts" in words
    assert (
        "height 75 % pays 1.20 per step on average, from 0.500 at first to 2.00 at the end" in words
    )
    assert "effort 25 % costs 0.400 per step on average, from -0.500 at first" in words
    assert words.index("height 75 %") < words.index("effort 25 %")
    assert "human 2.00 ± 0.10 1.00 1.90, 2.00, 2.10 (from the cache)" in words
    assert "eureka search 'jump as high as you can' --env jumper" in words
    assert "Commit abc123." in words
    scores, iterations = found.charts
    assert [row["mean"] for row in scores["rows"]] == [2.5, 1.5, 2.0, 1.0]
    assert scores["y"]["label"] == iterations["y"]["label"] == "fitness (m)"
    assert iterations["series"][0]["values"] == [1.5, 2.5]


def test_the_difference_to_the_parent_is_shown(report: RunReport) -> None:
    assert report.best is not None
    assert '<pre class="difference">' not in html_report(report)  # the same source
    changed = "def compute_reward(height):\n    return 2 * height, {'height': 2 * height}\n"
    proposal = report.best.proposal
    proposal = proposal.model_copy(update={"reward": proposal.reward.with_source(changed)})
    best = report.best.model_copy(update={"proposal": proposal})
    text = html_report(replace(report, best=best))
    lines = re.findall(r'<span class="(added|removed)">(.*?)</span>', text)
    assert lines == [
        ("removed", "-    return height, {&#39;height&#39;: height}"),
        ("added", "+    return 2 * height, {&#39;height&#39;: 2 * height}"),
    ]
    assert "other form of height" in Document(text).words


# ── what others wrote ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "words",
    [*HOSTILE, "</script><script>alert(1)</script>", "<!--", '"><img src=x onerror=alert(1)>'],
)
def test_nothing_that_others_wrote_is_live(report: RunReport, words: str) -> None:
    found, harmless = document(infected(report, words)), document(infected(report, "words"))
    counted, expected = Counter(found.elements), Counter(harmless.elements)
    for name in CODE:
        del counted[name], expected[name]
    assert counted == expected
    assert {name for _, name, _ in found.attributes} == {name for _, name, _ in harmless.attributes}
    assert found.scripts == harmless.scripts
    assert [chart["kind"] for chart in found.charts] == [chart["kind"] for chart in harmless.charts]
    assert all(value.startswith("#attempt-") for value in found.attribute("a", "href"))
    first = words.split()[0]
    assert found.words.count(first) >= 3  # it is told


def test_control_characters_are_made_visible(report: RunReport) -> None:
    words = "\x1b[31mred\x1b[0m \x00 \u202egnp.exe \x9b2J \ud800 "
    text = html_report(infected(report, words))
    assert "\\x1b[31mred\\x1b[0m" in text
    assert "\\u202egnp.exe" in text
    assert {each for each in text if not each.isprintable()} <= {"\n", "\t"} | controls_of_scripts()


def controls_of_scripts() -> set[str]:
    from eureka_agent.report.html.document import SCRIPTS, STYLES, asset

    return {each for name in (*SCRIPTS, *STYLES) for each in asset(name) if not each.isprintable()}


# ── what it may load ──────────────────────────────────────────────────────────────────────────────


def test_the_policy_allows_the_scripts_and_styles_of_the_document_alone(report: RunReport) -> None:
    found = Document(html_report(report))
    policy = dict(
        part.strip().partition(" ")[::2]
        for part in found.attribute("meta", "content")[0].split(";")
    )

    def hashes(texts: list[str]) -> set[str]:
        digests = (hashlib.sha256(text.encode()).digest() for text in texts)
        return {f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests}

    assert len(found.scripts) == len(found.styles) == 2
    assert set(policy.pop("script-src").split()) == hashes(found.scripts)
    assert set(policy.pop("style-src").split()) == hashes(found.styles)
    assert policy == {
        "default-src": "'none'",
        "img-src": "data:",
        "media-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    # the policy stands before all that it governs
    assert found.elements.index("meta") < found.elements.index("style")


def test_no_address_is_in_the_file(report: RunReport) -> None:
    found = document(report)
    for tag, name, value in found.attributes:
        assert "//" not in value or name == "content", (tag, name, value)
        assert name != "style"  # the policy would refuse it
        assert name not in ("src", "href") or value.startswith(("#", "data:"))
    assert not re.search(r"url\(|@import", "".join(found.styles))
    assert "sourceMappingURL" not in "".join(found.scripts)


# ── size and time ─────────────────────────────────────────────────────────────────────────────────


def test_a_thousand_attempts_are_shown_in_brief(
    report: RunReport, attempt: Callable[..., Attempt]
) -> None:
    attempts = tuple(
        attempt(
            f"{place // 8 + 1}-{place % 8 + 1:02}",
            Stage.TRAINED if place % 4 else Stage.REJECTED,
            float(place) if place % 4 else None,
            operator=Operator.IMPROVE,
            reason="" if place % 4 else f"unknown variable {place} " * 20,
            finding="height makes up 97 % of the reward " * 5,
        )
        for place in range(1000)
    )
    text = html_report(replace(report, attempts=attempts, best=attempts[-1], scores=()))
    assert len(text) < 400_000
    assert "The first 100 of 1,000, best first." in text
    assert text.count('<tr id="attempt-') == 100
    assert "940 others are left out" in text
    assert "seen in trainings: dominant-component 750 × " in Document(text).words


@pytest.mark.parametrize("size", [0, 1, 200_000, (8 << 20) + 1])
def test_a_clip_is_embedded_where_it_is_small(report: RunReport, tmp_path: Path, size: int) -> None:
    clip = tmp_path / "best" / "video.mp4"
    clip.parent.mkdir()
    clip.write_bytes(bytes(place % 251 for place in range(size)))
    run = replace(report, folder=tmp_path)
    text = html_report(run)
    sources = Document(text).attribute("video", "src")
    if size > 8 << 20:
        assert sources == []
        assert f"too large for a document: <code>{clip}" in text
    else:
        (source,) = sources
        kind, _, content = source.partition(",")
        assert kind == "data:video/mp4;base64"
        assert base64.b64decode(content, validate=True) == clip.read_bytes()


def test_a_link_in_place_of_a_clip_is_not_followed(report: RunReport, tmp_path: Path) -> None:
    (tmp_path / "best").mkdir()
    (tmp_path / "secret").write_text("a person's own")
    (tmp_path / "best" / "video.mp4").symlink_to(tmp_path / "secret")
    found = document(replace(report, folder=tmp_path))
    assert found.attribute("video", "src") == []


def test_showing_a_run_imports_nothing_of_the_document() -> None:
    code = (
        "import sys, eureka_agent.report.tables, eureka_agent.search.summary,"
        " eureka_agent.report.html.document;"
        "sys.exit(any(name in sys.modules for name in ('jinja2', 'pygments')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
