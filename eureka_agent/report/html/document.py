"""`report.html`: what was asked, what won, how sure that is, and how it came about.

One file without any address: it holds its scripts, styles, charts and the clip, and a policy that
lets a browser load nothing else. Texts of models, persons and environments are escaped by the
template; characters that nobody sees are written as in Python.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eureka_agent import wording
from eureka_agent.invocation import command, executable
from eureka_agent.markup import LONGEST_QUOTATION
from eureka_agent.records import BASELINES
from eureka_agent.report import facts, randomisation
from eureka_agent.report.cost import cost_sentence, remarks
from eureka_agent.report.fitness import fitness_facts
from eureka_agent.report.html import sections
from eureka_agent.report.html.assets import SCRIPTS, STYLES, asset, content_security_policy
from eureka_agent.report.html.charts import (
    figure,
    fitness_per_iteration,
    learning_curves,
    scores_with_error_bars,
)
from eureka_agent.report.html.lineage import draw, lineage
from eureka_agent.report.html.source import difference_to_parent, highlighted
from eureka_agent.report.html.training_curves import final_curves, search_curves
from eureka_agent.report.ledger import SUMMED_TIME
from eureka_agent.report.metric import metric_lines
from eureka_agent.report.run_report import RunReport
from eureka_agent.report.verdict import verdict
from eureka_agent.text import clipped, escape_unprintable

if TYPE_CHECKING:
    import jinja2
    from markupsafe import Markup

TEMPLATES = Path(__file__).resolve().parent / "templates"
CURVES_NOTE = (
    "Fitness with exploration noise. A line is the mean over the trainings of a reward. A band, of"
    " the best and of the baselines, is ± the standard deviation of their trainings."
)
ITERATIONS_NOTE = "The mean of an attempt's trainings in the search, without exploration noise."


def write_html_report(path: Path, report: RunReport) -> None:
    """Write the document; an existing one is replaced."""
    with path.open("w", encoding="utf-8") as stream:
        stream.writelines(html_report(report))


def html_report(report: RunReport) -> Iterator[str]:
    """The document in parts of bounded size."""
    return templates().get_template("report.html.j2").generate(**_values(report))


@cache
def templates() -> jinja2.Environment:
    """Environment of the templates in this folder, which escapes all values."""
    import jinja2

    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        finalize=_visible,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters |= {"inline_code": _inline_code, "quoted": _quoted}
    return templates


def _visible(value: object) -> object:
    """Text with its control characters as in Python source; markup as it is."""
    return value if hasattr(value, "__html__") else escape_unprintable(str(value), keep="\n\t")


def _inline_code(sentence: str) -> Markup:
    """Sentence with the parts in backticks as code."""
    from markupsafe import Markup, escape

    parts = escape_unprintable(sentence).split("`")
    code = Markup("<code>{}</code>")
    return Markup().join(
        code.format(part) if place % 2 else escape(part) for place, part in enumerate(parts)
    )


def _quoted(text: str) -> str:
    return clipped(text.strip(), LONGEST_QUOTATION)


def _values(report: RunReport) -> dict[str, Any]:
    """Values of the template."""
    scripts, styles = tuple(map(asset, SCRIPTS)), tuple(map(asset, STYLES))
    folder = shlex.quote(str(report.folder))
    fitness = report.written_fitness
    changed, other_settings = facts.changed_settings(report)
    return {
        "report": report,
        "facts": facts,
        "randomisation": randomisation,
        "policy": content_security_policy(scripts, styles),
        "scripts": scripts,
        "styles": styles,
        "title": wording.title(report.sentence),
        "metric": metric_lines(report),
        "verdict": verdict(report),
        "tiles": sections.tiles(report),
        "written": fitness,
        "written_facts": fitness_facts(fitness) if fitness is not None else {},
        "highlighted": highlighted,
        **_winner(report),
        **_charts(report),
        "failures": sections.failures(report),
        "rows": sections.shown_attempts(report.attempts),
        "cost": [cost_sentence(report), facts.restarts(report), *remarks(report)],
        "summed_time": SUMMED_TIME,
        "changed": changed,
        "other_settings": other_settings,
        "show": command(f"show {folder}"),
        "tensorboard": f"{executable('tensorboard')} --logdir {folder}",
    }


def _winner(report: RunReport) -> dict[str, Any]:
    """Values on the best attempt."""
    best = report.best
    if best is None:
        return {"best": None}
    parent, clip = sections.parent_of(report), sections.clip_of(report)
    embedded = clip is not None and clip[1] <= sections.LARGEST_CLIP
    source = wording.without_trailing_comments(best.proposal.reward.source)
    before = wording.without_trailing_comments(parent.proposal.reward.source) if parent else ""
    return {
        "best": best,
        "making": "" if report.of_own_reward else sections.making(best, parent),
        "source": source,
        "parent": parent,
        "difference": difference_to_parent(before, source) if parent else "",
        "terms": sections.terms(best.diagnosis),
        "training": facts.training_name(best),
        "clip": sections.clip_parts(clip[0]) if clip is not None and embedded else None,
        "clip_file": clip[0] if clip is not None else None,
        "clip_command": command(shlex.join(["video", str(report.folder)])),
    }


def _charts(report: RunReport) -> dict[str, Any]:
    """Figures; those without data are empty."""
    unit, own = report.unit_note, report.of_own_reward
    best = report.best.id if report.best is not None else ""
    baselines = [score for name in BASELINES if (score := report.score(name)) is not None]
    finals = learning_curves(final_curves(report), unit) if report.finalists else None
    shown = report.is_measured and not (own and finals)
    searched = learning_curves(search_curves(report), unit) if shown else None
    per_iteration = fitness_per_iteration(report.attempts, baselines, unit)
    if per_iteration is not None and len(per_iteration["x"]["values"]) == 1:
        per_iteration = None
    drawn, merit_unit = lineage(report.attempts, best), report.merit_unit_note
    rows = {attempt.id for attempt in sections.shown_attempts(report.attempts)}
    return {
        "scores_chart": figure(
            scores_with_error_bars(report.scores, best, unit, own=own),
            "Scores from fresh seeds" if not own else "Scores",
        ),
        "finals_chart": figure(finals, "Final trainings, from fresh seeds", CURVES_NOTE),
        "search_chart": figure(searched, "Best attempts in the search", CURVES_NOTE),
        "iterations_chart": figure(
            per_iteration,
            f"{report.measure.capitalize()} per iteration",
            ITERATIONS_NOTE if report.measure == "fitness" else "",
        ),
        "lineage": draw(drawn, merit_unit, lambda name: f"#attempt-{name}" if name in rows else "")
        if len(report.attempts) > 1
        else "",
        "lineage_left_out": drawn.left_out,
    }
