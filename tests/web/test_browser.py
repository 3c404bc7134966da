"""The page in a real browser: nothing is asked of another host, nothing breaks the policy, no
script fails."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from browsers import watched
from page_runs import HOSTILE, add_trained, finish, new_run
from page_server import PageServer, serving
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect

from eureka_agent.archive.files import locked

pytestmark = pytest.mark.browser
PLAIN = "/runs/20260101-000000_jumper_jump"
BAD = "/runs/20260102-000000_jumper_jump"


def cookie(server: PageServer) -> dict[str, str]:
    return {"name": server.access.cookie, "value": server.access.session, "url": server.origin}


@pytest.fixture(scope="module")
def context(browser: Browser, server: PageServer) -> Iterator[BrowserContext]:
    made = browser.new_context(viewport={"width": 1200, "height": 900})
    made.add_cookies([cookie(server)])  # type: ignore[list-item]
    yield made
    made.close()


@pytest.fixture
def page(context: BrowserContext, server: PageServer) -> Iterator[Page]:
    with watched(context, server.origin) as watched_page:
        yield watched_page


def test_the_printed_address_opens_the_page_and_hides_the_token(
    browser: Browser, server: PageServer
) -> None:
    context = browser.new_context()
    with watched(context, server.origin) as page:
        page.goto(server.access.address)
        expect(page.get_by_role("heading", name="Runs")).to_be_visible()
        assert page.url == f"{server.origin}/"
        assert page.evaluate("document.cookie") == ""
        page.get_by_role("link", name="jump high").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("jump high")
    context.close()


def test_charts_are_drawn_and_headings_are_in_order(page: Page, server: PageServer) -> None:
    page.goto(f"{server.origin}{PLAIN}")
    expect(page.locator("figure.chart canvas")).to_have_count(4)
    inked = page.evaluate(
        """() => [...document.querySelectorAll("figure.chart canvas")].map((canvas) =>
            canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.some(Boolean))"""
    )
    assert inked == [True] * 4
    levels = page.evaluate(
        "[...document.querySelectorAll('h1,h2,h3')].map((each) => Number(each.tagName[1]))"
    )
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    # tables have headers, drawings and videos a name
    assert page.evaluate(
        "[...document.querySelectorAll('table')].every((each) => each.querySelector('th[scope=col]'))"
    )
    assert page.evaluate(
        "[...document.querySelectorAll('svg, video')].every((each) => each.getAttribute('aria-label'))"
    )


@pytest.mark.parametrize(
    "path",
    [
        "/",
        BAD,
        f"{BAD}/attempts/1-01",
        f"{BAD}/attempts/1-02",
        f"{BAD}/compare?attempt=1-01&attempt=1-02",
    ],
)
def test_hostile_text_is_shown_and_does_nothing(page: Page, server: PageServer, path: str) -> None:
    page.on("dialog", lambda dialog: pytest.fail(f"a script ran: {dialog.message}"))
    page.goto(f"{server.origin}{path}")
    expect(page.locator("main")).to_contain_text(HOSTILE[:40])
    assert page.locator("img").count() == 0


def test_no_page_is_wider_than_a_phone_and_all_are_dark_at_night(
    browser: Browser, server: PageServer
) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 800}, color_scheme="dark")
    context.add_cookies([cookie(server)])  # type: ignore[list-item]
    compared = "compare?attempt=1-01&attempt"
    paths = ["/", PLAIN, f"{PLAIN}/attempts", f"{PLAIN}/attempts/2-01", f"{PLAIN}/{compared}=2-01"]
    paths += [BAD, f"{BAD}/attempts/1-02", f"{BAD}/{compared}=1-02"]
    with watched(context, server.origin) as page:
        for path in paths:
            page.goto(f"{server.origin}{path}")
            assert page.evaluate("document.documentElement.scrollWidth") <= 390, path
            background = page.evaluate("getComputedStyle(document.body).backgroundColor")
            assert max(int(part) for part in background[4:-1].split(",")) < 60, path
    context.close()


def test_ticked_attempts_are_compared_and_their_videos_play_in_step(
    page: Page, server: PageServer, wait_until: Callable[[Callable[[], bool], float], bool]
) -> None:
    page.goto(f"{server.origin}{PLAIN}")
    page.get_by_label("compare 1-01").check()
    page.get_by_label("compare 2-01").check()
    page.get_by_role("button", name="Compare").click()
    expect(page.locator("video")).to_have_count(2)
    scrub = page.get_by_label("position in all videos")
    expect(page.locator("[data-time]")).to_have_text("0.0 of 2.0 s")
    scrub.fill("500")

    def times() -> list[float]:
        script = "[...document.querySelectorAll('video')].map((each) => each.currentTime)"
        found: list[float] = page.evaluate(script)
        return found

    assert wait_until(lambda: all(abs(each - 1.0) < 0.05 for each in times()), 10.0)
    page.get_by_role("button", name="Play").click()
    assert wait_until(lambda: min(times()) > 1.3, 10.0)
    one, other = times()
    assert abs(one - other) < 0.2
    page.get_by_role("button", name="Pause").click()
    assert page.evaluate("[...document.querySelectorAll('video')].every((each) => each.paused)")


def test_a_video_that_comes_late_is_put_where_the_others_are(
    page: Page, server: PageServer
) -> None:
    held: list[Route] = []
    moved = False
    page.route("**/videos/2-01/**", lambda each: each.continue_() if moved else held.append(each))
    page.goto(f"{server.origin}{PLAIN}/compare?attempt=1-01&attempt=2-01")
    expect(page.locator("[data-time]")).to_have_text("0.0 of 2.0 s")
    page.get_by_label("position in all videos").fill("500")
    assert held
    moved = True
    for route in held:
        route.continue_()
    late = page.locator("video[src*='2-01']")
    page.wait_for_function("(video) => video.currentTime === 1", arg=late.element_handle())


def test_a_run_grows_in_the_browser_and_keeps_what_the_person_opened(
    browser: Browser, tmp_path: Path
) -> None:
    """Entries of a journal that another writer holds: new rows, a new chart, then the end."""
    folder, archive = new_run(tmp_path)
    add_trained(archive, "1-01", 1.0)
    with serving(tmp_path) as server:
        context = browser.new_context()
        context.add_cookies([cookie(server)])  # type: ignore[list-item]
        with watched(context, server.origin) as page, locked(folder):
            page.goto(f"{server.origin}/runs/{folder.name}")
            expect(page.locator("#part-now")).to_contain_text("Nothing is training")
            page.locator("summary", has_text="All settings").click()
            page.get_by_label("compare 1-01").check()
            page.get_by_role("link", name="1-01").first.focus()
            add_trained(archive, "2-01", 5.0)
            expect(page.locator("#row-2-01")).to_contain_text("(best)", timeout=30_000)
            # what was there is the same element still
            expect(page.get_by_label("compare 1-01")).to_be_checked()
            expect(page.get_by_role("link", name="1-01").first).to_be_focused()
            assert page.locator("details[open] summary", has_text="All settings").count() == 1
            drawn = page.evaluate(
                "[...document.querySelectorAll('#charts figure')].map((each) => each.innerText)"
            )
            assert any("best attempt 5" in " ".join(text.split()) for text in drawn)
            finish(archive)
        with watched(context, server.origin) as page:
            page.goto(f"{server.origin}/runs/{folder.name}")
            expect(page.locator(".status")).to_have_text("finished")
            assert page.locator("#live").count() == 0
        context.close()
