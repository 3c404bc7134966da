"""Forms of a refinement: each says one thing, and is answered with the parts of the page that
change."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing, suppress
from functools import partial
from typing import Any
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from eureka_agent.analysis.standing import choices_of, what_ranks
from eureka_agent.archive.run_folder import open_run
from eureka_agent.designer.source_tools import tunable_constants, with_constants
from eureka_agent.errors import EurekaError
from eureka_agent.feedback_records import ANSWERS
from eureka_agent.invocation import command
from eureka_agent.records import Attempt, Verdict
from eureka_agent.report.html.document import blocks_html
from eureka_agent.report.run_report import RunReport
from eureka_agent.search import board
from eureka_agent.search.resumption import is_own
from eureka_agent.settings import judge_of
from eureka_agent.web.live import Parts, swaps
from eureka_agent.web.refine.session import RefineSession
from eureka_agent.web.rendering import code_lines, render, without_line
from eureka_agent.web.run_page import address, now_values
from eureka_agent.web.runs import OpenRun, OpenRuns, Reader, folder_of

PARTS = ("clips", "pair", "words", "order", "edit", "board", "said")
AFTER_CHOICE = ("pair", "board", "said")
AFTER = {
    "wish": ("words", "said"),
    "importance": ("said",),
    "mark": ("said",),
    "decision": (),
    "withdrawal": (*AFTER_CHOICE, "order"),
}
"""Parts that change after feedback of a kind; of another one, those after a choice."""
MOST_FIELDS = 300
_LISTS = ("shown", "order")
"""Fields of several values."""
Fields = dict[str, Any]
Answer = tuple[str, Parts]
"""A sentence for the person, and the parts that changed."""


class RefineForms:
    """Addresses below `/runs/{run}/refine`, and the session of this server: one at a time, since
    each has workers of its own."""

    def __init__(self, runs: OpenRuns, reader: Reader) -> None:
        self._runs = runs
        self._reader = reader
        self._last: RefineSession | None = None
        self._closed = False
        base = "/runs/{run}/refine"
        handlers = {"say": _say, "undo": _undo, "read": _read, "mark": _mark, "edit": _edit}
        self.routes = [
            Route(base, self._page),
            Route(f"{base}/state", self._state),
            Route(f"{base}/parts/{{part}}", self._part),
            Route(f"{base}/begin", self._begin, methods=["POST"]),
        ]
        for name, handler in handlers.items():
            form = partial(self._form, handler)
            self.routes.append(Route(f"{base}/{name}", form, methods=["POST"]))

    async def close(self) -> None:
        """End the session that is open."""
        self._closed = True
        if self._last is not None:
            with suppress(asyncio.CancelledError):
                await self._last.close()

    def _of(self, request: Request) -> RefineSession | None:
        """The last session on the run, also one that has ended."""
        last = self._last
        return last if last is not None and last.name == request.path_params["run"] else None

    async def _page(self, request: Request) -> Response:
        name = str(request.path_params["run"])
        report = await self._reader(lambda: self._runs.use(name, OpenRun.report))
        return HTMLResponse(page(report, self._of(request)))

    async def _state(self, request: Request) -> Response:
        """Trainings under way; a browser that shows another turn of the session loads anew."""
        session = self._of(request)
        if session is None or request.query_params.get("turn") != str(session.turn):
            return _reload()
        html = now(session)
        return HTMLResponse(html) if html else Response(status_code=204)

    async def _part(self, request: Request) -> Response:
        """A part anew, such as one that waits for its clips."""
        session, name = self._of(request), str(request.path_params["part"])
        if name not in PARTS:
            expected = ", ".join(PARTS)
            raise EurekaError(f"there is no part {name[:50]!r}", f"expected one of {expected}")
        if session is None or session.phase != "asking":
            return _reload()
        return HTMLResponse(parts(session, [name])[name])

    async def _begin(self, request: Request) -> Response:
        """Begin a session on a run, where there is none."""
        name = str(request.path_params["run"])
        try:
            await self._reader(lambda: _check(name))
            last = self._last
            if last is None or last.phase == "ended":
                if not self._closed:
                    self._last = RefineSession(folder_of(name), name)
            elif last.name != name:
                what = f"this page works on the run {last.name!r}"
                raise EurekaError(what, "end that session first")
        except EurekaError as error:
            return _answer(fault=error)
        return _reload()

    async def _form(
        self, handler: Callable[[RefineSession, Fields], Awaitable[Answer]], request: Request
    ) -> Response:
        """Carry out a form, with a sentence beside it for what is wrong."""
        try:
            session = self._of(request)
            if session is None:
                name = str(request.path_params["run"])
                raise EurekaError(f"nobody refines {name[:100]!r} in this page", "begin a session")
            return _answer(*await handler(session, await _fields(request)))
        except EurekaError as error:
            return _answer(fault=error)


def _check(name: str) -> None:
    """Raise EurekaError for a run that this person may not go on with unasked."""
    run = open_run(folder_of(name), reading=True)
    with closing(run.archive):
        if not is_own(run, attempts=True):
            raise EurekaError(
                f"the run {name!r} is not your own, and refining it would run its code",
                f"look at it first; `{command('refine ' + name)}` says what it would do, and asks",
            )


async def _fields(request: Request) -> Fields:
    """The fields of a form that are not empty, with line ends as in a file; browsers send those of
    DOS."""
    text = (await request.body()).decode(errors="replace")
    try:
        fields = parse_qs(text, max_num_fields=MOST_FIELDS)
    except ValueError:  # more fields than any form has
        return {}
    lists: Fields = {name: fields[name] for name in _LISTS if name in fields}
    return {name: texts[0].replace("\r\n", "\n") for name, texts in fields.items()} | lists


def _number(fields: Fields, name: str) -> float:
    """A field's number, 0 without one. Raises EurekaError."""
    try:
        value = float(fields.get(name, "0"))
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise EurekaError(f"the field {name!r} is {fields[name][:50]!r}", "expected a number")
    return value


