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
from eureka_agent.invocation import command, executable
from eureka_agent.llm.replay import REPLAY
from eureka_agent.ranking import ranked
from eureka_agent.records import BASELINES, Attempt, ComponentSummary, Stage, WrittenFitness
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
from eureka_agent.report.html.training_curves import final_curves, search_curves
from eureka_agent.report.ledger import SUMMED_TIME, ledger_grid
from eureka_agent.report.lineage import lineage
from eureka_agent.report.metric import metric_lines
from eureka_agent.report.randomisation import randomisation_blocks
from eureka_agent.report.run_report import RunReport
from eureka_agent.report.verdict import verdict
from eureka_agent.text import one_line

MOST_ATTEMPTS = 100
"""Attempts in the table."""
MOST_EXAMPLES = 20
"""Groups of what failed."""
LONGEST_REASON = 400
LARGEST_CLIP = 8 << 20
"""Bytes of a clip that a document holds."""
CURVES_NOTE = (
    "Fitness with exploration noise. A line is the mean over the trainings of a reward. A band, of"
    " the best and of the baselines, is ± the standard deviation of their trainings."
)
ITERATIONS_NOTE = "The mean of an attempt's trainings in the search, without exploration noise."
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
        "curves": ("Curves", _curves),
        "lineage": ("Lineage", _lineage),
        "failures": ("What failed, and why", _failures),
        "attempts": ("All attempts", _attempts),
        "cost": ("Cost and time", _cost),
        "reproduce": ("How to reproduce it", _reproduce),
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


# ── the search ────────────────────────────────────────────────────────────────────────────────────


def run_charts(report: RunReport) -> dict[str, Markup]:
    """Figures of curves by name; those without data are empty."""
    unit, own = report.unit_note, report.of_own_reward
    baselines = [score for name in BASELINES if (score := report.score(name)) is not None]
    finals = charts.learning_curves(final_curves(report), unit) if report.finalists else None
    shown = report.is_measured and not (own and finals)
    by_iteration = None if own else charts.fitness_per_iteration(report.attempts, baselines, unit)
    if by_iteration is not None and len(by_iteration["x"]["values"]) == 1:
        by_iteration = None
    return {
        "finals": charts.figure(finals, "Final trainings, from fresh seeds", CURVES_NOTE),
        "search": charts.figure(
            charts.learning_curves(search_curves(report), unit) if shown else None,
            "Best attempts in the search",
            CURVES_NOTE,
        ),
        "iterations": charts.figure(
            by_iteration,
            f"{report.measure.capitalize()} per iteration",
            ITERATIONS_NOTE if report.measure == "fitness" else "",
        ),
    }


def _curves(report: RunReport) -> list[Block]:
    return [DrawingBlock(lambda: Markup().join(run_charts(report).values()))]


def _lineage(report: RunReport) -> list[Block]:
    if len(report.all_attempts) < 2:
        return []
    best = "" if report.best is None else report.best.id
    unit = report.merit_unit_note.replace(" (", " ").rstrip(")")
    tree, left_out = lineage(report.all_attempts, best, unit)
    note = "Which attempt was made from which."
    if left_out:
        note += f" {left_out:,} others are left out: shown are the best with their ancestors."
    return [Words(note, "muted"), Source(tree, language="text")]


