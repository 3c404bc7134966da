"""Scripts and styles of the charts, which a document holds itself or a server sends."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "static"
SCRIPTS = ("uPlot.iife.min.js", "charts.js")
"""In the order in which they run; the last one draws the charts above it."""
STYLES = ("uPlot.min.css", "style.css")


@cache
def asset(name: str) -> str:
    """Text of a file in `static/`."""
    return (FOLDER / name).read_text(encoding="utf-8")


def content_security_policy(scripts: tuple[str, ...], styles: tuple[str, ...]) -> str:
    """Policy that allows these inline scripts and styles, media within the document, and nothing
    else, so no request leaves it."""
    return (
        f"default-src 'none'; script-src {_hashes(scripts)}; style-src {_hashes(styles)};"
        " img-src data:; media-src data:; base-uri 'none'; form-action 'none'"
    )


def _hashes(texts: tuple[str, ...]) -> str:
    digests = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts)
    return " ".join(f"'sha256-{digest}'" for digest in digests)
