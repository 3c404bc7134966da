"""A refinement in the page: a real server, real workers, a real browser."""

from __future__ import annotations

import html
import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from browsers import watched
from command_line import CommandLine
from drawing_here import NEEDS_DRAWING
from page_runs import add_trained, new_run
from page_server import PageServer, serving
from playwright.sync_api import Browser, Locator, Page, expect

from eureka_agent.archive.files import locked
from eureka_agent.archive.run_folder import open_run
from eureka_agent.feedback_records import (
    Choice,
    Comparison,
    Edit,
    Feedback,
    Importance,
    Judge,
    Mark,
    Wish,
)
from eureka_agent.records import Operator, RunStatus

ENVIRONMENT = Path(__file__).parents[2] / "envs/_templates/torch"
SEARCH = (
    *("search", "--env", "./puck", "--iterations", "1", "--samples", "2", "--finalists", "0"),
    *("--confirm", "0", "--env-steps", "2048", "--num-envs", "16", "--evaluation-episodes", "4"),
)
PATIENCE_MS = 60_000
"""Time for workers to start and for trainings on a busy machine."""
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    """A search of one generation."""
    folder = tmp_path_factory.mktemp("refine-page")
    shutil.copytree(ENVIRONMENT, folder / "puck", ignore=shutil.ignore_patterns("__pycache__"))
    eureka = CommandLine(folder)
    eureka(*SEARCH)
    return eureka


@pytest.fixture
def server(made: CommandLine) -> Iterator[PageServer]:
    with serving(made.folder / "runs") as running:
        yield running


@pytest.fixture
def run(made: CommandLine) -> Path:
    return made.run_folder()


def said(folder: Path) -> list[Feedback]:
    opened = open_run(folder, reading=True)
    found = [each.feedback for each in opened.archive.state.feedback]
    opened.archive.close()
    return found


def sent(client: httpx.Client, run: Path, form: str, **fields: str) -> str:
    """Answer to a form as the page's script sends it."""
    headers = {"hx-request": "true", "origin": str(client.base_url).rstrip("/")}
    answer = client.post(f"/runs/{run.name}/refine/{form}", data=fields, headers=headers)
    assert answer.status_code in (200, 204), answer.text
    return answer.text


def post(client: httpx.Client, run: Path, form: str, **fields: str) -> str:
    """The same in words."""
    text = re.sub(r"<[^>]+>", " ", sent(client, run, form, **fields))
    return " ".join(html.unescape(text).split())


def asked(client: httpx.Client, run: Path, wait_until: Callable[..., bool]) -> None:
    """Begin a session, and wait until the person is asked."""
    post(client, run, "begin")
    page = f"/runs/{run.name}/refine"
    assert wait_until(lambda: "Train the next generation" in client.get(page).text, 60.0)


def move_slider(slider: Locator, power: str) -> None:
    """Move a slider as a hand does: it tells each place, and then that it was let go."""
    slider.evaluate(
        """(slider, power) => {
            slider.value = power;
            for (const kind of ["input", "change"])
                slider.dispatchEvent(new Event(kind, { bubbles: true }));
        }""",
        power,
    )


