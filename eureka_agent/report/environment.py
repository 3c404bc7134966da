"""An environment and its task for `eureka envs NAME`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from eureka_agent import wording
from eureka_agent.cards import Card, CardReward
from eureka_agent.invocation import command
from eureka_agent.records import ChannelSpec, Measurements, TaskDescription, VariableSpec
from eureka_agent.report.sparkline import common_scale, sparkline
from eureka_agent.report.terminal import facts_grid
from eureka_agent.value_ranges import column_ranges_text
from eureka_agent.wording import plural

_ORDERS = {"wxyz": "w, x, y, z: the real part first", "xyzw": "x, y, z, w: the real part last"}
_IS_ORIENTATION = re.compile("quaternion|orientation|rotation", re.IGNORECASE)
_LINE_BREAK = re.compile(r"(?<!\n)\n(?![\n\s*•-])")
"""Line break within a paragraph, and not before an entry of a list."""


def render_environment(description: TaskDescription, tasks: Sequence[str]) -> RenderableType:
    """Facts about the environment and its task, and the variables that a reward may read."""
    seconds = description.max_episode_length * description.control_dt
    good = description.success_causes
    ends = [
        f"{cause}{', a success' if cause in good else ''}{f' ({condition})' if condition else ''}"
        for cause, condition in description.endings.items()
    ]
    measured = description.measured
    sizes = "; ".join(measured.masses_and_sizes) if measured else ""
    others = ", ".join(name for name in tasks if name != description.task)
    facts = {
        "task": f"{description.task}: {description.sentence}",
        "fitness": description.fitness_doc,
        "other tasks": f"{others} (--task NAME)" if others else "none",
        "episode": (
            f"{description.max_episode_length} steps of {description.control_dt:g} s = {seconds:g}"
            f" s; ends early by: {', '.join(ends) or 'nothing'}"
        ),
        "episode from": description.episode_source,
        "sizes": sizes,
        "policy": f"{description.num_observations} observations, {_actions(description)}",
        "quaternions": _ORDERS[description.quaternion_order] if _turns(description) else "",
        "one training": (
            f"{description.env_steps:,} environment steps on {description.num_envs} environments"
        ),
    }
    grid = facts_grid({name: text for name, text in facts.items() if text})
    rows = []
    for variable in description.variables:
        private = " (private: the fitness alone reads it)" if variable.private else ""
        rows.append((variable.name, _kind(variable, measured), variable.doc + private))
    for constant in description.constants:
        unit = "" if constant.unit == "1" else f" {constant.unit}"
        rows.append((constant.name, f"constant   {constant.value:g}{unit}", constant.doc))
    head = Text.assemble((description.environment, "bold"), "  ", description.doc)
    note = (
        "Each is an argument of compute_reward, the batch in front; previous_<variable> is its"
        " value one step before."
    )
    if description.constants:
        note += " A constant is a float."
    parts: list[RenderableType] = [head, ""]
    if description.details:
        parts += [Text(_LINE_BREAK.sub(" ", description.details)), ""]
    parts += [grid, ""]
    if description.action_channels and (
        description.num_actions > 1 or not description.action_choices
    ):  # the only choice is in the variable `actions`
        how = (
            "The policy gives the index of a choice"
            if description.action_choices
            else "The policy gives -1 to 1 for each number, which stands for the range"
        )
        channels = _channels(description.action_channels)
        parts += [Text(f"Actions. {how}."), "", _glossary(channels), ""]
    parts += [Text(f"Variables. {note}"), "", _glossary(rows)]
    if description.parameters:
        how = f"see `{command('evaluate --help')}`"
        text = Text(
            f"Parameters. They may differ between episodes, within these safe ranges: {how}."
        )
        parts += ["", text, "", _glossary(_parameters(description))]
    return Group(*parts)


def _glossary(rows: Iterable[tuple[str, str, str]]) -> Table:
    """Names with their kind, and below it their meaning."""
    table = Table.grid(padding=(0, 2, 0, 0), expand=True)
    table.add_column(no_wrap=True)
    table.add_column(ratio=1)
    for name, kind, doc in rows:
        table.add_row(Text(name, style="bold cyan"), kind)
        if doc:
            table.add_row("", Text(doc, style="dim"))
    return table


def _parameters(description: TaskDescription) -> Iterable[tuple[str, str, str]]:
    for parameter in description.parameters:
        unit = "" if parameter.unit == "1" else f" {parameter.unit}"
        values = (
            f"{parameter.low:.5g} … {parameter.high:.5g}{unit}   default {parameter.default:.5g}"
        )
        yield parameter.name, values, parameter.doc


def _channels(channels: Iterable[ChannelSpec]) -> Iterable[tuple[str, str, str]]:
    """Rows of an action's channels; `[0:3]` are their numbers in `actions`."""
    first = 0
    for channel in channels:
        after = first + max(1, len(channel.entries))
        numbers = f"[{first}]" if after == first + 1 else f"[{first}:{after}]"
        entries = f"{numbers} {', '.join(channel.entries)}".strip()
        yield channel.name, _facts(entries, channel), channel.doc
        first = after


def _turns(description: TaskDescription) -> bool:
    """True where a variable is a quaternion by its shape and words."""
    return any(
        variable.shape[-1:] == (4,) and _IS_ORIENTATION.search(f"{variable.name} {variable.doc}")
        for variable in description.variables
    )


def _kind(variable: VariableSpec, measured: Measurements | None) -> str:
    sizes = ", ".join(["batch", *map(str, variable.shape)])
    shape = f"({sizes})" if variable.shape else "(batch,)"
    facts = _facts(shape, variable)
    if measured is not None and variable.name in measured.starts:
        facts += f"   start {column_ranges_text(measured.starts[variable.name])}"
    return facts


