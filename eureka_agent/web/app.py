"""Addresses of the page, and the answers to them."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, HTMLResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from eureka_agent.archive.files import is_held
from eureka_agent.archive.run_folder import (
    BATCH_FILE,
    list_batches,
    shown_runs_folder,
    unknown_attempt,
)
from eureka_agent.batch.folder import searches_of, state_in_words
from eureka_agent.batch.intents import IntentsFile
from eureka_agent.batch.summary import LEGEND, NUMBERS, Summary, by_column, counts
from eureka_agent.errors import EurekaError, RunFolderError, system_reason
from eureka_agent.invocation import FIRST_SEARCH, command
from eureka_agent.report.html.document import FOLDER as CHART_FILES
from eureka_agent.web import attempt_page, run_page
from eureka_agent.web.live import MOST_WATCHING, Feeds, LiveRun, Parts
from eureka_agent.web.refine.forms import RefineForms
from eureka_agent.web.rendering import FOLDER, media_type, render, templates, video_file
from eureka_agent.web.runs import OpenRun, OpenRuns, Reader, folder_of
from eureka_agent.web.security import Access, Guard

RUNS_ON_A_PAGE = 50
SHOWN_EVENTS = 30
"""Events on the page of a batch."""

Make = Callable[[OpenRun], str | None]
"""Makes the HTML of a run; None where it lacks an attempt."""


class Page:
    """The application: its open runs, their streams, and its routes."""

    def __init__(self, access: Access) -> None:
        self._reader = Reader(_prepare)
        self._runs = OpenRuns()
        self._summaries: dict[str, Summary] = {}
        """Rows of searches that have ended are read once."""
        self.feeds = Feeds(self._reader, self._parts)
        self.refining = RefineForms(self._runs, self._reader)
        routes = [
            Route("/", self._list),
            Route("/batches/{batch}", self._batch),
            Route("/runs/{run}", self._run),
            Route("/runs/{run}/live", self._live),
            Route("/runs/{run}/attempts", self._attempts),
            Route("/runs/{run}/attempts/{attempt}", self._attempt),
            Route("/runs/{run}/compare", self._compare),
            Route("/runs/{run}/videos/{place}/{name}", self._video),
            *self.refining.routes,
            Mount("/static/charts", StaticFiles(directory=CHART_FILES)),
            Mount("/static/page", StaticFiles(directory=FOLDER / "static")),
        ]
        handlers = {HTTPException: _failed, EurekaError: _failed, ClientDisconnect: _gone}
        inner = Starlette(routes=routes, exception_handlers=handlers)
        inner.router.redirect_slashes = False
        self.app: ASGIApp = Guard(inner, access, error_answer, _enter)

    def close(self) -> None:
        """End all streams and the reader."""
        self.feeds.close()
        self._reader.close()

    # ── pages ─────────────────────────────────────────────────────────────────────────────────────

    async def _list(self, request: Request) -> Response:
        page = _number(request.query_params.get("page"))

        def read() -> str:
            names = self._runs.names()
            pages = max(1, math.ceil(len(names) / RUNS_ON_A_PAGE))
            number = min(page, pages)
            chosen = names[(number - 1) * RUNS_ON_A_PAGE : number * RUNS_ON_A_PAGE]
            return render(
                "runs.html",
                title="runs",
                cards=[(run_page.address(name), self._runs.card(name)) for name in chosen],
                amount=len(names),
                page=number,
                pages=pages,
                batches=_links() if number == 1 else [],
                folder=shown_runs_folder(),
                command=command(FIRST_SEARCH),
            )

        return HTMLResponse(await self._reader(read))

    async def _batch(self, request: Request) -> Response:
        name = str(request.path_params["batch"])

        def read() -> str:
            folder = next((each for each in list_batches() if each.name == name), None)
            if folder is None:
                raise RunFolderError(f"there is no batch {name[:100]!r} here", "the list has all")
            intents, running = IntentsFile(folder), is_held(folder)
            searches = searches_of(intents, running)
            rows = self._summaries.setdefault(name, Summary(folder)).rows(searches)
            links = [run_page.address(f"{name}:{row.search}") if row.task else "" for row in rows]
            events = intents.now.events[: -SHOWN_EVENTS - 1 : -1]
            times = [datetime.fromtimestamp(each.time, UTC) for each in events]
            shown = [each.isoformat(timespec="seconds") for each in times]
            return render(
                "batch.html",
                title=name,
                state=state_in_words(searches, running=running),
                running=running,
                totals=counts(rows),
                numbers=NUMBERS,
                cells=by_column,
                legend=LEGEND,
                rows=list(zip(links, rows, strict=True)),
                events=list(zip(shown, events, strict=True)),
                steer=command("batch --help"),
            )

        return HTMLResponse(await self._reader(read))

    async def _run(self, request: Request) -> Response:
        return await self._page(request, lambda opened: run_page.run_page(opened.report()))

    async def _attempts(self, request: Request) -> Response:
        order = request.query_params.get("order", "best")
        if order not in run_page.ORDERS:
            raise HTTPException(404, f"there is no order {order[:100]!r} of attempts")
        page = _number(request.query_params.get("page"))
        return await self._page(
            request, lambda opened: run_page.attempts_page(opened.report(), order, page)
        )

    async def _attempt(self, request: Request) -> Response:
        name = str(request.path_params["attempt"])

        def make(opened: OpenRun) -> str | None:
            report, shown = opened.report(), attempt_page.read_shown(opened.run, name)
            return None if shown is None else attempt_page.attempt_page(report, shown)

        return await self._page(request, make, name)

    async def _compare(self, request: Request) -> Response:
        names = list(dict.fromkeys(request.query_params.getlist("attempt")))
        if not 2 <= len(names) <= attempt_page.MOST_COMPARED:
            raise HTTPException(
                400,
                f"{len(names)} attempts were chosen, expected 2 to {attempt_page.MOST_COMPARED}\n"
                "go back and tick the attempts to compare",
            )

        def make(opened: OpenRun) -> str | None:
            report = opened.report()
            found = [attempt_page.read_shown(opened.run, name) for name in names]
            known = [each for each in found if each is not None]
            return attempt_page.compare_page(report, known) if len(known) == len(names) else None

        return await self._page(request, make, " ".join(names))

    async def _page(self, request: Request, make: Make, attempt: str = "") -> Response:
        """HTML of a run; an attempt that it lacks is not found."""
        name = str(request.path_params["run"])

        def read() -> str:
            html = self._runs.use(name, make)
            if html is None:
                raise self._runs.use(name, lambda at: unknown_attempt(at.run, attempt[:100]))
            return html

        return HTMLResponse(await self._reader(read))

    # ── streams and files ─────────────────────────────────────────────────────────────────────────

    async def _live(self, request: Request) -> Response:
        name = str(request.path_params["run"])
        await self._reader(lambda: self._runs.use(name, OpenRun.report))  # raises for no run
        if self.feeds.watching >= MOST_WATCHING:
            raise HTTPException(503, f"{MOST_WATCHING} pages are open\nclose some of them")
        return StreamingResponse(self.feeds.messages(name), media_type="text/event-stream")

    def _parts(self, name: str, live: LiveRun, slow: bool) -> Parts:
        names = (*run_page.QUICK_PARTS, *(run_page.SLOW_PARTS if slow else ()))
        return self._runs.use(name, lambda opened: run_page.run_parts(opened.report(), live, names))

    async def _video(self, request: Request) -> Response:
        run, place, name = (str(request.path_params[key]) for key in ("run", "place", "name"))

        file = await self._reader(lambda: video_file(folder_of(run), place, name))
        if file is None:
            raise HTTPException(404, f"there is no {name} of {place} in the run {run}")
        return FileResponse(file, media_type=media_type(name))


def _prepare() -> None:
    """Import and compile what the first page would wait for."""
    importlib.import_module("eureka_agent.search.sentence")
    for name in templates().list_templates():
        templates().get_template(name)


def _links() -> list[tuple[str, str, str]]:
    """Address, name and state of every batch, newest first."""
    found = [(_batch_state(each), each.name) for each in list_batches()]
    newest = sorted(found, key=lambda each: each[0], reverse=True)
    return [(f"/batches/{quote(name, safe='')}", name, state) for (_, state), name in newest]


def _batch_state(folder: Path) -> tuple[float, str]:
    """Time of the last change of a batch, and its state or the reason why it cannot be read."""
    changed = 0.0
    try:
        changed, running = (folder / BATCH_FILE).stat().st_mtime, is_held(folder)
        return changed, state_in_words(searches_of(IntentsFile(folder), running), running=running)
    except EurekaError as error:
        return changed, error.message
    except OSError as error:
        return changed, system_reason(error)


def _number(text: str | None) -> int:
    """Number of a page from an address; 1 for none."""
    return int(text) if text is not None and text.isdecimal() and len(text) < 7 else 1


def error_answer(request: Request, status: int, fault: str, hint: str = "") -> Response:
    """One clear sentence and the next step: a page, or a note beside the form that was sent."""
    if request.method == "POST":
        text = f"{fault}: {hint}" if hint else fault
        return HTMLResponse(render("note.html", text=text), status)
    return HTMLResponse(render("error.html", title=fault[:80], fault=fault, hint=hint), status)


def _enter(path: str) -> Response:
    """Page that leads on. A redirect would not do: browsers send no strict cookie with one that
    begins at another program's link."""
    return HTMLResponse(render("enter.html", path=path))


async def _failed(request: Request, error: Exception) -> Response:
    if isinstance(error, EurekaError):  # a run that is not there or cannot be read
        return error_answer(request, 404, error.message, error.hint)
    assert isinstance(error, HTTPException)
    fault, _, hint = error.detail.partition("\n")
    if fault == "Not Found":
        fault, hint = f"there is no page {request.url.path[:200]!r}", "see the list of runs"
    return error_answer(request, error.status_code, fault, hint)


async def _gone(request: Request, error: Exception) -> Response:
    """Answer to a browser that has gone away in a request: nobody reads it."""
    return Response(status_code=400)
