"""A run's report: what was asked, what won, how sure that is, and how it came about."""

from __future__ import annotations

import base64
import os
import shlex
from contextlib import suppress
from functools import partial

from markupsafe import Markup

from eureka_agent import attempt_words, wording
from eureka_agent.archive.artefacts import BEST, VIDEO
from eureka_agent.archive.safe_files import open_plain
from eureka_agent.designer.source_tools import difference
from eureka_agent.invocation import command
from eureka_agent.records import BASELINES, Attempt, ComponentSummary, WrittenFitness
from eureka_agent.report.blocks import (
    Block,
    Document,
    DrawingBlock,
    Facts,
    Folded,
    Grid,
    Items,
    Quote,
    Section,
    Source,
    Words,
)
from eureka_agent.report.html import charts
from eureka_agent.report.html.source import difference_to_parent
from eureka_agent.report.metric import metric_lines
from eureka_agent.report.randomisation import randomisation_blocks
from eureka_agent.report.run_report import RunReport
from eureka_agent.report.search_sections import (
    LONGEST_REASON,
    attempt_blocks,
    cost_blocks,
    curve_blocks,
    failure_blocks,
    lineage_blocks,
    reproduction_blocks,
)
from eureka_agent.report.verdict import verdict
from eureka_agent.rewards import KIND_WORDS
from eureka_agent.text import one_line

LARGEST_CLIP = 8 << 20
"""Bytes of a clip that a document holds."""
REDUCTIONS = {
    "sum": "sum over the steps of an episode",
    "mean": "mean over the steps of an episode",
    "last": "last step of an episode",
    "max": "best step of an episode",
}


def run_document(report: RunReport) -> Document:
    """The report of a run."""
    own = report.of_own_reward
    sections = {
        "verdict": ("Verdict", _verdict),
        "fitness": ("The written fitness", _written_fitness),
        "scores": ("Scores", _scores),
        "randomised": ("Under other parameters", randomisation_blocks),
        "reward": ("Your reward function" if own else "The best reward function", _reward),
        "training": ("How it came about", _training),
        "clip": ("A clip of its policy", _clip),
        "curves": ("Curves", curve_blocks),
        "lineage": ("Lineage", lineage_blocks),
        "failures": ("What failed, and why", failure_blocks),
        "attempts": ("All attempts", attempt_blocks),
        "cost": ("Cost and time", cost_blocks),
        "reproduce": ("How to reproduce it", reproduction_blocks),
    }
    return Document(
        wording.title(report.sentence),
        _head(report),
        [Section(name, title, partial(make, report)) for name, (title, make) in sections.items()],
    )


def _head(report: RunReport) -> list[Words]:
    description = report.description
    place = (description.environment, description.task, report.run_name, report.status.value)
    style = "warn" if report.fitness_origin else ""
    cut = wording.title(report.sentence) != report.sentence
    return [
        *([Words(report.sentence)] if cut else []),
        Words(" · ".join(place), "muted"),
        *(Words(line, style) for line in metric_lines(report)),  # type: ignore[arg-type]
    ]


def _verdict(report: RunReport) -> list[Block]:
    found = verdict(report)
    return [Facts(found.lines(), "best"), Source(found.command, language="sh")]


def _written_fitness(report: RunReport) -> list[Block]:
    fitness = report.written_fitness
    return [] if fitness is None else fitness_blocks(fitness)


def fitness_blocks(fitness: WrittenFitness) -> list[Block]:
    """A written fitness as a person reads it."""
    unit = "" if fitness.unit == "1" else f" {fitness.unit}"
    solved = "not said"
    if fitness.success_fitness is not None:
        solved = f"from {wording.number(fitness.success_fitness)}{unit} on"
    facts = {
        "task": fitness.sentence,
        "measures": fitness.doc,
        "unit": unit.strip() or "none",
        "reduction": REDUCTIONS[fitness.reduction],
        "solved": solved,
    }
    source = Source(fitness.source.rstrip(), f"fitness written by {fitness.author}")
    said = [Quote(fitness.reasoning, "The model's reasoning")] if fitness.reasoning.strip() else []
    return [Facts(facts), source, *said]


