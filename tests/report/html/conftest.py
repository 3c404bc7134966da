"""A browser for documents."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium for one file of tests, since its event loop runs until it is closed; tests are skipped
    where there is none, unless EUREKA_REQUIRE_BROWSER is 1."""
    chromium = shutil.which("chromium")
    if chromium is None and os.environ.get("EUREKA_REQUIRE_BROWSER") != "1":
        pytest.skip("needs chromium on PATH")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield started
        started.close()