def _reload() -> Response:
    return Response(status_code=204, headers={"hx-refresh": "true"})


def _answer(
    sentence: str = "", parts: Parts | None = None, fault: EurekaError | None = None
) -> Response:
    """A sentence beside the form, and parts that are replaced."""
    html = render("parts/refine/answer.html", sentence=sentence, fault=fault)
    return HTMLResponse(html + swaps(parts or {}, "innerHTML"))


# ── what the forms do ─────────────────────────────────────────────────────────────────────────────


async def _say(session: RefineSession, fields: Fields) -> Answer:
    """Say what the fields tell, by their names or as JSON in one of them."""
    at, said = session.refinement, fields
    if "entry" in fields:
        try:
            said = dict(json.loads(fields["entry"]))
        except (ValueError, TypeError, RecursionError):
            raise EurekaError("this says nothing", "use the page's buttons") from None
    if "asked" in said:
        choices = choices_of(at.run.archive.state.feedback)
        if said.pop("asked") != str(choices[-1].number if choices else 0):
            # a key that was pressed twice, or another tab
            return "that pair was answered already", parts(session, AFTER_CHOICE)
        said["grade"], _ = ANSWERS.get(str(said.pop("key", "")), ("unknown", ""))
    answer, kind = at.say(said), said.get("kind")
    return answer, parts(session, AFTER.get(str(kind), AFTER_CHOICE))


async def _undo(session: RefineSession, fields: Fields) -> Answer:
    return session.refinement.undo(), parts(session, AFTER["withdrawal"])


async def _read(session: RefineSession, fields: Fields) -> Answer:
    """Have a wish read; a correction of an earlier reading is told with it."""
    at, correction = session.refinement, fields.pop("correction", "").strip()
    read = await at.read({**fields, "kind": "wish"}, correction)
    reading, entry = blocks_html([board.reading_facts(at.run, read)]), read.model_dump_json()
    run = address(session.name)
    html = render("parts/refine/reading.html", run=run, reading=reading, entry=entry)
    return "", {"reading": html}


async def _mark(session: RefineSession, fields: Fields) -> Answer:
    panel, second = round(_number(fields, "panel")), _number(fields, "second")
    attempt, note = fields.get("attempt", ""), fields.get("note", "")
    answer = await session.refinement.mark(attempt, second, panel, note)
    return answer, parts(session, AFTER["mark"])


