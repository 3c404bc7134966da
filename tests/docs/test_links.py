"""Every relative link of the Markdown pages leads to a file."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"\]\((?!https?://|mailto:|#)([^)#\s]+)[^)]*\)")


def pages() -> list[Path]:
    """The tracked Markdown files; in a source distribution, which has no repository, all that are
    there."""
    if (ROOT / ".git").exists():
        listing = subprocess.run(
            ["git", "ls-files", "-z", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True
        )
        return [ROOT / name for name in listing.stdout.split("\0") if name]
    return [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_leads_to_a_file(page: Path) -> None:
    links = LINK.findall(page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_links_are_found() -> None:
    assert LINK.findall("[a](b.md#c) ![d](e/f.svg) [g](https://h) [i](#j)") == ["b.md", "e/f.svg"]
