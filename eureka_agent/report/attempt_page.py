"""One attempt in full: a document, for `eureka show RUN ATTEMPT` and for the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from eureka_agent import wording
from eureka_agent.attempt_words import early_ends, fitness_words, merit_words, origin, rung_reached
from eureka_agent.records import Attempt, CurvePoint, Diagnosis, Finding, Message
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
from eureka_agent.report.sparkline import common_scale, sparkline
from eureka_agent.report.terminal import render_block
from eureka_agent.text import clipped

if TYPE_CHECKING:
    from markupsafe import Markup

    from eureka_agent.report.html.charts import Chart

CURVE_WIDTH = 24
MOST_COMPONENTS = 16
"""Components of a reward in one chart."""
MOST_EPISODES = 100
MOST_MESSAGES = 30
LONGEST_TEXT = 200_000
"""Characters of a request or a reply."""
COMPARED = {"choices": "by your choices", "model": "judged by a model from pictures"}


def attempt_document(
    attempt: Attempt,
    env_steps: int,
    points: Sequence[CurvePoint] = (),
    *,
    folder: Path | None = None,
    fitness_origin: str = "",
    unit_note: str = "",
    parents: Mapping[str, Attempt] = MappingProxyType({}),
    messages: Sequence[Message] | None = None,
) -> Document:
    """Origin, source, verdict, curves and diagnosis of an attempt. `env_steps`: those of a whole
    training; `points`: its curve, where it was trained; `parents`: those that the run has, by id;
    `messages`: requests to models about it, None to leave them out."""
    proposal, outcome = attempt.proposal, outcome_words(attempt, env_steps)
    head = [Words(outcome, "strong")] if outcome else []
    head += [Words(attempt.reason, "warn")] if attempt.reason else []
    source, folder_text = proposal.reward.source.rstrip(), "" if folder is None else str(folder)
    sections: dict[str, tuple[str, Sequence[Block]]] = {
        "origin": ("Origin", _origin(attempt, fitness_origin)),
        "source": (
            f"Reward function of attempt {attempt.id}",
            [Source(source) if source else Words("The designer's reply held no code.", "muted")],
        ),
        "verdict": ("Verdict of the critic", _verdict(attempt)),
        "differences": ("Differences to its parents", _differences(attempt, parents)),
        "reasoning": ("Reasoning of the designer", _quote(proposal.reasoning)),
        "curves": ("Curves over the training, with exploration noise", _curves(points, unit_note)),
        "diagnosis": ("Diagnosis", _diagnosis(attempt.diagnosis) if attempt.diagnosis else []),
        "analysis": ("The analyst on its episodes", _quote(attempt.analysis)),
        "episodes": ("Episodes", _episodes(attempt, unit_note)),
        "requests": ("Prompts and replies", _requests(attempt, messages)),
        "files": ("Files", [Source(folder_text, language="sh")] if folder_text else []),
    }
    return Document(
        f"attempt {attempt.id}  {attempt.stage.value}",
        head,
        [Section(name, title, partial(tuple, made)) for name, (title, made) in sections.items()],
    )


def render_attempt(document: Document) -> RenderableType:
    """The document for a terminal."""
    head = "  ".join([document.title, *(each.text for each in document.head)])
    shown: list[RenderableType] = [Text(head, "bold")]
    for section in document.sections:
        if blocks := [part for block in section.blocks for part in render_block(block)]:
            shown += [Text(), Text(section.title, "bold"), *blocks]
    return Group(*shown)


def _quote(text: str) -> list[Block]:
    return [Quote(text)] if text.strip() else []


def _curves(points: Sequence[CurvePoint], unit_note: str) -> list[Block]:
    if not points:
        return []
    return [DrawingBlock(partial(curve_charts, points, unit_note)), curves_grid(points)]


def _origin(attempt: Attempt, fitness_origin: str) -> list[Block]:
    proposal = attempt.proposal
    facts = {
        "origin": origin(proposal),
        "designer": proposal.reward.author,
        "seed": str(attempt.seed),
        "drafts": drafts_words(proposal.drafts) if proposal.drafts else "",
        "started again": wording.plural(attempt.retries, "time") if attempt.retries else "",
        "metric": fitness_origin,
    }
    trainings = training_lines(attempt) if attempt.repeats else []
    shown = Facts({name: text for name, text in facts.items() if text})
    return [shown, *(Words(line, "muted") for line in trainings)]


def drafts_words(drafts: Sequence[float | None]) -> str:
    """`best of 4 drafts by expected improvement: 0.61, others 0.12 to 0.48`."""
    known = sorted(each for each in drafts if each is not None)
    if not known:
        return f"first of {len(drafts)} drafts, of which nothing could be expected"
    words = f"best of {len(drafts)} drafts by expected improvement: {wording.number(known[-1])}"
    if len(known) == 1:
        return words
    return f"{words}, others {wording.number(known[0])} to {wording.number(known[-2])}"


def outcome_words(attempt: Attempt, env_steps: int) -> str:
    """Fitness, share of solved episodes and early ends of a training; empty before a score."""
    outcome = attempt.outcome
    if outcome is None or outcome.fitness is None:
        if rung_reached(attempt) is None:
            return ""
        return f"fitness {fitness_words(attempt, env_steps)} of its training"
    solved = f"{outcome.success_rate:.0%} solved" if outcome.success_rate is not None else ""
    if attempt.strength is not None:
        strength = f"strength {merit_words(attempt)}, {COMPARED[attempt.strength.by]}"
        return ", ".join(filter(None, (strength, solved, early_ends(outcome))))
    if attempt.repeats:
        seeds = wording.plural(len(attempt.fitness_per_seed), "seed")
        return f"fitness {wording.number(attempt.fitness)} over {seeds}"
    fitness = f"fitness {wording.plus_minus(outcome.fitness, outcome.fitness_std)}"
    over = f"{fitness} over {wording.plural(outcome.evaluation_episodes, 'episode')}"
    return ", ".join(filter(None, (over, solved, early_ends(outcome))))


def training_lines(attempt: Attempt) -> list[str]:
    """A line for each training; curves and diagnosis belong to the first."""
    fitness = wording.number(attempt.outcome.fitness if attempt.outcome is not None else None)
    place = "curves and diagnosis below"
    lines = [f"first training, seed {attempt.seed}: fitness {fitness} ({place})"]
    for repeat in attempt.repeats:
        result = f"failed: {repeat.failure}"
        if repeat.outcome is not None:
            result = f"fitness {wording.number(repeat.outcome.fitness)}"
        if repeat.retries:
            result += f", started again {wording.plural(repeat.retries, 'time')}"
        after = f"trained again after iteration {repeat.iteration + 1}"
        lines.append(f"{after}, seed {repeat.seed}: {result}")
    return lines


def _verdict(attempt: Attempt) -> list[Block]:
    if (verdict := attempt.verdict) is None:
        return []
    word = "accepted" if verdict.accepted else "rejected"
    steps = f" ({', '.join(verdict.steps_run)})" if verdict.steps_run else ""
    found = finding_lines(verdict.findings)
    return [Words(f"The critic {word} it{steps}."), *([Items(found)] if found else [])]


def finding_lines(findings: Sequence[Finding]) -> list[str]:
    """The critic's findings, a line each: `3:5 C102 unknown variable 'heigth'; did you mean …`."""
    places = [f"{each.line}:{each.column or 0} " if each.line else "" for each in findings]
    return [
        "; ".join(filter(None, (f"{place}{each.code} {each.message}", each.hint)))
        for place, each in zip(places, findings, strict=True)
    ]


