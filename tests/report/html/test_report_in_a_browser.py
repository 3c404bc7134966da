"""`report.html` in a real browser: nothing is refused, charts are drawn, the clip is loaded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import av
import numpy as np
import pytest
from browsers import cut_off

from eureka_agent.records import CurvePoint
from eureka_agent.report.curves import write_curves_csv
from eureka_agent.report.html.document import html_report
from eureka_agent.report.run_report import RunReport

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser
DRAWN = """figure => {
    const canvas = figure.querySelector("canvas"), copy = new OffscreenCanvas(canvas.width, canvas.height);
    const context = copy.getContext("2d", {willReadFrequently: true});
    context.drawImage(canvas, 0, 0);
    const {data} = context.getImageData(0, 0, canvas.width, canvas.height);
    return new Set(new Uint32Array(data.buffer)).size;
}"""
"""Number of colours in a chart's canvas."""


def write_clip(path: Path) -> None:
    """Ten frames of a square that moves."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=10)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for place in range(10):
            picture = np.full((48, 64, 3), 30, np.uint8)
            picture[10:20, 4 * place : 4 * place + 10] = (240, 120, 40)
            frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode())


@pytest.fixture
def document(report: RunReport, point: Callable[..., CurvePoint], tmp_path: Path) -> Path:
    """A document with all charts and a clip, of a run that somebody named badly."""
    curves = [point(500 * place, float(place)) for place in range(1, 60)]
    for name, scale in (("1-01", 1.0), ("2-01", 2.0), ("2-02", 0.5)):
        folder = tmp_path / "attempts" / name
        folder.mkdir(parents=True)
        scaled = [each.model_copy(update={"fitness": scale * each.fitness}) for each in curves]
        write_curves_csv(folder / "curves.csv", scaled)
    (tmp_path / "best").mkdir()
    write_clip(tmp_path / "best" / "video.mp4")
    words = "hop </script><script>document.title = 'taken'</script><img src=x onerror=alert(1)>"
    description = report.description.model_copy(update={"fitness_unit": words})
    run = replace(report, folder=tmp_path, sentence=words, description=description)
    (tmp_path / "report.html").write_text(html_report(run), encoding="utf-8")
    return tmp_path / "report.html"


@pytest.mark.parametrize(("width", "scheme"), [(1100, "light"), (390, "dark")])
def test_the_document_works_in_a_browser(
    browser: Browser, document: Path, width: int, scheme: str
) -> None:
    context = browser.new_context(
        viewport={"width": width, "height": 800},
        color_scheme=scheme,  # type: ignore[arg-type]
    )
    page = context.new_page()
    complaints: list[str] = []
    requests: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: requests.append(request.url.partition(",")[0]))
    page.goto(document.as_uri())
    page.wait_for_function("document.querySelector('video').readyState >= 2")

    figures = page.locator("figure.chart")
    assert figures.count() == 3  # scores, the best attempts' curves, iterations
    for place in range(3):
        figure = figures.nth(place)
        assert figure.evaluate(DRAWN) > 20  # lines and letters with smooth edges
        assert figure.locator(".legend li").count() >= 4
    video = page.evaluate(
        "() => { const {duration, videoWidth} = document.querySelector('video');"
        " return [duration, videoWidth]; }"
    )
    assert video == [pytest.approx(1.0, abs=0.15), 64]
    # at the end of the line of the best attempt: twice the last of 59 points
    curves = figures.nth(1)
    best = curves.locator(".legend li", has_text="2-01 (best)")
    assert best.locator(".value").inner_text() == "118"
    before = curves.evaluate(DRAWN)
    best.get_by_role("button").click()
    assert best.get_by_role("button").get_attribute("aria-pressed") == "false"
    page.wait_for_function(f"figure => ({DRAWN})(figure) !== {before}", arg=curves.element_handle())
    # nothing is wider than the screen, but what scrolls by itself
    assert page.evaluate("document.documentElement.scrollWidth") == width
    if width > 800:  # on a phone a long word of the unit scrolls
        assert cut_off(page) == []
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(20, 23, 28)")
    assert page.title().startswith("hop </script>")
    assert complaints == []
    assert {url.partition(":")[0] for url in requests} <= {"file", "data"}
    assert [url for url in requests if url.startswith("file")] == [document.as_uri()]
    context.close()


def test_the_policy_holds_a_script_back_that_is_not_of_the_document(
    browser: Browser, document: Path
) -> None:
    text = document.read_text(encoding="utf-8")
    document.write_text(text.replace("</main>", "<script>document.title = 'taken'</script></main>"))
    page = browser.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.goto(document.as_uri())
    assert page.title() != "taken"
    assert any("Content Security Policy" in each for each in complaints)
    page.close()