@pytest.mark.browser
@NEEDS_DRAWING
def test_words_choices_and_an_edit_refine_a_run_in_the_page(
    browser: Browser, server: PageServer, run: Path
) -> None:
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    with watched(context, server.origin) as page:
        page.set_default_timeout(PATIENCE_MS)
        expect.set_options(timeout=PATIENCE_MS)
        server.enter(page)
        page.goto(f"{server.origin}/runs/{run.name}")
        page.get_by_role("link", name="Refine this run").click()
        page.get_by_role("button", name="Begin").click()
        expect(page.get_by_text("Generation 1 is trained.")).to_be_visible()
        expect(page.locator("#part-clips video")).to_have_count(2)
        expect(page.locator("#part-pair video")).to_have_count(2)
        answer_by_keys(page)
        choose_and_mark(page)
        wish(page)
        order_terms(page)
        edit(page)
        page.get_by_role("button", name="my choices").click()
        expect(page.locator("#part-board")).to_contain_text("ranked by your choices")
        page.get_by_role("button", name="Train the next generation").click()
        expect(page.get_by_text("Generation 2 is trained.")).to_be_visible()
        expect(page.locator("#part-clips video")).to_have_count(2)
        page.get_by_role("button", name="End the session").click()
        expect(page.get_by_text("The session has ended.")).to_be_visible()
    context.close()

    kinds = [type(each) for each in said(run)]
    assert kinds == [Comparison, Choice, Mark, Wish, Importance, Edit, Judge]
    comparison, choice, mark, wanted, order, given, _ = said(run)
    assert isinstance(comparison, Comparison)
    assert comparison.grade == -2
    assert isinstance(choice, Choice)
    assert (choice.best, choice.worst) == ("1-02", "1-01")
    assert isinstance(mark, Mark)
    assert (mark.second, mark.clip.episode, mark.note) == (0.25, 1, "too fast")
    assert mark.state.startswith("step 5 of")
    assert isinstance(wanted, Wish)
    assert wanted.wants == "use less effort (that is: less energy)"
    assert wanted.reading is not None
    assert isinstance(order, Importance)
    assert isinstance(given, Edit)
    opened = open_run(run, reading=True)
    assert opened.status is RunStatus.FINISHED
    own, other = opened.archive.attempts(1)
    assert own.proposal.operator is Operator.EDIT
    assert own.proposal.reward.source == given.source
    assert "wishes" in other.proposal.reasoning
    opened.archive.close()
    assert "Train the next generation" not in (run / "log.txt").read_text()


def answer_by_keys(page: Page) -> None:
    """An answer, its undoing, another answer."""
    page.locator("#compare").click()
    page.keyboard.press("1")
    expect(page.locator("#answer-pair")).to_contain_text("is much better than")
    page.keyboard.press("u")
    expect(page.locator("#answer-said")).to_contain_text("counts no more")
    expect(page.locator("#part-said")).to_contain_text("Nothing yet")
    page.keyboard.press("5")
    expect(page.locator("#part-said")).to_contain_text("is much worse than")


def choose_and_mark(page: Page) -> None:
    page.locator("input[name=best][value='1-02']").check()
    page.locator("input[name=worst][value='1-01']").check()
    page.get_by_role("button", name="Record best and worst").click()
    expect(page.locator("#part-said")).to_contain_text("1-02 is best, 1-01 is worst")
    page.locator("summary", has_text="Mark the second").click()
    page.get_by_label("panel").select_option("2")
    page.locator("#part-clips").get_by_label("position in all videos").fill("50")
    assert float(page.get_by_label("second").input_value()) > 0.0  # it follows the clips
    page.get_by_label("second").fill("0.25")
    page.get_by_label("what goes wrong").fill("too fast")
    page.get_by_role("button", name="Mark it").click()
    expect(page.locator("#part-said")).to_contain_text("marks 1-01 at 0.25 s: too fast")


def wish(page: Page) -> None:
    """Words whose reading is corrected before it is agreed to. Digits in a field are no keys."""
    page.get_by_label("What did you see?").fill("it overshoots")
    page.get_by_label("What did you see?").press("5")
    page.get_by_label("What do you want changed?").fill("use less effort")
    page.get_by_role("button", name="Read it back to me").click()
    expect(page.get_by_text("I take this as")).to_be_visible()
    page.get_by_label("No, I mean").fill("less energy")
    page.get_by_role("button", name="Read it again").click()
    expect(page.get_by_label("No, I mean")).to_have_value("")
    page.get_by_role("button", name="That is right").click()
    expect(page.locator("#part-said")).to_contain_text(
        "it overshoots5; wants: use less effort (that is"
    )
    expect(page.get_by_label("What did you see?")).to_have_value("")


def order_terms(page: Page) -> None:
    before = page.locator("#part-order ol").first.locator("li label").all_inner_texts()
    page.get_by_role("button", name=f"{before[0].strip()} matters less").click()
    page.get_by_role("button", name="Record the order").first.click()
    expected = " > ".join(name.strip() for name in (before[1], before[0], *before[2:]))
    expect(page.locator("#part-said")).to_contain_text(expected)