def _differences(attempt: Attempt, parents: Mapping[str, Attempt]) -> list[Block]:
    drawn = {
        name: DrawingBlock(partial(source_difference, each, attempt))
        for name, each in parents.items()
        if each.proposal.reward.source != attempt.proposal.reward.source
    }
    return [Folded(f"Difference to its parent {name}", [each]) for name, each in drawn.items()]


def source_difference(before: Attempt, after: Attempt) -> Markup:
    """Difference of two sources as an element."""
    from markupsafe import Markup

    from eureka_agent.report.html.source import difference_to_parent

    first, second = (
        wording.without_trailing_comments(each.proposal.reward.source) for each in (before, after)
    )
    return difference_to_parent(first, second) or Markup("The two are equal.")


def curves_grid(points: Sequence[CurvePoint]) -> Grid:
    """Sparkline of every curve with its first, last and highest value. The reward and its
    components, which add up to it, have one scale."""
    curves: dict[str, list[float | None]] = {
        "fitness": [point.fitness for point in points],
        "episode length": [point.episode_length for point in points],
        "reward": [point.reward for point in points],
    }
    for name in _components(points):
        curves[f"component {name}"] = [point.components.get(name) for point in points]
    parts = [name for name in curves if name == "reward" or name.startswith("component ")]
    scale = common_scale((curves[name] for name in parts), CURVE_WIDTH)
    # discrete actions have an entropy alone
    curves["action std"] = [point.action_std for point in points]
    curves["entropy"] = [point.entropy for point in points]
    rows = []
    for name, values in curves.items():
        known = [value for value in values if value is not None]
        if known:
            drawn = sparkline(values, CURVE_WIDTH, scale=scale if name in parts else None)
            numbers = map(wording.number, (known[0], known[-1], max(known)))
            rows.append((name, drawn, *numbers))
    titles = ("curve", "over the training", "first", "last", "highest")
    return Grid(titles, rows, numbers=titles[2:])