def _facts(first: str, of: VariableSpec | ChannelSpec) -> str:
    """`first`, then unit, frame and range where they say something."""
    limits = f"{of.range[0]:.5g} … {of.range[1]:.5g}" if of.range else ""
    unit, frame = "" if of.unit == "1" else of.unit, "" if of.frame == "-" else of.frame
    return "   ".join(filter(None, (first, unit, frame, limits)))


def _actions(description: TaskDescription) -> str:
    """`3 actions`, `1 action of 2 choices`, `2 actions of 3 and 2 choices`."""
    text = plural(description.num_actions, "action")
    choices = " and ".join(map(str, description.action_choices))
    return f"{text} of {choices} choices" if choices else text


OUTDATED = "old card"
"""Mark of a task whose files have changed since its card was measured."""
_WIDTH = 10
"""Characters of a learning curve."""


def render_card(card: Card, fingerprint: str | None = None) -> RenderableType:
    """The card of a task: both rewards with their learning curves, and what follows.
    `fingerprint`: of the task's files as they are now."""
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
    table = _cards_table({card.task: card}, ())
    return Group(Text(f"card of task {card.task}", style="bold"), table, facts_grid(facts))


def render_cards(
    cards: Mapping[str, Card | None], outdated: Collection[str], environment: str
) -> RenderableType:
    """The cards of an environment's tasks in brief, and how to make those that are missing."""
    known = {name: card for name, card in cards.items() if card is not None}
    parts: list[RenderableType] = []
    if known:
        note = (
            "steps: env steps to the level that counts as solved. better: beyond the noise of the"
            " seeds (same: neither; open: neither, and both fail to learn it). One in full:"
            f" {command(shlex.join(['envs', environment, '--task']))} NAME"
        )
        parts += [
            Text("Cards of the tasks.", style="bold"),
            _cards_table(known, outdated),
            Text(note, style="dim"),
        ]
    if missing := [name for name in cards if name not in known]:
        name = missing[0] if len(missing) == 1 else "NAME"
        measure = command(shlex.join(["envs", "--measure", environment, "--task", name]))
        parts.append(
            Text(
                f"No card yet: {', '.join(missing)}. `{measure}` trains both rewards and makes one."
            )
        )
    return Group(*parts)


def _cards_table(cards: Mapping[str, Card], outdated: Collection[str]) -> Table:
    """Both rewards of each card, with their learning curves on one scale."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 1, 0, 0))
    for heading in ("task", "reward", "fitness", "learned", "steps", "curve", "better"):
        table.add_column(heading, no_wrap=True)
    for name, card in cards.items():
        better = OUTDATED if name in outdated else _better(card)
        unit = "" if card.unit in ("", "1") else f" {card.unit}"
        curves = {reward: [at.mean for at in each.curve] for reward, each in card.rewards.items()}
        scale = common_scale(curves.values(), _WIDTH)
        for reward, each in card.rewards.items():
            table.add_row(
                name if reward == "human" else "",
                reward,
                f"{wording.plus_minus(each.mean, each.std)}{unit}",
                f"{each.learned} of {len(each.fitness)}",
                _steps(each),
                sparkline(curves[reward], _WIDTH, scale=scale),
                better if reward == "human" else "",
            )
    return table


def _steps(reward: CardReward) -> str:
    steps = reward.env_steps_to_level
    return "never" if steps is None else wording.count(steps)


def difficulty(card: Card) -> str:
    """The card in one sentence."""
    if not card.human.learns and card.decides != "human":
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


def _better(card: Card) -> str:
    """The better reward; `same` for neither, and `open` where both fail to learn the task."""
    learned = "same" if card.human.learns or card.sparse.learns else "open"
    return learned if card.decides == "neither" else card.decides


def render_environments(
    sentences: Mapping[str, Mapping[str, str]],
    cards: Mapping[str, Mapping[str, Card | None]],
    outdated: Mapping[str, Collection[str]],
) -> RenderableType:
    """A line for each task, and what the columns mean. `sentences`: of each task by environment and
    name; `outdated`: tasks whose files have changed since their card was measured."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 1, 0, 0))
    for heading in ("task", "human", "sparse", "better", "steps"):
        table.add_column(heading, no_wrap=True)
    table.add_column("sentence")
    for environment, tasks in sentences.items():
        table.add_row(Text(environment, style="bold cyan"))
        for name, sentence in tasks.items():
            card = cards[environment][name]
            cells = ["", "", "" if card is None else OUTDATED, ""]
            if card is not None and name not in outdated[environment]:  # else it has no figures
                means = map(wording.number, (card.human.mean, card.sparse.mean))
                cells = [*means, _better(card), _steps(card.human)]
            # the sentence alone gives way where the terminal is narrow
            table.add_row(f"  {name}", *cells, Text(sentence, no_wrap=True, overflow="ellipsis"))
    legend = {
        "human, sparse": f"mean fitness that these rewards train to; {command('envs NAME')} has"
        " the units and the deviations",
        "better": "which of the two, beyond the noise of their seeds; same: neither; open: neither,"
        " and both fail to learn it",
        "steps": "env steps until the human reward has learned; never: not within the budget",
        "no figures": f"no card yet: {command('envs --measure NAME')} makes one",
        OUTDATED: "measured before the task's files changed",
        "one of them": f"{command('envs NAME')}: its rules, actions, variables and cards",
        "your own": f"--env path/to/folder; {command('envs --new FOLDER')} begins one",
        "Gymnasium's": "--env gymnasium:Hopper-v5",
    }
    if not any(outdated.values()):
        del legend[OUTDATED]
    return Group(table, "", facts_grid(legend))
