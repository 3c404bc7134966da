"""Forms of a refinement: each says one thing at the table, and is answered with what changes."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping
from typing import get_args
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from eureka_agent.designer.source_tools import tunable_constants
from eureka_agent.errors import EurekaError
from eureka_agent.feedback_records import Grade
from eureka_agent.report.run_report import RunReport
from eureka_agent.search.table import Decision, with_values
from eureka_agent.web.live import Parts, swaps
from eureka_agent.web.refine import parts as refine_parts
from eureka_agent.web.refine.parts import (
    AFTER_CHOICE,
    AFTER_WORDS,
    edit_values,
    reading_values,
    said_line,
)
from eureka_agent.web.refine.session import PendingWish, Phase, RefineSession, RefineSessions
from eureka_agent.web.rendering import render
from eureka_agent.web.run_page import address
from eureka_agent.web.runs import OpenRun, OpenRuns, Reader

MOST_FIELDS = 300
CANNOT_TELL = "none"
_GRADES: Mapping[str, Grade | None] = {
    CANNOT_TELL: None,
    "2": 2,
    "1": 1,
    "0": 0,
    "-1": -1,
    "-2": -2,
}
Fields = Mapping[str, list[str]]
Handler = Callable[[RefineSession, Fields], Awaitable[tuple[str, Parts]]]
"""Carries out a form: a sentence for the person, and the parts that changed."""


class RefineForms:
    """Addresses below `/runs/{run}/refine`."""

    def __init__(self, sessions: RefineSessions, runs: OpenRuns, reader: Reader) -> None:
        self._sessions = sessions
        self._runs = runs
        self._reader = reader
        handlers: dict[str, Handler] = {
            "read": _read,
            "accept": _accept,
            "drop": _drop,
            "compare": _compare,
            "choose": _choose,
            "mark": _mark,
            "rank": _rank,
            "edit": _edit,
            "judge": _judge,
            "withdraw": _withdraw,
            "undo": _undo,
        }
        base = "/runs/{run}/refine"
        self.routes = [
            Route(base, self._page),
            Route(f"{base}/state", self._state),
            Route(f"{base}/parts/{{part}}", self._part),
            Route(f"{base}/begin", self._begin, methods=["POST"]),
            Route(f"{base}/decide", self._decide, methods=["POST"]),
            *(
                Route(f"{base}/{name}", self._form(handler), methods=["POST"])
                for name, handler in handlers.items()
            ),
        ]

    async def _page(self, request: Request) -> Response:
        name = str(request.path_params["run"])

        def read() -> RunReport:
            return self._runs.use(name, OpenRun.report)

        report = await self._reader(read)
        return HTMLResponse(refine_parts.page(report, self._sessions.of(name)))

    async def _state(self, request: Request) -> Response:
        """Trainings under way; a browser that shows another turn of the session loads anew."""
        session = self._sessions.of(str(request.path_params["run"]))
        if session is None or request.query_params.get("turn") != str(session.turn):
            return _reload()
        html = refine_parts.now(session)
        return HTMLResponse(html) if html else Response(status_code=204)

    async def _part(self, request: Request) -> Response:
        """A part that waits for its clips; nothing until they are there."""
        session, name = self._session(request), str(request.path_params["part"])
        if name not in ("clips", "pair"):
            raise EurekaError(f"there is no part {name[:50]!r}", "expected clips or pair")
        if session.phase is not Phase.ASKING:
            return _reload()
        return HTMLResponse(refine_parts.parts(session, [name])[name])

    async def _begin(self, request: Request) -> Response:
        try:
            await self._sessions.begin(str(request.path_params["run"]))
        except EurekaError as error:
            return _answer(fault=error)
        return _reload()

    async def _decide(self, request: Request) -> Response:
        fields = await _fields(request)
        decision = _one(fields, "decision")
        try:
            if decision not in get_args(Decision):
                raise EurekaError(f"{decision[:50]!r} is no decision", "use the page's buttons")
            self._session(request).decided(decision)  # type: ignore[arg-type]
        except EurekaError as error:
            return _answer(fault=error)
        return _answer("Going on …")

    def _form(self, handler: Handler) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            fields = await _fields(request)
            try:
                sentence, parts = await handler(self._session(request), fields)
            except EurekaError as error:
                return _answer(fault=error)
            return _answer(sentence, parts)

        return answer

    def _session(self, request: Request) -> RefineSession:
        name = str(request.path_params["run"])
        session = self._sessions.of(name)
        if session is None:
            raise EurekaError(f"nobody refines {name[:100]!r} in this page", "begin a session")
        return session


async def _fields(request: Request) -> Fields:
    text = (await request.body()).decode(errors="replace")
    try:
        return parse_qs(text, keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ValueError:  # more fields than any form has
        return {}


def _one(fields: Fields, name: str) -> str:
    """A field's text, with line ends as in a file; browsers send those of DOS."""
    return fields.get(name, [""])[0].replace("\r\n", "\n")


def _number(fields: Fields, name: str) -> float:
    """A field's number. Raises EurekaError."""
    text = _one(fields, name)
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise EurekaError(f"the field {name!r} is {text[:50]!r}", "expected a number")
    return value


def _reload() -> Response:
    return Response(status_code=204, headers={"hx-refresh": "true"})