# ── scores ────────────────────────────────────────────────────────────────────────────────────────


def _scores(report: RunReport) -> list[Block]:
    if not report.scores:
        return []
    normalized = any(each.human_normalized is not None for each in report.scores)
    titles = ["reward", f"fitness{report.unit_note}", "human-normalised", "per seed"]
    if not normalized:
        titles.remove("human-normalised")
    best = "" if report.best is None else report.best.id
    rows = []
    for score in report.scores:
        mark = f" ({'yours' if report.of_own_reward else 'best'})" if score.name == best else ""
        rows.append(
            [
                f"{score.name}{mark}",
                wording.plus_minus(score.mean, score.std),
                *([wording.number(score.human_normalized)] if normalized else []),
                attempt_words.fitness_per_seed(score),
            ]
        )

    def chart() -> Markup:
        own, unit = report.of_own_reward, report.unit_note
        drawn = charts.scores_with_error_bars(report.scores, best, unit, own=own)
        return charts.figure(drawn, "Scores from fresh seeds, mean ± standard deviation")

    ids = ["" if each.name in BASELINES else each.name for each in report.scores]
    return [
        DrawingBlock(chart),
        Grid(titles, rows, best, ids, titles[1:-1]),
        Words(_score_note(report, normalized=normalized), "muted"),
    ]


def _score_note(report: RunReport, *, normalized: bool) -> str:
    """Sentences on the conditions of the scores."""
    note = (
        "Every reward here was trained from the same fresh seeds under the same budget, and each"
        " policy was scored, acting without noise, in a process that never loaded its reward."
    )
    if len(report.finalists) > 1:
        note += " The best has the highest mean of the finalists, which is partly luck."
        if any(None in each.fitness for each in report.finalists):
            note += " A failed seed counts as the worst there."
        if len({len(each.seeds) for each in report.finalists}) > 1:
            note += " Finalists with fewer seeds could hardly win any more."
    if len({len(score.seeds) for score in report.scores}) > 1:
        note += " Some have fewer seeds, the first ones; comparisons use the seeds of each."
    if normalized:
        note += " Human-normalised is (mean − sparse) / |human − sparse|: 0 is the sparse reward."
    if any(score.card for score in report.scores) and report.card is not None:
        note += f" Human and sparse are from {report.card.origin}, and were not trained here."
    elif any(score.cached for score in report.scores):
        note += " An earlier run trained the rewards from the cache."
    return note


# ── the best reward ───────────────────────────────────────────────────────────────────────────────


def _reward(report: RunReport) -> list[Block]:
    best = report.best
    if best is None:
        return []
    source = wording.without_trailing_comments(best.proposal.reward.source).rstrip()
    blocks: list[Block] = [Source(source, f"reward function of attempt {best.id}")]
    if (parent := _parent(report, best)) is not None:
        before = wording.without_trailing_comments(parent.proposal.reward.source)
        changed = DrawingBlock(lambda: difference_to_parent(before, source))
        summary = f"Difference to {parent.id}, from which it was made"
        blocks += [Folded(summary, [changed])] if before.rstrip() != source else []
    return blocks


def _parent(report: RunReport, best: Attempt) -> Attempt | None:
    """First parent of the best attempt; None for one that was made from none."""
    return next((each for each in report.attempts if each.id in best.proposal.parents[:1]), None)


