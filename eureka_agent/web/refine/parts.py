"""Parts of the page of a refinement, as HTML by their names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from eureka_agent.designer.source_tools import tunable_constants
from eureka_agent.errors import EurekaError
from eureka_agent.feedback.standing import choices_of, latest_importance, what_ranks
from eureka_agent.feedback_records import MOST_CLIPS, Given, Importance, Wish, feedback_line
from eureka_agent.records import Verdict
from eureka_agent.report.run_report import RunReport
from eureka_agent.search.clips import CLIP_SECONDS, CLIP_STARTS
from eureka_agent.search.table import Table
from eureka_agent.settings import judge_of
from eureka_agent.web.live import Parts
from eureka_agent.web.refine.session import Phase, RefineSession
from eureka_agent.web.rendering import code_lines, render, without_line
from eureka_agent.web.run_page import address, now_values

BOARD_ROWS = 12
PARTS = ("clips", "pair", "words", "order", "edit", "board", "said")
AFTER_WORDS = ("words", "said")
AFTER_CHOICE = ("pair", "board", "said")
Values = Mapping[str, Any]


def page(report: RunReport, session: RefineSession | None) -> str:
    """The whole page."""
    asking = session if session is not None and session.phase is Phase.ASKING else None
    if asking is not None:
        shown = parts(asking, PARTS)
    else:
        shown = {} if session is None else {"now": now(session)}
    return render(
        "refine.html",
        title=f"refine {report.sentence}",
        report=report,
        run=address(report.run_name),
        session=session,
        phase="" if session is None else session.phase.value,
        parts=shown,
        generation="" if asking is None else _generation(asking.table),
    )


def now(session: RefineSession) -> str:
    """Trainings under way; empty while the person is asked."""
    run = session.view.state.started
    if session.phase is not Phase.TRAINING or run is None:
        return ""
    values = now_values(session.view)
    return render("parts/now.html", running=True, env_steps=run.settings.env_steps, **values)


def parts(session: RefineSession, names: Sequence[str], **more: Any) -> Parts:
    """HTML of these parts. `more`: values for the first of them."""
    run, found = address(session.name), {}
    for place, name in enumerate(names):
        values = {**_VALUES[name](session), **(more if place == 0 else {})}
        found[name] = render(f"parts/refine/{name}.html", run=run, **values)
    return found


def _generation(table: Table) -> str:
    newest = table.newest()
    return f"Generation {newest[0].iteration + 1}" if newest else ""


def _clips(session: RefineSession) -> Values:
    """The newest attempts' clips."""
    names = [each.id for each in session.table.newest()[:MOST_CLIPS]]
    values = {"names": names, "panels": CLIP_STARTS, "seconds": CLIP_SECONDS}
    return {**values, **_shown(session, names)}


def _pair(session: RefineSession) -> Values:
    """The next pair, with the number of what was said before it is asked."""
    table = session.table
    pair = table.next_pair()
    asked = table.feedback[-1].number if table.feedback else 0
    shown = _shown(session, pair or ())
    return {"pair": pair, "asked": asked, "answered": len(choices_of(table.feedback)), **shown}


def _shown(session: RefineSession, names: Sequence[str]) -> Values:
    """Addresses of clips by attempt, once all are there, or why there are none."""
    try:
        paths = session.clips(names) if names else {}
    except EurekaError as error:
        return {"clips": {}, "fault": f"{error.message}. {error.hint}"}
    return {"clips": None if paths is None else _addresses(session.name, paths), "fault": ""}


def _addresses(run: str, paths: Mapping[str, Path]) -> dict[str, str]:
    return {name: address(run, "videos", name, path.name) for name, path in paths.items()}


def _words(session: RefineSession) -> Values:
    attempts = [each.id for each in session.table.attempts()]
    return {"attempts": attempts, **reading_values(session)}


def reading_values(session: RefineSession) -> dict[str, Any]:
    """Values of a reading that waits for the person."""
    pending = session.pending
    measure = "" if pending is None else session.table.measure_line(pending.reading)
    return {"pending": pending, "measure": measure}


def _order(session: RefineSession) -> Values:
    """Terms and metrics to rank, with what the person said before first."""
    table = session.table
    before = {
        each.feedback.of: each.feedback.order
        for each in latest_importance(table.feedback)
        if isinstance(each.feedback, Importance)
    }
    lists = {}
    for of in ("terms", "metrics"):
        _, names = table.rankable(of)
        said = [name for name in before.get(of, ()) if name in names]
        checked = said or (list(names) if of == "terms" else [])
        lists[of] = [(name, name in checked) for name in dict.fromkeys((*said, *names))]
    return {"lists": lists, "attempt": table.rankable("terms")[0]}


def _edit(session: RefineSession) -> Values:
    """The best attempt's reward."""
    table = session.table
    name = next((each.id for each in table.attempts()), "")
    return edit_values(table, name, table.source(name) if name else "")


def edit_values(
    table: Table, attempt: str, source: str, verdict: Verdict | None = None
) -> dict[str, Any]:
    """Values of the editor. `verdict`: the critic's on this source."""
    findings = () if verdict is None else verdict.findings
    lines = code_lines(source, findings) if source.strip() else []
    return {
        "attempts": [each.id for each in table.attempts()],
        "attempt": attempt,
        "source": source,
        "constants": tunable_constants(source),
        "verdict": verdict,
        "lines": lines if findings else [],
        "elsewhere": without_line(findings, lines),
    }


def _board(session: RefineSession) -> Values:
    table = session.table
    attempts, by = table.attempts(), what_ranks(table.feedback)
    found = table.preferences(by) if choices_of(table.feedback) or by == "model" else None
    newest = {each.id for each in table.newest()}
    rows = [
        {
            "attempt": each,
            "strength": None if found is None else found.strength(each.id),
            "chance": None if found is None else found.chance_best[each.id],
            "new": each.id in newest,
        }
        for each in attempts[:BOARD_ROWS]
    ]
    judges = {"fitness": "fitness", "choices": "my choices"}
    if judge := judge_of(table.run.settings):
        judges["model"] = judge
    return {
        "rows": rows,
        "by": by,
        "ranked_by": table.ranked_by(),
        "judges": judges,
        "judged": table.judged_words(),
        "hidden": len(attempts) - len(rows),
    }


def _said(session: RefineSession) -> Values:
    table = session.table
    return {"said": [(each, said_line(each), _measure(table, each)) for each in table.said]}


def _measure(table: Table, given: Given) -> str:
    """Measure of a wish in the newest attempts; empty for other feedback."""
    wish = given.feedback
    return table.measure_line(wish.reading) if isinstance(wish, Wish) else ""


def said_line(given: Given) -> str:
    """Feedback in words, with the person's name."""
    return f"{given.who} {feedback_line(given.feedback)}"


_VALUES: dict[str, Callable[[RefineSession], Values]] = {
    "clips": _clips,
    "pair": _pair,
    "words": _words,
    "order": _order,
    "edit": _edit,
    "board": _board,
    "said": _said,
}