async def _edit(session: RefineSession, fields: Fields) -> Answer:
    """Load another reward, move its constants, have the critic judge it, or give it."""
    at, action, attempt = session.refinement, fields.get("do"), fields.get("attempt", "")
    source, answer = fields.get("source", ""), ""
    verdict: Verdict | None = None
    if action == "load":
        source = board.source_of(at.run, attempt) if attempt else ""
    else:
        source = with_constants(source, _moved(source, fields))
        if action == "give":
            verdict, answer = await at.give(source, attempt)
        else:
            verdict = await at.verdict(source)
    return answer, parts(session, ("edit", "said"), **edit_values(attempt, source, verdict))


def _moved(source: str, fields: Fields) -> dict[str, float]:
    """Constants whose slider was moved: each slider tells the decimal logarithm of a factor."""
    moved = {}
    for name, value in tunable_constants(source).items():
        if power := _number(fields, f"constant-{name}"):
            moved[name] = value * 10.0 ** min(max(power, -1.0), 1.0)
    return moved


# ── parts of the page, as HTML by their names ─────────────────────────────────────────────────────


def page(report: RunReport, session: RefineSession | None) -> str:
    """The whole page."""
    shown: Parts = {}
    latest: list[Attempt] = []
    if session is not None and session.phase == "asking":
        shown = parts(session, PARTS)
        latest = board.newest(session.refinement.run.archive.state)[:1]
    elif session is not None:
        shown = {"now": now(session)}
    return render(
        "refine.html",
        title=f"refine {report.sentence}",
        report=report,
        run=address(report.run_name),
        session=session,
        phase="" if session is None else session.phase,
        parts=shown,
        latest=latest,
    )


def now(session: RefineSession) -> str:
    """Trainings under way; empty while the person is asked."""
    run = session.view.state.started
    if session.phase != "training" or run is None:
        return ""
    values = now_values(session.view)
    return render("parts/now.html", running=True, env_steps=run.settings.env_steps, **values)


def parts(session: RefineSession, names: Sequence[str], **more: Any) -> Parts:
    """HTML of these parts. `more`: values besides those that follow from the run."""
    run = session.refinement.run
    state, judge = run.archive.state, judge_of(run.settings)
    choices, judges = choices_of(state.feedback), {"fitness": "fitness", "choices": "my choices"}
    path, best = address(session.name), board.best_name(run)
    if "edit" in names and not more:
        more = edit_values(best, board.source_of(run, best) if best else "")
    link = partial(address, session.name, "attempts")
    values = {
        "run": path,
        "shown": partial(_shown, session),
        "newest": board.newest_names(run),
        "attempts": board.trained_names(run),
        "panels": board.CLIP_STARTS,
        "seconds": board.CLIP_SECONDS,
        "next_pair": partial(board.next_pair, run),
        "answers": ANSWERS,
        "answered": len(choices),
        "asked": choices[-1].number if choices else 0,
        "best": best,
        "rankable": partial(board.rankable, run),
        "board": lambda: blocks_html(board.board(run), link),
        "by": what_ranks(state.feedback),
        "judges": {**judges, "model": judge} if judge else judges,
        "said": partial(board.said_lines, run),
        **more,
    }
    return {name: render(f"parts/refine/{name}.html", **values) for name in names}


def _shown(session: RefineSession, names: Sequence[str]) -> tuple[dict[str, str] | None, str]:
    """Addresses of clips by attempt, None while they are made; and why there are none."""
    try:
        paths = session.clips(names)
    except EurekaError as error:
        return {}, f"{error.message}. {error.hint}"
    if paths is None:
        return None, ""
    run = session.name
    return {each: address(run, "videos", each, path.name) for each, path in paths.items()}, ""


def edit_values(attempt: str, source: str, verdict: Verdict | None = None) -> dict[str, Any]:
    """Values of the editor. `verdict`: the critic's on this source."""
    findings = () if verdict is None else verdict.findings
    lines = code_lines(source, findings) if findings and source.strip() else []
    return {
        "attempt": attempt,
        "source": source,
        "constants": tunable_constants(source),
        "verdict": verdict,
        "lines": lines,
        "elsewhere": without_line(findings, lines),
    }
