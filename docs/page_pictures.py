"""Makes the README's pictures of the page, of a refinement and of report.html from a real run.

.venv/bin/python docs/page_pictures.py RUN

It needs Chromium. Nothing is said in the refinement but one wish, which is dropped.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

FOLDER = Path(__file__).resolve().parent
SIZE = {"width": 1100, "height": 1000}
PATIENCE_MS = 120_000


def picture(page: Page, name: str) -> None:
    """Keep what the window shows."""
    page.wait_for_function(
        "[...document.querySelectorAll('video')].every((each) => each.readyState > 1)"
    )
    page.wait_for_timeout(500)
    page.screenshot(path=FOLDER / f"{name}.jpg", quality=82)


def refinement(page: Page, address: str) -> None:
    """A session that is asked for a wish."""
    page.goto(address)
    page.get_by_role("button", name="Begin").click()
    page.locator("#part-clips video").first.wait_for()
    page.locator("#part-pair video").first.wait_for()
    page.get_by_label("What did you see?").fill("it hops far, and leans back")
    page.get_by_label("What do you want changed?").fill("keep the torso upright")
    page.get_by_role("button", name="Read it back to me").click()
    page.get_by_text("I take this as").wait_for()
    page.locator("#part-pair").get_by_label("position in all videos").fill("300")
    page.locator("#compare").scroll_into_view_if_needed()
    page.evaluate("document.querySelector('#compare').scrollIntoView()")
    picture(page, "refine")
    page.get_by_role("button", name="End the session").click()
    page.get_by_text("The session has ended").wait_for()


def main() -> None:
    """Write `page.jpg`, `refine.jpg` and `report.jpg` beside this file."""
    run = Path(sys.argv[1]).resolve()
    if run.parent.name != "runs":
        sys.exit(f"{run} is not in a folder `runs`: its pictures would show where it lies")
    environment = {name: value for name, value in os.environ.items() if name != "EUREKA_RUNS"}
    served = subprocess.Popen(
        [sys.executable, "-m", "eureka_agent.cli.main", "ui"],
        env=environment,
        cwd=run.parent.parent,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert served.stdout is not None
        address = served.stdout.readline().split()[-1]
        origin = address.partition("/?")[0]
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path="/usr/bin/chromium", args=["--no-sandbox"]
            )
            # the page's own policy forbids the scripts that wait for its videos
            context = browser.new_context(viewport=SIZE, bypass_csp=True)  # type: ignore[arg-type]
            page = context.new_page()
            page.set_default_timeout(PATIENCE_MS)
            page.goto(address)
            page.goto(f"{origin}/runs/{run.name}")
            page.evaluate("document.querySelector('video').currentTime = 2.5")
            picture(page, "page")
            refinement(page, f"{origin}/runs/{run.name}/refine")
            page.goto(f"file://{run / 'report.html'}")
            picture(page, "report")
            browser.close()
    finally:
        served.terminate()
        served.wait()


if __name__ == "__main__":
    main()