def edit(page: Page) -> None:
    """A fault is shown at its line; a constant is moved; the reward is given."""
    source = page.get_by_label("source of the reward")
    right = source.input_value()
    source.fill(right + "\n    undefined_name\n")
    page.get_by_role("button", name="Ask the critic").click()
    expect(page.get_by_text("The critic rejects it")).to_be_visible()
    expect(page.locator("#part-edit tr.found + tr.finding").first).to_be_visible()
    source.fill(right)
    slider = page.locator("[data-constant]").first
    value = float(slider.get_attribute("data-constant") or "")
    name = page.locator(".constant code").first.inner_text()
    move_slider(slider, "0.3")
    expect(page.get_by_text("The critic accepts it")).to_be_visible()
    (written,) = re.findall(rf"^{name} = (\S+)", source.input_value(), re.MULTILINE)
    assert float(written) == pytest.approx(value * 10**0.3, rel=1e-3)
    page.get_by_role("button", name="Train it in the next round").click()
    expect(page.locator("#answer-edit")).to_contain_text("it is trained next")


def test_what_is_wrong_is_told_in_a_sentence_and_nothing_is_recorded(
    server: PageServer, run: Path, wait_until: Callable[..., bool]
) -> None:
    before = said(run)
    with server.client() as client:
        assert "nobody refines" in post(client, run, "read", wants="slow")
        asked(client, run, wait_until)
        for form, fields, fault in (
            ("say", {"kind": "decision", "then": "explode"}, "'decision.then' is 'explode'"),
            ("say", {"kind": "choice", "shown": "1-01"}, "expected at least 2 values"),
            ("say", {"kind": "comparison", "asked": "-3"}, "that pair was answered already"),
            ("say", {"entry": "[" * 100_000}, "this says nothing"),
            ("say", {}, "'feedback' is"),
            ("read", {"wants": " "}, "say what you want changed"),
            ("read", {"wants": "slow", "kind": "edit", "hat": "red"}, "'wish.hat' is none"),
            ("mark", {"attempt": "1-01", "second": "inf", "panel": "1"}, "expected a number"),
            ("mark", {"attempt": "1-01", "second": "1", "panel": "4"}, "is no place in a clip"),
            ("edit", {"do": "give", "attempt": "1-01", "source": "def"}, "The critic rejects it"),
        ):
            assert fault in post(client, run, form, **fields), form
        headers = {"hx-request": "true", "origin": server.origin}
        large = client.post(
            f"/runs/{run.name}/refine/read", content=b"x" * (1 << 20), headers=headers
        )
        assert large.status_code == 413
        assert "more than" in large.text
        post(client, run, "say", kind="decision", then="leave")
        page = f"/runs/{run.name}/refine"
        assert wait_until(lambda: "The session has ended" in client.get(page).text, 30.0)
    assert said(run) == before


def test_a_session_begins_only_where_no_other_and_on_a_run_of_ones_own(
    server: PageServer,
    run: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    wait_until: Callable[..., bool],
) -> None:
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("XDG_STATE_HOME", str(tmp_path / "somebody-else"))
        folder, archive = new_run(run.parent)
        add_trained(archive, "1-01", 1.0)
    archive.close()
    try:
        with server.client() as client:
            assert "is not your own" in post(client, folder, "begin")
            page = f"/runs/{run.name}/refine"
            with locked(run):
                post(client, run, "begin")
                assert wait_until(lambda: "is being worked on" in client.get(page).text, 60.0)
            asked(client, run, wait_until)  # it can be begun again
            post(client, run, "begin")  # of another tab: the same session
            assert "Train the next generation" in client.get(page).text
    finally:
        shutil.rmtree(folder)


def test_the_servers_end_keeps_a_session_that_is_training(
    made: CommandLine, run: Path, wait_until: Callable[..., bool]
) -> None:
    with serving(run.parent) as server, server.client() as client:
        asked(client, run, wait_until)
        wish = {"wants": "a small distance from the goal", "saw": 'it\'s <b>&"fast"</b>'}
        reading = sent(client, run, "read", **wish)
        assert "I take this as" in reading
        (agreed,) = re.findall(r"hx-vals='([^']*)'", reading)
        assert "recorded as" in post(client, run, "say", **json.loads(agreed))
        post(client, run, "say", kind="decision", then="another")
    wanted = said(run)[-1]
    assert isinstance(wanted, Wish)
    assert wanted.saw == wish["saw"]
    assert wanted.reading is not None
    opened = open_run(run, reading=True)
    assert opened.status is RunStatus.STOPPED
    opened.archive.close()
    with serving(run.parent) as server, server.client() as client:
        asked(client, run, wait_until)
        page = client.get(f"/runs/{run.name}/refine").text
        assert "wants: a small distance from the goal" in page
