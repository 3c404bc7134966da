"""Everything that a model writes is text in every Markdown file of a run, read by two parsers of
different schools: CommonMark's (markdown-it), and the first one's."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from html.parser import HTMLParser
from pathlib import Path

import pytest
from markdown import Markdown
from markdown_it import MarkdownIt
from markdown_it.token import Token

from eureka_agent.archive.artefacts import write_analysis, write_diagnosis, write_proposal
from eureka_agent.export.contents import Exported, text_files
from eureka_agent.export.folder import policy_description
from eureka_agent.markup import LONGEST_QUOTATION, escaped, quoted
from eureka_agent.records import (
    Attempt,
    ChannelSpec,
    Cost,
    DiagnosisFinding,
    Message,
    RunStatus,
    WrittenFitness,
)
from eureka_agent.report.ledger import Ledger
from eureka_agent.report.markdown import markdown
from eureka_agent.report.run_report import RunReport
from eureka_agent.rewards import CodeReward

HOSTILE = (
    "![seen](https://evil.example/pixel.png)",
    "<img src=https://evil.example/pixel.png>",
    "<script>alert(1)</script>",
    "<https://evil.example/auto>",
    "https://evil.example/bare",
    "www.evil.example",
    "mail@evil.example",
    "//evil.example/relative",
    "[click](javascript:alert(1))",
    "[click][reference] ![seen][reference]",
    "[reference]: https://evil.example/defined",
    "# a heading of its own",
    "a heading of its own\n===",
    "a heading of its own\n---",
    "| a | table |\n|---|---|\n| of | its own |",
    "``` \n![seen](https://evil.example/pixel.png)\n```",
    "`![seen](https://evil.example/pixel.png)` `` ` ![seen](https://evil.example/pixel.png)",
    "\\![seen](https://evil.example/pixel.png) \\\\<img src=x> \\`https://evil.example\\`",
    "&lt;img&gt; &#60;img src=x&#62; &amp;",
    "> quoted\n\n<details open><img src=x>\n\n</details>",
    "*strong* __strong__ _weak_ ~~gone~~ $math$",
    "$$\n\\href{https://evil.example}{x}\n$$",
    "1. a list\n- another\n+ and another",
    "    an indented block\n\t![seen](https://evil.example/pixel.png)",
    "a|b<img src=x>|`c`|https://evil.example|d",
    "`" * 7 + "\n![seen](https://evil.example/pixel.png)\n" + "`" * 7,
    "x\r![seen](https://evil.example/pixel.png)\u2028# heading",
)
ADDRESS = re.compile(r"//|www\.|@", re.IGNORECASE)
SOURCE = (
    'def compute_reward(height):\n    """\n```\n![seen](https://evil.example/pixel.png)\n"""\n   '
    " return height, {}\n"
)


def live_in_commonmark(text: str) -> list[str]:
    """Links, pictures, HTML, and addresses that a viewer which looks for bare ones would find."""
    found = []
    for token in _flat(MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text)):
        if token.type in ("image", "link_open", "html_block", "html_inline", "s_open"):
            found.append(f"{token.type} {token.content} {token.attrs}")
        if token.type == "text" and ADDRESS.search(token.content):
            found.append(f"bare {token.content}")
    return found


def _flat(tokens: list[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from _flat(token.children or [])


class _Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.names.append(tag)


def live_in_the_first_markdown(text: str) -> list[str]:
    elements = _Elements()
    elements.feed(Markdown(extensions=["tables", "fenced_code"]).convert(text))
    return [name for name in elements.names if name in ("img", "a", "script", "details", "iframe")]


def shown(text: str) -> str:
    """The text as a reader sees it."""
    parsed = [
        token
        for token in _flat(MarkdownIt("commonmark").enable("table").parse(text))
        if token.type != "inline"
    ]
    ends = ("softbreak", "hardbreak", "paragraph_close")
    return "".join("\n" if token.type in ends else token.content for token in parsed).strip()


def headings(text: str) -> list[str]:
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    return [
        after.content for token, after in itertools.pairwise(tokens) if token.type == "heading_open"
    ]


def tables(text: str) -> int:
    return [token.type for token in MarkdownIt("commonmark").enable("table").parse(text)].count(
        "table_open"
    )


def infected(report: RunReport, words: str) -> RunReport:
    """The report with the words in every place that a model, or what it wrote, can fill."""

    def attempt(each: Attempt) -> Attempt:
        update: dict[str, object] = {
            "proposal": each.proposal.model_copy(
                update={
                    "reward": CodeReward(source=SOURCE, author=words),
                    "reasoning": words,
                    "prompt": words,
                    "reply": words,
                }
            ),
            "reason": words,
            "analysis": words,
        }
        if each.diagnosis is not None:
            findings = (DiagnosisFinding(code="dominant-component", message=words, advice=words),)
            update["diagnosis"] = each.diagnosis.model_copy(
                update={"findings": findings, "text": words}
            )
        if each.verdict is not None:
            (finding,) = each.verdict.findings
            update["verdict"] = each.verdict.model_copy(
                update={"findings": (finding.model_copy(update={"message": words, "code": words}),)}
            )
        return each.model_copy(update=update)

    attempts = tuple(map(attempt, report.attempts))
    assert report.best is not None
    message = Message(
        role="designer", model=words, request="", reply="", cost=Cost(money=Decimal(1))
    )
    return replace(
        report,
        sentence=words,
        status=RunStatus.FAILED,
        message=words,
        designer=words,
        attempts=attempts,
        best=next(each for each in attempts if each.id == report.best.id),
        ledger=Ledger((message,)),
        cost=replace(report.cost, requests=1),
        description=report.description.model_copy(
            update={"fitness_doc": words, "fitness_unit": words}
        ),
        fitness_origin=words,
        written_fitness=WrittenFitness(
            sentence=words,
            source=SOURCE,
            doc=words,
            unit=words,
            reduction="sum",
            author=words,
            reasoning=words,
        ),
        settings=report.settings.model_copy(update={"sentence": words, "model": (words,)}),
        command=("eureka", "search", words),
        budget=(words,),
    )


@pytest.mark.parametrize("words", HOSTILE)
def test_a_report_holds_nothing_that_a_model_made_live(report: RunReport, words: str) -> None:
    text = markdown(infected(report, words))
    assert live_in_commonmark(text) == []
    assert live_in_the_first_markdown(text) == []
    harmless = markdown(infected(report, "words"))
    assert headings(text)[1:] == headings(harmless)[1:]
    assert tables(text) == tables(harmless)


@pytest.mark.parametrize("words", HOSTILE)
def test_a_reader_sees_what_was_written(words: str) -> None:
    line = " ".join(words.split())
    assert shown(escaped(words)) == line
    assert shown(quoted(words)).split() == words.split()


@pytest.mark.parametrize("words", HOSTILE)
def test_an_attempts_files_hold_nothing_that_a_model_made_live(
    report: RunReport, tmp_path: Path, words: str
) -> None:
    attempt = infected(report, words).attempts[0]
    for write in (write_proposal, write_diagnosis, write_analysis):
        write(tmp_path, attempt)
    files = sorted((tmp_path / "attempts" / attempt.id).glob("*.md"))
    assert [file.name for file in files] == ["analysis.md", "diagnosis.md", "prompt.md", "reply.md"]
    for file in files:
        text = file.read_text()
        assert live_in_commonmark(text) == []
        assert [token.type for token in MarkdownIt("commonmark").parse(text)] == ["fence"]
        assert words.strip().split("\r")[0] in text


@pytest.mark.parametrize("words", HOSTILE)
def test_an_exports_readme_holds_nothing_that_a_model_made_live(
    report: RunReport, words: str
) -> None:
    found = infected(report, words)
    assert found.best is not None
    exported = Exported(report=found, attempt=found.best, score=None)
    channel = ChannelSpec(
        name=words, entries=(words,), unit=words, frame=words, doc=words, range=(-1.0, 1.0)
    )
    description = found.description.model_copy(
        update={
            "observation_channels": (channel,) * found.description.num_observations,
            "action_channels": (channel,) * found.description.num_actions,
        }
    )
    count = description.num_observations
    policy = policy_description(description, [0.0] * count, [1.0] * count, {})
    readme = text_files(exported, policy, onnx=True)["README.md"].partition("\n")[
        2
    ]  # without the comment that marks it
    assert live_in_commonmark(readme) == []
    assert live_in_the_first_markdown(readme) == []
    assert headings(readme) == [
        "A reward and its policy",
        "What the reward reads",
        "The policy",
        "Versions",
    ]


def test_a_quotation_is_bounded() -> None:
    text = quoted("x" * (LONGEST_QUOTATION + 123))
    assert len(text) < LONGEST_QUOTATION + 100
    assert "123 more characters" in text


@pytest.mark.parametrize(
    "text", ["a" * 1_000_000, "`" * 1_000_000, "@" * 1_000_000, "[" * 1_000_000, "_" * 1_000_000]
)
def test_a_long_text_is_escaped_at_once(text: str) -> None:
    assert len(escaped(text)) < 2 * len(text) + 10