def _failures(report: RunReport) -> list[Block]:
    """Rejections by code, failed trainings by reason, findings on trainings by code."""
    found: dict[str, list[str]] = {}
    for attempt in report.all_attempts:
        if attempt.stage is Stage.REJECTED:
            code = (
                attempt_words.first_error(attempt).partition(":")[0].partition(" ")[0] or "no code"
            )
            told = f"{attempt.id}: {attempt_words.discard_reason(attempt)}"
            found.setdefault(f"thrown out by the critic: {code}", []).append(told)
        if attempt.stage is Stage.FAILED:
            found.setdefault(f"failed: {attempt.reason}", []).append(attempt.id)
        for repeat in attempt.repeats:
            if repeat.failure:
                found.setdefault(f"failed again: {repeat.failure}", []).append(attempt.id)
        # what is known of a person's one reward stands above
        if attempt.diagnosis is not None and not report.of_own_reward:
            messages = {each.code: each.message for each in attempt.diagnosis.findings}
            for code, message in messages.items():
                told = f"{attempt.id}: {message}"
                found.setdefault(f"seen in trainings: {code}", []).append(told)
    for training in report.final_trainings:
        if training.failure:
            name = f"{training.name} (seed {training.seed})"
            found.setdefault(f"failed in the end: {training.failure}", []).append(name)
    order = sorted(found.items(), key=lambda item: -len(item[1]))
    rows = [
        [
            one_line(reason, LONGEST_REASON),
            f"{len(names):,} ×",
            one_line("; ".join(names[:2]), LONGEST_REASON)
            + (f" … and {len(names) - 2:,} more" if len(names) > 2 else ""),
        ]
        for reason, names in order[:MOST_EXAMPLES]
    ]
    more = len(order) - len(rows)
    rest = [Words(f"And {more} other reasons.", "muted")] if more > 0 else []
    return [Grid(("reason", "times", "attempts"), rows, numbers=("times",)), *rest] if rows else []


def shown_attempts(report: RunReport, most: int = MOST_ATTEMPTS) -> list[Attempt]:
    """Attempts of the table: all in order, or of very many the best, then those without a
    fitness."""
    if len(report.all_attempts) <= most:
        return list(report.all_attempts)
    best = ranked(report.attempts)
    names = {attempt.id for attempt in best}
    return [*best, *(each for each in report.all_attempts if each.id not in names)][:most]


def _attempts(report: RunReport) -> list[Block]:
    return [] if report.of_own_reward else attempts_table(report)


def attempts_table(report: RunReport, most: int = MOST_ATTEMPTS) -> list[Block]:
    """The attempts, and what their numbers mean."""
    shown, counted_on = shown_attempts(report, most), report.counted_on
    titles = ["attempt", "operator", "stage", report.measure, "seeds"]
    titles += [*(["counted on"] if counted_on else []), "reason or first finding"]
    rows = [
        [
            attempt.id,
            wording.words(attempt.proposal.operator.value),
            attempt.stage.value,
            attempt_words.fitness_words(attempt, report.settings.env_steps),
            str(len(attempt.fitness_per_seed) or ""),
            *([wording.number(counted_on.get(attempt.id))] if counted_on else []),
            attempt_words.remark(attempt),
        ]
        for attempt in shown
    ]
    best = "" if report.best is None else report.best.id
    numbers = (report.measure, "seeds", "counted on")
    ids = [each.id for each in shown]
    grid = Grid(titles, rows, best, ids, numbers, ("seeds", "counted on"))
    if not rows:
        return []
    note = _attempts_note(report)
    if len(rows) < len(report.all_attempts):
        note = f"The first {len(rows)} of {len(report.all_attempts):,}, best first. {note}"
    return [grid, Words(note, "muted")]


def _attempts_note(report: RunReport) -> str:
    """Sentences on the fitness in a table of attempts."""
    note = "Fitness is without exploration noise; the curves that findings describe are with it."
    if report.counted_on:
        note += (
            " Attempts are ranked by the fitness that can be counted on: the mean over many more"
            " seeds is above it with a probability of about 84 %. The fewer seeds an attempt has,"
            " the more its mean is drawn towards that of all attempts, and then lowered."
        )
    if report.measure != "fitness":
        note = (
            "A strength follows from comparisons (Bradley and Terry 1952): one more means preferred"
            " 73 times of 100."
        )
    if any(map(attempt_words.rung_reached, report.attempts)):
        note += " A fitness `at` a percentage is the score after that part of a training."
    return note


# ── the run ───────────────────────────────────────────────────────────────────────────────────────


def _cost(report: RunReport) -> list[Block]:
    blocks: list[Block] = [Words(" ".join(cost_lines(report)))]
    if report.ledger.messages:
        account = report.ledger
        grid = ledger_grid("who asked", (*account.by_role, account.total))
        blocks += [grid, Words(SUMMED_TIME, "muted")]
    return blocks


