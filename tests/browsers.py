"""A real browser, and what it tells of a page."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page

NAMES = ("chromium", "chromium-browser", "google-chrome")


def executable() -> str | None:
    """Path of the browser."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def why_no_browser() -> str:
    """Why tests in a browser cannot run here; empty where they can."""
    return "" if executable() else f"needs a browser (.ci/browser): {NAMES[0]} is not on PATH"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The browser, for all tests of a module."""
    from playwright.sync_api import sync_playwright  # most tests need none

    path = executable()
    assert path is not None, why_no_browser()
    # root's processes have no rights to give up
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=arguments)
        yield started
        started.close()


def cut_off(page: Page) -> list[str]:
    """Beginnings of tables that are wider than their places, so that columns are out of sight."""
    script = (
        "[...document.querySelectorAll('.wide:has(table)')]"
        ".filter((each) => each.scrollWidth > each.clientWidth)"
        ".map((each) => each.innerText.slice(0, 80))"
    )
    found: list[str] = page.evaluate(script)
    return found


def _keep_picture(page: Page) -> None:
    """Keep what a tab shows at its test's end, where `EUREKA_SCREENSHOTS` names a folder."""
    folder = os.environ.get("EUREKA_SCREENSHOTS")
    if folder:
        test = os.environ.get("PYTEST_CURRENT_TEST", "tab").partition(" ")[0]
        name = re.sub(r"[^\w-]+", "_", test.partition("::")[2])
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)


@contextmanager
def watched(context: BrowserContext, origin: str) -> Iterator[Page]:
    """A tab that may ask nothing but this server, and may tell no error: neither a script's, nor a
    violation of the policy, nor a file that is missing."""
    told: list[str] = []

    def note(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            told.append(f"{message.type}: {message.text} {message.location}")

    page = context.new_page()
    page.on("console", note)
    page.on("pageerror", lambda error: told.append(f"script: {error}"))
    page.on(
        "request",
        lambda request: (
            None
            if f"{(url := urlsplit(request.url)).scheme}://{url.netloc}" == origin
            else told.append(f"asked {request.url[:200]}")
        ),
    )
    page.add_init_script(
        "addEventListener('securitypolicyviolation',"
        " (event) => console.error('policy: ' + event.violatedDirective + event.blockedURI))"
    )
    yield page
    _keep_picture(page)
    page.close()
    assert told == []
