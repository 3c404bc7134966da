"""Parts of the page of a refinement, as HTML by their names."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from eureka_agent.analysis.standing import choices_of, what_ranks
from eureka_agent.designer.source_tools import tunable_constants
from eureka_agent.errors import EurekaError
from eureka_agent.feedback_records import ANSWERS
from eureka_agent.records import Attempt, Verdict
from eureka_agent.report.html.document import blocks_html
from eureka_agent.report.run_report import RunReport
from eureka_agent.search import board
from eureka_agent.settings import judge_of
from eureka_agent.web.live import Parts
from eureka_agent.web.refine.session import RefineSession
from eureka_agent.web.rendering import code_lines, render, without_line
from eureka_agent.web.run_page import address, now_values

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