def curve_charts(points: Sequence[CurvePoint], unit_note: str) -> Markup:
    """Figures of fitness, components and episode length over a training."""
    from markupsafe import Markup

    from eureka_agent.report.html.charts import Curve, PlottedTrainings, figure, learning_curves

    steps = tuple(point.env_steps for point in points)

    def lines(named: Mapping[str, Sequence[float | None]], label: str) -> Chart | None:
        trainings = [
            PlottedTrainings(
                name, "best" if name == "reward" else "attempt", (Curve(steps, tuple(each)),)
            )
            for name, each in named.items()
        ]
        chart = learning_curves(trainings, unit_note)
        if chart is not None:
            chart["y"] = {"label": label}
        return chart

    noise, fitness = "With exploration noise.", {"fitness": [point.fitness for point in points]}
    lengths = {"episode length": [point.episode_length for point in points]}
    terms: dict[str, list[float | None]] = {"reward": [point.reward for point in points]}
    for name in _components(points)[:MOST_COMPONENTS]:
        terms[name] = [point.components.get(name) for point in points]
    parts = "Mean per step of the whole reward and of each of its parts."
    figures = (
        (lines(fitness, f"fitness{unit_note}"), "Fitness over the training", noise),
        (lines(terms, "mean per step"), "Reward and its components", parts),
        (lines(lengths, "control steps"), "Episode length", ""),
    )
    return Markup().join(figure(*each) for each in figures)


def _components(points: Sequence[CurvePoint]) -> list[str]:
    return list(dict.fromkeys(name for point in points for name in point.components))


def _diagnosis(diagnosis: Diagnosis) -> list[Block]:
    """Findings and components of the reward."""
    titles = ("component", "share of the reward", "lowest", "mean", "highest")
    rows = [
        (each.name, f"{100 * each.share:.0f} %", *map(wording.number, values))
        for each in diagnosis.components
        for values in [(each.minimum, each.mean, each.maximum)]
    ]
    found = [f"{each.code}: {each.message} Try: {each.advice}." for each in diagnosis.findings]
    told = diagnosis.whole.strip()
    return [
        Items(found) if found else Words("The analyzer found nothing wrong."),
        Grid(titles, rows, numbers=titles[1:]),
        *([Folded("What the designer is told of it", [Source(told, language="sh")])] * bool(told)),
    ]


def _episodes(attempt: Attempt, unit_note: str) -> list[Block]:
    scored = [each.evaluation for each in attempt.rungs if each.evaluation is not None]
    if not scored:
        return []
    episodes = scored[-1].episodes
    titles = ("episode", f"fitness{unit_note}", "control steps", "ended by")
    rows = [
        (str(place), wording.number(each.fitness), str(each.length), wording.words(each.ended_by))
        for place, each in enumerate(episodes[:MOST_EPISODES], 1)
    ]
    count = wording.plural(len(episodes), "episode")
    summary = f"{count} of its last score within the training, without noise"
    return [Folded(summary, [Grid(titles, rows, numbers=titles[:3])])]


def _requests(attempt: Attempt, messages: Sequence[Message] | None) -> list[Block]:
    if messages is None:
        return []
    blocks: list[Block] = []
    for each in messages[:MOST_MESSAGES]:
        facts = [each.role, each.model, wording.money(each.cost.money)]
        facts += [wording.duration(each.cost.seconds)] if each.cost.seconds else []
        blocks.append(_request(" · ".join(facts), each.request, each.reply))
    if len(messages) > MOST_MESSAGES:
        more = wording.plural(len(messages) - MOST_MESSAGES, "request")
        blocks.append(Words(f"and {more} more", "muted"))
    proposal = attempt.proposal
    if not messages and proposal.prompt.strip():
        blocks.append(_request("Prompt and reply", proposal.prompt, proposal.reply))
    return blocks or [Words("No model was asked for this attempt.", "muted")]


def _request(summary: str, prompt: str, reply: str) -> Block:
    blocks: list[Block] = []
    for title, text in {"Prompt": prompt, "Reply": reply}.items():
        blocks += [Words(title, "strong"), Source(clipped(text, LONGEST_TEXT), language="sh")]
    return Folded(summary, blocks)
