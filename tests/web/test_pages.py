"""The pages of runs and attempts, over real HTTP."""

from __future__ import annotations

import html
import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import httpx
import pytest
from page_runs import HOSTILE, add_trained, finish, new_run
from page_server import PageServer

from eureka_agent.web.rendering import FOLDER

PLAIN = "/runs/20260101-000000_jumper_jump"
BAD = "/runs/20260102-000000_jumper_jump"


def words(answer: httpx.Response) -> str:
    """Text of a page, without marks."""
    assert answer.status_code == 200, answer.text
    text = re.sub(r"<script.*?</script>", " ", answer.text, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", text)).split())


def test_the_list_has_all_runs_and_why_one_cannot_be_opened(client: httpx.Client) -> None:
    text = words(client.get("/"))
    assert "3 runs, newest first" in text
    # fitness over two fresh seeds, 3.0 and 3.2, against 2.5 and 2.7: ± is the sample deviation
    assert (
        "jump high jumper · jump · 20260101-000000_jumper_jump finished 3.10 ± 0.14 m 2.60 ± 0.14 m 2 of 4"
        in text
    )
    assert "$0.0200" in text
    assert "20260103-000000_jumper_jump unreadable" in text
    assert text.index("20260103") < text.index("20260102") < text.index("20260101")


def test_a_run_shows_verdict_scores_leaderboard_cost_and_log(client: httpx.Client) -> None:
    text = words(client.get(PLAIN))
    assert "attempt 2-01 (improve): fitness 3.10 ± 0.14 m over 2 fresh seeds" in text
    assert "2-01 (best) 3.10 ± 0.14 3.00, 3.20" in text
    assert "1 2-01 (best) improve 1-01 trained 3.00 1" in text
    assert "2 1-01 fresh trained 2.00 1" in text
    assert "1-02 fresh rejected – A101 it reads a file" in text
    assert "1-03 fresh failed – it returned NaN" in text
    assert "designer openai/tiny 1 1,000 0 200 2.0 s $0.0200" in text
    assert "[ 1.0 s] the last line" in text
    assert "eureka search 'jump high'" in text


def charts(answer: httpx.Response) -> dict[str, dict]:
    """Data of the charts of a page by their titles."""
    found = re.findall(
        r'<figure class="chart"><figcaption><b>(.*?)</b>.*?<script type="application/json">(.*?)</script>',
        answer.text,
    )
    return {title: json.loads(data) for title, data in found}


def test_a_runs_charts_have_its_numbers(client: httpx.Client) -> None:
    found = charts(client.get(PLAIN))
    rows = {
        row["name"]: row["mean"]
        for row in found["Scores from fresh seeds, mean ± standard deviation"]["rows"]
    }
    assert rows == pytest.approx({"2-01": 3.1, "human": 2.6, "sparse": 0.1})
    finals = found["Final trainings, from fresh seeds"]
    human = next(each for each in finals["series"] if each["role"] == "human")
    assert finals["x"]["values"] == [333, 666, 999]
    assert human["values"][-1] == pytest.approx(2.6)
    # 2.5 and 2.7 have the sample deviation 0.1414
    assert (human["low"][-1], human["high"][-1]) == pytest.approx((2.4586, 2.7414), abs=1e-4)
    assert found["Fitness per iteration"]["series"][0]["values"] == [2.0, 3.0]


def test_an_attempt_shows_code_findings_difference_reasoning_and_prompts(
    client: httpx.Client,
) -> None:
    answer = client.get(f"{PLAIN}/attempts/2-01")
    text = words(answer)
    assert "improve from 1-01" in text
    assert "-    return height, {&#34;height&#34;: height}" in answer.text
    assert "+    return 2.0 * height, {&#34;height&#34;: height}" in answer.text
    assert "because it is high" in text
    assert "the whole prompt" in text
    assert "the whole reply" in text
    assert "2 episodes of its last score" in text
    assert charts(answer)["Fitness over the training"]["series"][0]["values"] == [1.0, 2.0, 3.0]
    assert 'src="/runs/20260101-000000_jumper_jump/videos/2-01/video.mp4"' in answer.text


def test_a_finding_stands_below_its_line(client: httpx.Client) -> None:
    text = words(client.get(f"{PLAIN}/attempts/1-01"))
    third = text.index("3 return height")
    assert 0 < text.index("warning C301 it is always positive centre it") - third < 80


def test_two_attempts_are_compared_to_the_first(client: httpx.Client) -> None:
    answer = client.get(f"{PLAIN}/compare", params={"attempt": ["2-01", "1-01"]})
    assert "2 attempts side by side" in words(answer)
    assert "-    return 2.0 * height" in answer.text
    assert answer.text.count("<video") == 2
    series = charts(answer)["Fitness over the training"]["series"]
    assert {each["name"]: each["values"][-1] for each in series} == {"2-01": 3.0, "1-01": 2.0}


@pytest.mark.parametrize(
    "names", [[], ["1-01"], ["1-01", "1-01"], ["1-01", "1-02", "1-03", "2-01", "x"]]
)
def test_a_comparison_of_too_few_or_too_many_says_so(
    client: httpx.Client, names: list[str]
) -> None:
    answer = client.get(f"{PLAIN}/compare", params={"attempt": names})
    assert answer.status_code == 400
    assert "expected 2 to 4" in answer.text


@pytest.mark.parametrize(
    ("order", "names"),
    [
        ("best", ["2-01", "1-01", "1-03", "1-02"]),
        ("newest", ["2-01", "1-03", "1-02", "1-01"]),
        ("rejected", ["1-02"]),
        ("failed", ["1-03"]),
    ],
)
def test_attempts_are_listed_in_each_order(
    client: httpx.Client, order: str, names: list[str]
) -> None:
    page = client.get(f"{PLAIN}/attempts", params={"order": order}).text
    assert re.findall(r'<tr id="row-(.*?)"', page) == names


def test_many_attempts_come_in_pages(client: httpx.Client, runs: Path) -> None:
    folder, archive = new_run(runs, samples=120)
    for number in range(120):
        add_trained(archive, f"1-{number + 1:02}", float(number))
    finish(archive)
    try:
        run = f"/runs/{folder.name}"
        overview = client.get(run).text
        assert len(re.findall(r'<tr id="row-', overview)) == 20
        assert "all 120 attempts" in overview
        shown = [
            re.findall(r'<tr id="row-(.*?)"', client.get(f"{run}/attempts?page={page}").text)
            for page in (1, 2, 3)
        ]
        assert [len(page) for page in shown] == [50, 50, 20]
        assert shown[0][0] == "1-120"
        assert len({name for page in shown for name in page}) == 120
        for page in ("0", "-1", "99", "x", "9" * 30):
            assert client.get(f"{run}/attempts?page={page}").status_code == 200
    finally:
        folder.rename(runs.parent / folder.name)


def test_a_run_that_grows_is_read_further(client: httpx.Client, runs: Path) -> None:
    folder, archive = new_run(runs)
    try:
        run = f"/runs/{folder.name}"
        assert "No attempt yet" in client.get(run).text
        add_trained(archive, "1-01", 1.0)
        assert "1-01 (best)" in words(client.get(run))
        add_trained(archive, "1-02", 2.0)
        text = words(client.get(run))
        assert "1 1-02 (best) fresh trained 2.00" in text
        assert "2 1-01 fresh trained 1.00" in text
        finish(archive)
        assert "finished" in words(client.get(run))
        # another run in the same place is another file
        folder.rename(runs.parent / "away")
        replaced, other = new_run(runs, "jump low")
        finish(other)
        replaced.rename(folder)
        assert "jump low" in words(client.get(run))
    finally:
        folder.rename(runs.parent / "replaced")


# ── hostile ───────────────────────────────────────────────────────────────────────────────────────


class Elements(HTMLParser):
    """Elements and attributes of a page, as a browser reads it."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


@pytest.mark.parametrize(
    "path",
    [
        "/",
        BAD,
        f"{BAD}/attempts",
        f"{BAD}/attempts/1-01",
        f"{BAD}/attempts/1-02",
        f"{BAD}/compare?attempt=1-01&attempt=1-02",
    ],
)
def test_hostile_text_stays_text(client: httpx.Client, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 200
    elements = Elements()
    elements.feed(answer.text)
    scripts = [given for tag, given in elements.found if tag == "script"]
    assert all(
        given.get("type") == "application/json" or str(given.get("src")).startswith("/static/")
        for given in scripts
    )
    for tag, given in elements.found:
        assert tag != "img"
        assert not [name for name in given if name.startswith("on") or name == "style"]
        for name in ("href", "src", "action", "hx-get"):
            assert str(given.get(name, "/")).startswith(("/", "#", "?"))
    assert "alert(1)" in answer.text  # it is shown
    assert "\x1b" not in answer.text
    assert "\x07" not in answer.text
    assert "49" not in HOSTILE
    assert "{{7*7}}" in answer.text


@pytest.mark.parametrize(
    ("file", "content", "fault"),
    [
        ("settings.yaml", "iterations: 1e99999", "iterations"),
        ("settings.yaml", "samples: [", "settings.yaml"),
        ("environment.json", '{"environment": NaN}', "environment.json"),
        ("archive.sqlite", "SQLite format 3", "archive.sqlite"),
    ],
)
def test_a_damaged_run_harms_no_other_in_the_list(
    client: httpx.Client, runs: Path, file: str, content: str, fault: str
) -> None:
    folder, archive = new_run(runs)
    finish(archive)
    (folder / file).write_text(content)
    try:
        text = words(client.get("/"))
        assert f"{folder.name} unreadable" in text
        assert "20260101-000000_jumper_jump finished 3.10" in text
        answer = client.get(f"/runs/{folder.name}")
        assert answer.status_code == 404
        assert fault in answer.text
    finally:
        shutil.rmtree(folder)


# ── files ─────────────────────────────────────────────────────────────────────────────────────────


def test_a_video_is_sent_in_ranges(client: httpx.Client, runs: Path) -> None:
    whole = (runs / "20260101-000000_jumper_jump/best/video.mp4").read_bytes()
    answer = client.get(f"{PLAIN}/videos/best/video.mp4")
    assert (answer.status_code, answer.content) == (200, whole)
    assert answer.headers["content-type"] == "video/mp4"
    part = client.get(f"{PLAIN}/videos/best/video.mp4", headers={"range": "bytes=10-19"})
    assert (part.status_code, part.content) == (206, whole[10:20])
    assert part.headers["content-range"] == f"bytes 10-19/{len(whole)}"


@pytest.mark.parametrize(
    "path",
    [
        "/videos/best/archive.sqlite",
        "/videos/1-01/reward.py",
        "/videos/../best/video.mp4",
        "/videos/..%2fbest/video.mp4",
        "/videos/%2e%2e/video.mp4",
        "/videos/..%2f..%2f20260102-000000_jumper_jump%2fbest/video.mp4",
        "/videos/best/..%2fsettings.yaml",
        "/videos/best/video.mp4%00.txt",
        "/videos/linked/video.mp4",
        "/videos/1-02/video.mp4",
        "/../../etc/passwd",
        "/videos/best//etc/passwd",
    ],
)
def test_no_path_leaves_the_run(server: PageServer, runs: Path, path: str) -> None:
    reward = runs / "20260101-000000_jumper_jump" / "attempts" / "1-01" / "reward.py"
    reward.write_text("a secret of the run's")
    outside = runs.parent / "outside"
    outside.mkdir(exist_ok=True)
    (outside / "video.mp4").write_bytes(b"a secret of the person's")
    linked = runs / "20260101-000000_jumper_jump" / "attempts" / "linked"
    if not linked.is_symlink():
        linked.symlink_to(outside)
    answer = server.raw(
        f"GET {PLAIN}{path} HTTP/1.1\r\nHost: 127.0.0.1:{server.access.port}\r\n"
        f"Cookie: {server.access.cookie}={server.access.session}\r\nConnection: close\r\n\r\n"
    )
    assert answer.split()[1] == "404"
    assert "secret" not in answer
    assert "root:" not in answer


@pytest.mark.parametrize(
    "path",
    ["page.py", "../app.py", "..%2fapp.py", "%2e%2e/app.py", "../../static/page.js", "", "."],
)
def test_static_files_are_the_programs_own(server: PageServer, path: str) -> None:
    for folder in ("page", "charts"):
        answer = server.raw(
            f"GET /static/{folder}/{path} HTTP/1.1\r\nHost: 127.0.0.1:{server.access.port}\r\nConnection: close\r\n\r\n"
        )
        assert answer.split()[1] in ("401", "404")
        assert "import" not in answer


def test_templates_hold_no_script_no_style_and_no_other_address() -> None:
    for template in (FOLDER / "templates").rglob("*.html"):
        text = template.read_text(encoding="utf-8")
        assert "://" not in text, template
        assert not re.search(r"<style|\sstyle=|\son\w+=|hx-on|<script(?! src=)", text), template
        # the parts of a run are templates that were filled in, and escaped, already
        marked = re.findall(r"[\w.]+ *\| *safe", text)
        assert all(re.fullmatch(r"parts\.\w+ \| safe", each) for each in marked), template
