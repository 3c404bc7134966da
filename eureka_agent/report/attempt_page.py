"""One attempt in full for `eureka show RUN ATTEMPT`, as rich renderables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from eureka_agent import wording
from eureka_agent.attempt_words import early_ends, fitness_words, merit_words, origin, rung_reached
from eureka_agent.records import Attempt, CurvePoint, Stage, Verdict
from eureka_agent.report.blocks import Quote
from eureka_agent.report.console import PythonSource, panel
from eureka_agent.report.sparkline import common_scale, sparkline
from eureka_agent.report.terminal import render_block, unbroken

CURVE_WIDTH = 24
STAGE_STYLES = {
    Stage.TRAINED: "green",
    Stage.REJECTED: "red",
    Stage.FAILED: "yellow",
    Stage.PROPOSED: "dim",
    Stage.ACCEPTED: "dim",
}


COMPARED = {"choices": "by your choices", "model": "judged by a model from pictures"}


def render_attempt(
    attempt: Attempt,
    env_steps: int,
    points: Sequence[CurvePoint] = (),
    folder: Path | None = None,
    fitness_origin: str = "",
) -> RenderableType:
    """Origin, source, verdict, curves and diagnosis of an attempt.

    `env_steps`: those of a whole training; `points`: its curve, where it was trained.
    """
    proposal, style = attempt.proposal, STAGE_STYLES[attempt.stage]
    facts = [origin(proposal), f"designer {proposal.reward.author}", f"seed {attempt.seed}"]
    if proposal.drafts:
        facts.append(drafts_words(proposal.drafts))
    if attempt.retries:
        facts.append(f"started again {wording.plural(attempt.retries, 'time')}")
    if fitness_origin:
        facts.append(fitness_origin)
    heading = Text.assemble(
        (f"attempt {attempt.id}", "bold"),
        "  ",
        (attempt.stage.value, style),
        f"  {outcome_words(attempt, env_steps)}",
    )
    trainings = training_lines(attempt) if attempt.repeats else []
    parts: list[RenderableType] = [heading]
    parts += [Text(line, style="dim") for line in (" · ".join(facts), *trainings)]
    parts.append(Text())
    if attempt.reason:
        parts += [Text(attempt.reason, style=style), Text()]
    parts.append(_source_panel(attempt))
    if proposal.reasoning.strip():
        parts += render_block(Quote(proposal.reasoning))
    if attempt.verdict is not None:
        parts.append(_verdict_panel(attempt.verdict))
    if points:
        title = "curves over the training, with exploration noise"
        parts.append(panel(render_curves(points), title))
    if attempt.diagnosis is not None:
        parts.append(panel(Text(attempt.diagnosis.text.strip()), "diagnosis"))
    if folder is not None:
        parts.append(unbroken(f"files: {folder}", "dim"))
    return Group(*parts)


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
    if attempt.strength is not None:
        solved = f"{outcome.success_rate:.0%} solved" if outcome.success_rate is not None else ""
        strength = f"strength {merit_words(attempt)}, {COMPARED[attempt.strength.by]}"
        return ", ".join(filter(None, (strength, solved, early_ends(outcome))))
    if attempt.repeats:
        seeds = wording.plural(len(attempt.fitness_per_seed), "seed")
        return f"fitness {wording.number(attempt.fitness)} over {seeds}"
    parts = [
        f"fitness {wording.plus_minus(outcome.fitness, outcome.fitness_std)}"
        f" over {wording.plural(outcome.evaluation_episodes, 'episode')}",
        f"{outcome.success_rate:.0%} solved" if outcome.success_rate is not None else "",
        early_ends(outcome),
    ]
    return ", ".join(filter(None, parts))


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


def render_curves(points: Sequence[CurvePoint]) -> Table:
    """Sparkline of every curve with its first, last and highest value. The reward and its
    components, which add up to it, have one scale."""
    curves: dict[str, list[float | None]] = {
        "fitness": [point.fitness for point in points],
        "episode length": [point.episode_length for point in points],
        "reward": [point.reward for point in points],
    }
    for name in dict.fromkeys(name for point in points for name in point.components):
        curves[f"component {name}"] = [point.components.get(name) for point in points]
    parts = [name for name in curves if name == "reward" or name.startswith("component ")]
    scale = common_scale((curves[name] for name in parts), CURVE_WIDTH)
    if any(point.action_std is not None for point in points):
        curves["action std"] = [point.action_std for point in points]
    else:  # discrete actions
        curves["entropy"] = [point.entropy for point in points]
    table = Table.grid(padding=(0, 2))
    table.add_column()
    table.add_column(no_wrap=True)
    for _ in range(3):
        table.add_column(justify="right", no_wrap=True)
    table.add_row("", "", *(Text(title, style="dim") for title in ("first", "last", "highest")))
    for name, values in curves.items():
        known = [value for value in values if value is not None]
        numbers = [known[0], known[-1], max(known)] if known else [None] * 3
        curve = sparkline(values, CURVE_WIDTH, scale=scale if name in parts else None)
        table.add_row(name, Text(curve, style="cyan"), *map(wording.number, numbers))
    return table


def render_findings(result: Verdict) -> RenderableType:
    """The critic's findings, a line each with its hint below, like a linter's."""
    lines = []
    for finding in result.findings:
        place = f"{finding.line}:{finding.column or 0} " if finding.line is not None else ""
        style = "red" if finding.severity == "error" else "yellow"
        lines.append(Text.assemble(place, (finding.code, style), f" {finding.message}"))
        if finding.hint:
            lines.append(Text(f"    {finding.hint}", style="dim"))
    return Group(*lines)


def _verdict_panel(result: Verdict) -> Panel:
    word = "accepted" if result.accepted else "thrown out"
    steps = f"steps: {', '.join(result.steps_run)}" if result.steps_run else ""
    body: RenderableType = Text(f"no findings; {steps}")
    if result.findings:
        body = Group(render_findings(result), Text(steps, style="dim"))
    return panel(body, f"critic: {word}")


def _source_panel(attempt: Attempt) -> Panel:
    title = f"reward function of attempt {attempt.id}"
    source = attempt.proposal.reward.source.rstrip()
    if not source:
        return panel(Text("the designer's reply held no code", style="dim"), title, "none")
    return panel(PythonSource(source), title, "none")