def _answer(
    sentence: str = "", parts: Parts | None = None, fault: EurekaError | None = None
) -> Response:
    """A sentence beside the form, and parts that are replaced."""
    html = render("parts/refine/answer.html", sentence=sentence, fault=fault)
    return HTMLResponse(html + swaps(parts or {}, "innerHTML"))


# ── words ─────────────────────────────────────────────────────────────────────────────────────────


async def _read(session: RefineSession, fields: Fields) -> tuple[str, Parts]:
    """Have a wish read; a correction of an earlier reading is told with it."""
    table, correction = session.table, _one(fields, "correction").strip()
    wish = table.wish(_one(fields, "attempt"), _one(fields, "saw"), _one(fields, "wants"))
    number = 1 if session.pending is None else session.pending.number + 1
    reading = await table.read(wish, correction)
    session.pending = PendingWish(number, wish, reading, correction)
    run = address(session.name)
    html = render("parts/refine/reading.html", run=run, **reading_values(session))
    return "", {"reading": html}


async def _accept(session: RefineSession, fields: Fields) -> tuple[str, Parts]:
    table, pending = session.table, session.pending
    if pending is None or _one(fields, "number") != str(pending.number):
        raise EurekaError("another reading has come since", "read your wish again")
    number = table.accept(pending.wish, pending.reading, pending.correction)
    session.pending = None
    return f"Recorded as {number}.", refine_parts.parts(session, AFTER_WORDS)


async def _drop(session: RefineSession, fields: Fields) -> tuple[str, Parts]:
    session.pending = None
    return "Nothing is recorded.", refine_parts.parts(session, ["words"])


# ── choices ───────────────────────────────────────────────────────────────────────────────────────


async def _compare(session: RefineSession, fields: Fields) -> tuple[str, Parts]:
    table, grade = session.table, _one(fields, "grade")
    last = str(table.feedback[-1].number) if table.feedback else "0"
    if _one(fields, "asked") != last:  # a key that was pressed twice, or another tab
        return "That pair was answered already.", refine_parts.parts(session, AFTER_CHOICE)
    if grade not in _GRADES:
        raise EurekaError(f"{grade[:50]!r} is no grade", "use the page's buttons")
    table.compare(_one(fields, "first"), _one(fields, "second"), _GRADES[grade])
    said = said_line(table.feedback[-1])
    return f"Recorded: {said}.", refine_parts.parts(session, AFTER_CHOICE)


async def _choose(session: RefineSession, fields: Fields) -> tuple[str, Parts]:
    best, worst = _one(fields, "best") or None, _one(fields, "worst") or None
    number = session.table.choose(fields.get("shown", []), best, worst)
    return f"Recorded as {number}.", refine_parts.parts(session, AFTER_CHOICE)


async def _mark(session: RefineSession, fields: Fields) -> tuple[str, Parts]:
    panel, second = round(_number(fields, "panel")), _number(fields, "second")
    table = session.table
    number = await table.mark(_one(fields, "attempt"), second, panel, _one(fields, "note"))
    return f"Recorded as {number}.", refine_parts.parts(session, ["said"])


async def _rank(session: RefineSession, fields: Fields) -> tuple[str, Parts]:
    number = session.table.rank(_one(fields, "of"), fields.get("order", []))
    return f"Recorded as {number}.", refine_parts.parts(session, ["said"])


async def _judge(session: RefineSession, fields: Fields) -> tuple[str, Parts]:
    session.table.judge_by(_one(fields, "by"))
    return "", refine_parts.parts(session, AFTER_CHOICE)


async def _withdraw(session: RefineSession, fields: Fields) -> tuple[str, Parts]:
    number = _one(fields, "number")
    session.table.withdraw(int(number) if number.isdecimal() and len(number) < 10 else -1)
    return f"{number} counts no more.", refine_parts.parts(session, (*AFTER_CHOICE, "order"))


async def _undo(session: RefineSession, fields: Fields) -> tuple[str, Parts]:
    last = session.table.undo()
    what = "There is nothing to take back." if last is None else f"Taken back: {said_line(last)}."
    return what, refine_parts.parts(session, (*AFTER_CHOICE, "order"))


# ── an edit ───────────────────────────────────────────────────────────────────────────────────────


async def _edit(session: RefineSession, fields: Fields) -> tuple[str, Parts]:
    """Load another reward, move its constants, have the critic judge it, or give it."""
    table, action = session.table, _one(fields, "do")
    attempt, source = _one(fields, "attempt"), _one(fields, "source")
    if action == "load":
        values = edit_values(table, attempt, table.source(attempt) if attempt else "")
        return "", refine_parts.parts(session, ["edit"], **values)
    source = with_values(source, _moved(source, fields))
    if action == "give":
        verdict, number = await table.give(source, attempt)
        if number is not None:
            values = edit_values(table, attempt, source, verdict)
            said = f"Recorded as {number}: it is trained in the next round."
            return said, refine_parts.parts(session, ["edit", "said"], **values)
    else:
        verdict = await table.check_reward(source)
    values = edit_values(table, attempt, source, verdict)
    return "", refine_parts.parts(session, ["edit"], **values)


def _moved(source: str, fields: Fields) -> dict[str, float]:
    """Constants whose slider was moved: each slider tells the decimal logarithm of a factor."""
    moved = {}
    for name, value in tunable_constants(source).items():
        field = f"constant-{name}"
        if field in fields and (power := _number(fields, field)):
            moved[name] = value * 10.0 ** min(max(power, -1.0), 1.0)
    return moved
