"""Every relative link of the Markdown pages leads to a file, and to a heading if it names one."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"\]\((?!https?://|mailto:)([^)#\s]*)(?:#([^)\s]+))?[^)]*\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def pages() -> list[Path]:
    """The tracked Markdown files; in a source distribution, which has no repository, all that are
    there."""
    if (ROOT / ".git").exists():
        listing = subprocess.run(
            ["git", "ls-files", "-z", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True
        )
        return [ROOT / name for name in listing.stdout.split("\0") if name]
    return [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]


def anchors(text: str) -> set[str]:
    """The anchors that a forge gives to the headings: lower case, no marks, hyphens for spaces."""
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        for heading in HEADING.findall(text)
    }


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_leads_to_a_file_and_its_heading(page: Path) -> None:
    astray = []
    for file, anchor in LINK.findall(page.read_text(encoding="utf-8")):
        target = page.parent / file if file else page
        if not target.exists() or (anchor and anchor not in anchors(target.read_text("utf-8"))):
            astray.append(f"{file}#{anchor}")
    assert astray == []


def test_links_and_headings_are_found() -> None:
    links = "[a](b.md#c) ![d](e/f.svg) [g](https://h#x) [i](#j)"
    assert LINK.findall(links) == [("b.md", "c"), ("e/f.svg", ""), ("", "j")]
    headings = "# A `b`\n\ntext\n\n### 4. Check it, search-it: now\n"
    assert anchors(headings) == {"a-b", "4-check-it-search-it-now"}
