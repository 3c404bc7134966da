"""Lines of the Markdown pages have at most 100 columns, but for what cannot be broken."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parents[2]
COLUMNS = 100
FOLDERS = ("", "docs", "sandboxes", "benchmarks", "envs", "runs")
PAGES = sorted(page for folder in FOLDERS for page in (ROOT / folder).glob("*.md"))
PARSER = MarkdownIt("commonmark").enable("table")


def unbreakable_lines(text: str) -> set[int]:
    """The numbers, from 0, of the lines of tables and code blocks."""
    kinds = ("table_open", "fence", "code_block")
    spans = [token.map for token in PARSER.parse(text) if token.type in kinds and token.map]
    return {line for start, end in spans for line in range(start, end)}


def long_lines(text: str) -> Iterator[int]:
    """The numbers, from 1, of lines that are too long and could be broken at a space."""
    unbreakable = unbreakable_lines(text)
    for index, line in enumerate(text.splitlines()):
        words = line.removeprefix("- ").split()
        if len(line) > COLUMNS and len(words) > 1 and index not in unbreakable:
            yield index + 1


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_lines_are_at_most_100_columns_long(page: Path) -> None:
    name = page.relative_to(ROOT)
    text = page.read_text(encoding="utf-8")
    assert [f"{name}:{line}" for line in long_lines(text)] == []


def test_the_pages_are_found() -> None:
    names = {str(page.relative_to(ROOT)) for page in PAGES}
    assert {"README.md", "docs/gpu.md", "sandboxes/README.md", "benchmarks/LOG.md"} <= names


def test_prose_is_held_to_the_width_and_tables_code_and_links_are_not() -> None:
    prose = "word " * 20 + "é"  # 101 columns, 102 bytes
    link = f"[a](https://example.org/{'x' * 100})"
    text = f"{prose[:100]}\n{prose}\n\n    {prose}\n\n- {prose}\n\n- {link}\n\n"
    text += f"```\n{prose}\n```\n\n| a |\n|---|\n| {prose} |\n"
    assert list(long_lines(text)) == [2, 6]