def _training(report: RunReport) -> list[Block]:
    """Origin, reasoning, terms and training of the best reward."""
    best = report.best
    if best is None:
        return []
    training = "first training" if best.repeats else "training"
    blocks: list[Block] = [Words(_making(report, best))]
    if best.proposal.reasoning.strip() and not report.of_own_reward:
        blocks.append(Quote(best.proposal.reasoning, "The designer's reasoning"))
    if (diagnosis := best.diagnosis) is not None:
        if terms := sorted(diagnosis.components, key=lambda each: -each.share):
            rows = [
                [f"`{each.name}`", f"{100 * each.share:.0f} %", _payment(each)] for each in terms
            ]
            part = "of the sum of all terms' sizes, over the last third of it"
            blocks += [Words(f"Its terms in the {training}; a share is one {part}.", "muted")]
            blocks += [Grid(("term", "share", "payment"), rows, numbers=("share",))]
        if diagnosis.findings:
            seen = [
                f"{each.code}: {each.message}"
                + (f" Try: {each.advice.rstrip('.')}." if each.advice else "")
                for each in diagnosis.findings
            ]
            blocks += [Words(f"What the analyzer saw in its {training}:"), Items(seen)]
        else:
            blocks.append(Words(f"The analyzer found nothing wrong in its {training}."))
    if best.outcome is not None and best.outcome.evaluation_episodes:
        blocks.append(Words(_episodes(report, best, training)))
    if best.analysis.strip():
        blocks.append(Folded("The analyst's reading of its training", [Quote(best.analysis)]))
    return blocks


def _making(report: RunReport, best: Attempt) -> str:
    """Sentence on how the best attempt was made."""
    if report.of_own_reward:
        return best.proposal.reasoning
    author = one_line(best.proposal.reward.author, LONGEST_REASON)
    who = "the offline designer" if author == "offline" else author
    sentence = f"Attempt {best.id} ({attempt_words.origin(best.proposal)}), by {who}."
    if (parent := _parent(report, best)) is not None:
        measure, before = attempt_words.measure_of([parent]), attempt_words.merit_words(parent)
        change = difference(parent.proposal.reward.source, best.proposal.reward.source)
        sentence += f" Compared with {parent.id}, which had {measure} {before}: {change}."
    if (kind := best.proposal.reward.kind) in KIND_WORDS:
        sentence += f" Its reward is of the kind {kind}: {KIND_WORDS[kind]}."
    if best.proposal.reward.designs_observation:
        sentence += " Its policy observes what the function `design_observation` returns."
    return sentence


def _payment(term: ComponentSummary) -> str:
    """`pays 0.993 per step on average, from 0.930 at first to 1.00 at the end`."""
    verb = "pays" if term.mean > 0 else "costs" if term.mean < 0 else "is"
    words = f"{verb} {wording.number(abs(term.mean))} per step on average"
    if len(term.values) > 1:
        first, last = wording.number(term.values[0]), wording.number(term.values[-1])
        words += f", from {first} at first to {last} at the end"
    return words


def _episodes(report: RunReport, best: Attempt, training: str) -> str:
    """Sentence on the evaluated episodes of its training."""
    outcome = best.outcome
    assert outcome is not None  # the caller has looked
    fitness = f"fitness {wording.plus_minus(outcome.fitness, outcome.fitness_std)}"
    facts = [fitness if report.is_measured else "", attempt_words.early_ends(outcome)]
    if outcome.success_rate is not None:
        facts.append(f"{outcome.success_rate:.0%} solved the task")
    episodes = wording.plural(outcome.evaluation_episodes, "episode")
    told = ", ".join(filter(None, facts))
    return f"The policy of its {training}, acting without noise in {episodes}: {told}."


def _clip(report: RunReport) -> list[Block]:
    if report.best is None:
        return []
    path, size = report.folder / BEST / VIDEO, None
    with suppress(OSError), os.fdopen(open_plain(path), "rb") as file:
        size = os.fstat(file.fileno()).st_size
    if size is None:
        making = command(shlex.join(["video", str(report.folder)]))
        return [Words(f"There is none yet. This makes one: `{making}`")]
    if size > LARGEST_CLIP:
        return [Words(f"It is too large for a document: `{path}`")]

    def element() -> Markup:
        with os.fdopen(open_plain(path), "rb") as file:
            clip = base64.b64encode(file.read(LARGEST_CLIP)).decode()
        attributes = 'controls loop muted playsinline preload="auto"'
        return Markup(f'<video {attributes} src="data:video/mp4;base64,{clip}"></video>')

    where = "Episodes of the policy in `best/policy.safetensors`, without exploration noise"
    return [DrawingBlock(element), Words(f"{where}: `{path}`", "muted")]