def cost_lines(report: RunReport) -> list[str]:
    """Sentences on trainings, time and requests, on restarts, budget and deviations from it."""
    cost = report.cost
    again = sum(len(attempt.repeats) for attempt in report.attempts)
    what = "your reward" if report.of_own_reward else "proposals"
    kinds = {
        f"of {what}": cost.search_trainings - again,
        "to train the best of them again": again,
        "final": cost.final_trainings,
        "of baselines": cost.baseline_trainings,
        "under distributions of parameters": cost.randomised_trainings,
    }
    parts = [f"{number} {kind}" for kind, number in kinds.items() if number or kind == f"of {what}"]
    sentence = (
        f"It took {wording.plural(cost.trainings, 'training')} ({', '.join(parts)}),"
        f" {wording.count(cost.env_steps)} env steps and {wording.duration(report.seconds)} of wall"
        f" time; {model_cost(report)}."
    )
    retries = cost.final_restarts
    for attempt in report.all_attempts:
        retries += attempt.retries + sum(repeat.retries for repeat in attempt.repeats)
    restarted = wording.plural(retries, "training")
    restarts = f"{restarted} started again because a worker died." if retries else ""
    remarks = (f"{text[:1].upper()}{text[1:]}." for text in (*report.budget, *report.remarks))
    return list(filter(None, (sentence, restarts, *remarks)))


def model_cost(report: RunReport) -> str:
    """Requests, tokens and money; the replies of a replay."""
    cost = report.cost
    if cost.requests == 0:
        return "no LLM was asked"
    if report.settings.model[0].startswith(REPLAY):
        replies = wording.plural(cost.requests, "recorded reply was", "recorded replies were")
        return f"{replies} played back"
    money = (
        "at a cost that is not known" if cost.money is None else f"for {wording.money(cost.money)}"
    )
    tokens = f"{wording.count(cost.prompt_tokens + cost.completion_tokens)} tokens"
    if cost.uncounted:
        tokens += f", {wording.plural(cost.uncounted, 'reply', 'replies')} without a count"
    models = ", ".join(dict.fromkeys(line.model for line in report.ledger.by_role))
    asked = models or report.designer
    times = wording.plural(cost.requests, "time")
    return f"{asked} {'were' if ', ' in asked else 'was'} asked {times} ({tokens}) {money}"


def _reproduce(report: RunReport) -> list[Block]:
    """Command, versions, and the settings that differ from the task's defaults."""
    versions = ", ".join(f"{name} {version}" for name, version in report.versions.items())
    devices = f", trained on {', then '.join(report.devices)}" if report.devices else ""
    sentences = [
        f"Commit {report.git_commit}" if report.git_commit else "",
        f"Started {report.started}",
        versions,
        f"Designer {report.designer}, wall {report.wall}{devices}",
        f"Environment fingerprint {report.description.fingerprint[:16]}",
    ]
    folder = shlex.quote(str(report.folder))
    show, curves = command(f"show {folder}"), f"{executable('tensorboard')} --logdir {folder}"
    own = report.description.training_on(report.devices[-1] if report.devices else "cpu")
    fields, rows = type(report.settings).model_fields, []
    for name, field in fields.items():
        value = _as_text(getattr(report.settings, name))
        default = _as_text(own.get(name, field.default))
        if value != default:
            rows.append([name, value, default])
    others = wording.plural(len(fields) - len(rows), "other setting")
    return [
        Source(report.command_line(), language="sh"),
        Words(" ".join(f"{sentence}." for sentence in sentences if sentence)),
        Grid(("setting", "value", "default"), rows),
        Words(f"{others} at the default: all are in `settings.yaml`."),
        Words(
            f"Everything is in `{report.folder}`. `{show}` prints this; `{curves}` draws curves."
        ),
    ]


def _as_text(value: object) -> str:
    """Value of a setting in one line; lists and tuples are equal."""
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
