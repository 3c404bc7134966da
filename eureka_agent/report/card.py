"""A difficulty card as text."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from eureka_agent import wording
from eureka_agent.cards import Card, CardReward
from eureka_agent.invocation import command
from eureka_agent.report.console import facts_grid
from eureka_agent.report.sparkline import Scale, common_scale, sparkline

OUTDATED = "old card"
"""Mark of a task whose files have changed since its card was measured."""
_WIDTH, _BRIEF_WIDTH = 20, 10
"""Characters of a learning curve."""


def render_card(card: Card, fingerprint: str | None = None) -> RenderableType:
    """The card of a task: both rewards with their learning curves, and what follows.
    `fingerprint`: of the task's files as they are now."""
    unit = "" if card.unit in ("", "1") else f" ({card.unit})"
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("reward", f"fitness{unit}", "seeds that learn", "env steps to level", "curve"):
        table.add_column(name, no_wrap=name == "curve")
    curves, scale = _curves(card, _WIDTH)
    for name, each in card.rewards.items():
        table.add_row(
            name,
            wording.plus_minus(each.mean, each.std),
            f"{each.learned} of {len(each.fitness)}",
            _steps(each),
            sparkline(curves[name], _WIDTH, scale=scale),
        )
    budget = "" if card.budget is None else f" (the task has {wording.count(card.budget)})"
    minutes = [f"{value:.2g} min on {device}" for device, value in card.minutes.items()]
    facts = {
        "difficulty": difficulty(card),
        "random actions": wording.number(card.untrained),
        "measured": f"{wording.count(card.env_steps)} env steps a training{budget}"
        f"{''.join(f', {each} for all' for each in minutes)}",
    }
    if fingerprint not in (None, card.fingerprint):
        facts["note"] = "the environment's files have changed since it was measured"
    return Group(Text(f"card of task {card.task}", style="bold"), table, facts_grid(facts))


def render_cards(
    cards: Mapping[str, Card | None], outdated: Collection[str], environment: str
) -> RenderableType:
    """The cards of an environment's tasks in brief, and how to make those that are missing."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 1, 0, 0))
    for heading in ("task", "reward", "fitness", "learned", "steps", "curve", "better"):
        table.add_column(heading, no_wrap=True)
    known = {name: card for name, card in cards.items() if card is not None}
    for name, card in known.items():
        _, _, better, _ = card_cells(card, outdated=name in outdated)
        unit = "" if card.unit in ("", "1") else f" {card.unit}"
        curves, scale = _curves(card, _BRIEF_WIDTH)
        for reward, each in card.rewards.items():
            table.add_row(
                name if reward == "human" else "",
                reward,
                f"{wording.plus_minus(each.mean, each.std)}{unit}",
                f"{each.learned} of {len(each.fitness)}",
                _steps(each),
                sparkline(curves[reward], _BRIEF_WIDTH, scale=scale),
                better if reward == "human" else "",
            )
    parts: list[RenderableType] = []
    if known:
        note = (
            "steps: env steps to the level that counts as solved. better: beyond the noise of the"
            " seeds (same: neither; open: neither, and both fail to learn it). One in full:"
            f" {command(shlex.join(['envs', environment, '--task']))} NAME"
        )
        parts += [Text("Cards of the tasks.", style="bold"), table, Text(note, style="dim")]
    if missing := [name for name in cards if name not in known]:
        name = missing[0] if len(missing) == 1 else "NAME"
        measure = command(shlex.join(["envs", "--measure", environment, "--task", name]))
        parts.append(
            Text(
                f"No card yet: {', '.join(missing)}. `{measure}` trains both rewards and makes one."
            )
        )
    return Group(*parts)


def _curves(card: Card, width: int) -> tuple[dict[str, list[float | None]], Scale | None]:
    """Mean curves by reward, and the scale that they share."""
    curves = {name: [point.mean for point in each.curve] for name, each in card.rewards.items()}
    return curves, common_scale(curves.values(), width)


def _steps(reward: CardReward) -> str:
    steps = reward.env_steps_to_level
    return "never" if steps is None else wording.count(steps)


def difficulty(card: Card) -> str:
    """The card in one sentence."""
    if not card.human_learns and card.decides != "human":
        return (
            "open: neither reward learns it within the budget"
            if not card.sparse.learns
            else ("the human reward does not learn it, and the sparse one does")
        )
    if card.decides == "human":
        return "the reward decides: the human one is better than the sparse one, beyond noise"
    if card.decides == "sparse":
        return "the sparse reward is better than the human one, beyond noise"
    return "the two rewards are not told apart: the task says little of what a reward is worth"


def card_cells(card: Card | None, *, outdated: bool) -> tuple[str, str, str, str]:
    """Cells of a list: the fitness of both rewards, the better one, and env steps to the level. An
    outdated card gives no figures."""
    if card is None:
        return ("", "", "", "")
    if outdated:
        return ("", "", OUTDATED, "")
    better = card.decides if card.decides != "neither" else ("same" if learns(card) else "open")
    return (
        wording.number(card.human.mean),
        wording.number(card.sparse.mean),
        better,
        _steps(card.human),
    )


def learns(card: Card) -> bool:
    """True where one of the two rewards learns the task."""
    return card.human_learns or card.sparse.learns
