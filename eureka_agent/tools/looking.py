"""Tools that look at a task and at the episodes of trained attempts."""

from __future__ import annotations

import asyncio
import re
from base64 import b64decode
from collections.abc import Mapping, Sequence

import numpy as np
from pydantic import Field

from eureka_agent.analysis.curves import number
from eureka_agent.analysis.events import (
    Columns,
    Episode,
    as_columns,
    events_of,
    is_whole,
    length_of,
)
from eureka_agent.analysis.questions import (
    QuestionAnswer,
    QuestionError,
    answer,
    answer_lines,
    fitness_of,
)
from eureka_agent.base_record import Record
from eureka_agent.critic.expressions import CONDITION, question
from eureka_agent.designer.source_tools import difference, parameter_names
from eureka_agent.errors import did_you_mean
from eureka_agent.llm.interface import ImagePart
from eureka_agent.llm.prompts import facts
from eureka_agent.records import Attempt, TaskDescription
from eureka_agent.rewards import OBSERVATION_FUNCTION
from eureka_agent.text import one_line
from eureka_agent.tools.bench import Bench, ToolAnswer, ToolError, end_of
from eureka_agent.wording import significant

MOST_EVENTS = 20
MOST_COLUMNS_SHOWN = 4
MOST_DIFFERENCES = 8


class OfAttemptArguments(Record):
    attempt: str = Field(description="id of a trained attempt, such as 1-03")


# ── describe ──────────────────────────────────────────────────────────────────────────────────────


class DescribeArguments(Record):
    variable: str = Field(description="its name")


class VariableFacts(ToolAnswer):
    name: str
    shape: tuple[int, ...]
    """Without the batch."""
    unit: str
    frame: str
    doc: str
    range: tuple[float, float] | None
    facts: str
    observed_as: tuple[str, ...]
    """Channels of the policy's observation that bear its name."""

    def text(self) -> str:
        observed = (
            f" The policy observes {', '.join(self.observed_as)}." if self.observed_as else ""
        )
        shape = ", ".join(["batch", *map(str, self.shape)])
        return f"{self.name}: ({shape}){self.facts}. {self.doc}{observed}"


async def describe(bench: Bench, asked: DescribeArguments) -> VariableFacts:
    """Facts on one variable."""
    description = bench.run.description
    known = {each.name: each for each in description.public_variables()}
    if asked.variable not in known:
        hint = did_you_mean(asked.variable, known)
        raise ToolError(f"there is no variable {asked.variable!r}", hint)
    found = known[asked.variable]
    channels = (each.name for each in description.observation_channels)
    return VariableFacts(
        name=found.name,
        shape=found.shape,
        unit=found.unit,
        frame=found.frame,
        doc=one_line(found.doc, 2000),
        range=found.range,
        facts=facts(found, description.measured),
        observed_as=tuple(each for each in channels if found.name in each),
    )


# ── episodes and their events ─────────────────────────────────────────────────────────────────────


class EpisodeLine(Record):
    number: int
    fitness: float | None
    steps: int
    end: str


class EpisodeList(ToolAnswer):
    """The evaluated episodes of an attempt, worst first."""

    attempt: str
    episodes: tuple[EpisodeLine, ...]
    seconds_a_step: float

    def text(self) -> str:
        lines = (
            f"{each.number}: {number(each.fitness)}, {each.steps} steps, {each.end}"
            for each in self.episodes
        )
        return "\n".join(
            [f"Episodes of {self.attempt} without noise, worst first: fitness", *lines]
        )


async def episodes(bench: Bench, asked: OfAttemptArguments) -> EpisodeList:
    """Fitness, length and end of each evaluated episode."""
    attempt, description = bench.attempt(asked.attempt), bench.run.description
    found = await bench.episodes(attempt)
    lines = [
        EpisodeLine(
            number=int(name),
            fitness=fitness_of(episode, description),
            steps=length_of(episode),
            end=end_of(episode),
        )
        for name, episode in found.items()
    ]
    lines.sort(key=lambda each: (each.fitness is not None, each.fitness or 0.0, each.number))
    return EpisodeList(
        attempt=attempt.id, episodes=tuple(lines), seconds_a_step=description.control_dt
    )


class EventsArguments(OfAttemptArguments):
    episode: int = Field(description="number of the episode, as `episodes` lists it")


class Jump(Record):
    variable: str
    before: tuple[float, ...]
    after: tuple[float, ...]


class EventLine(Record):
    step: int
    seconds: float
    jumps: tuple[Jump, ...]
    others: int
    """Further variables that jump."""


class EventList(ToolAnswer):
    """Moments of an episode at which variables jump: a goal set anew, a contact."""

    attempt: str
    episode: int
    events: tuple[EventLine, ...]
    left_out: int

    def text(self) -> str:
        if not self.events:
            return f"No variable jumps in episode {self.episode} of {self.attempt}."
        lines = [f"Jumps in episode {self.episode} of {self.attempt}:"]
        for each in self.events:
            jumps = (f"{it.variable} {_row(it.before)} → {_row(it.after)}" for it in each.jumps)
            others = f" and {each.others} more" if each.others else ""
            lines.append(f"{number(each.seconds)} s: {', '.join(jumps)}{others}")
        lines += [f"and {self.left_out} later ones"] if self.left_out else []
        return "\n".join(lines)


async def events(bench: Bench, asked: EventsArguments) -> EventList:
    """Moments of an episode at which variables jump, with the values before and after."""
    attempt = bench.attempt(asked.attempt)
    found = await bench.episodes(attempt)
    if str(asked.episode) not in found:
        raise ToolError(
            f"{attempt.id} has no episode {asked.episode}", f"expected 0 to {len(found) - 1}"
        )
    episode, description = found[str(asked.episode)], bench.run.description
    every = events_of(episode, description.public_variables())
    steps = length_of(episode)
    lines = [
        EventLine(
            step=event.step,
            seconds=(event.step + 1) * description.control_dt,  # after the step
            jumps=tuple(_jump(episode, name, event.step, steps) for name in event.names[:3]),
            others=max(0, len(event.names) - 3),
        )
        for event in every[:MOST_EVENTS]
    ]
    return EventList(
        attempt=attempt.id,
        episode=asked.episode,
        events=tuple(lines),
        left_out=len(every) - len(lines),
    )


def _jump(episode: Episode, name: str, step: int, steps: int) -> Jump:
    columns = as_columns(episode[name], steps)
    before, after = (tuple(columns[at][:MOST_COLUMNS_SHOWN].tolist()) for at in (step - 1, step))
    return Jump(variable=name, before=before, after=after)


def _row(values: Sequence[float]) -> str:
    return number(values[0]) if len(values) == 1 else f"[{', '.join(map(number, values))}]"


# ── ask ───────────────────────────────────────────────────────────────────────────────────────────


class AskArguments(OfAttemptArguments):
    expression: str = Field(
        description="one number a step, in the language of rewards, over the variables, such as"
        " velocity.norm(dim=-1); previous_<name> is the value a step before, design_observation"
        " what the policy sees where that is designed"
    )
    where: str = Field("", description="condition of the steps that count, such as distance < 0.1")


class AskedEpisodes(ToolAnswer):
    attempt: str
    answer: QuestionAnswer

    def text(self) -> str:
        told = self.answer
        condition = f" where {told.where}" if told.where else ""
        head = f"{told.expression}{condition}, attempt {self.attempt}"
        return "\n".join([head, *(f"  {line}" for line in answer_lines(told))])


async def ask(bench: Bench, asked: AskArguments) -> AskedEpisodes:
    """Statistics of an expression over all evaluated episodes of an attempt."""
    description, expression = bench.run.description, asked.expression.strip()
    attempt = bench.attempt(asked.attempt)
    source = attempt.proposal.reward.source
    observes = parameter_names(source, OBSERVATION_FUNCTION)
    reward = question(expression, asked.where, description, source, observes)
    path = await bench.episodes_file(attempt)
    values = await bench.runner.ask(reward, {f"{attempt.id}-all": path})
    if values.reason:
        reason = re.sub(r"^line \d+: the total", "it", values.reason)
        hint = "it gives one number a step: an entry, as in x[:, 0], or what x.norm(dim=-1) gives"
        raise QuestionError(f"{expression!r} has no values: {reason}", hint)
    found = await bench.episodes(attempt)
    told = (expression, asked.where.strip())
    terms = values.terms.get(CONDITION)
    # it looks for events in all episodes
    known = await asyncio.to_thread(answer, told, values.total, terms, found, description)
    return AskedEpisodes(attempt=attempt.id, answer=known)


# ── compare ───────────────────────────────────────────────────────────────────────────────────────


class CompareArguments(Record):
    first: str = Field(description="id of a trained attempt")
    second: str = Field(description="id of another one")


class ComparedSide(Record):
    attempt: str
    fitness: tuple[float, ...]
    """One for each of its trainings."""
    terms: dict[str, float]
    """Share of the reward's size, by term."""
    endings: str


class ComparedVariable(Record):
    name: str
    means: tuple[float, float]
    deviations: float
    """Difference of the means in deviations between episodes."""


class ComparedAttempts(ToolAnswer):
    first: ComparedSide
    second: ComparedSide
    code: str
    variables: tuple[ComparedVariable, ...]
    """Entries whose means over an episode differ most, as magnitudes."""

    def text(self) -> str:
        lines = []
        for side in (self.first, self.second):
            fitness = ", ".join(significant(each) for each in side.fitness)
            terms = ", ".join(f"{name} {share:.0%}" for name, share in side.terms.items())
            ends = f"; {side.endings}" if side.endings else ""
            lines.append(f"{side.attempt}: fitness {fitness}{ends}; terms {terms}")
        lines.append(f"Code, from {self.first.attempt} to {self.second.attempt}: {self.code}")
        if self.variables:
            means = (
                f"{it.name} {number(it.means[0])} → {number(it.means[1])}" for it in self.variables
            )
            lines.append(f"Mean magnitudes that differ most: {', '.join(means)}")
        return "\n".join(lines)


async def compare(bench: Bench, asked: CompareArguments) -> ComparedAttempts:
    """Differences of two attempts: fitness, terms, code and behaviour."""
    pair = bench.attempt(asked.first), bench.attempt(asked.second)
    first, second = [await bench.episodes(each) for each in pair]
    sources = (each.proposal.reward.source for each in pair)
    return ComparedAttempts(
        first=_side(pair[0]),
        second=_side(pair[1]),
        code=difference(*sources),
        variables=await asyncio.to_thread(_differing, first, second, bench.run.description),
    )


def _side(attempt: Attempt) -> ComparedSide:
    diagnosis = attempt.diagnosis
    components = () if diagnosis is None else diagnosis.components
    return ComparedSide(
        attempt=attempt.id,
        fitness=attempt.fitness_per_seed,
        terms={each.name: each.share for each in components},
        endings="" if diagnosis is None else diagnosis.endings,
    )


def _differing(
    first: Mapping[str, Episode], second: Mapping[str, Episode], description: TaskDescription
) -> tuple[ComparedVariable, ...]:
    found = []
    for variable in description.public_variables():
        means = [_episode_means(each, variable.name) for each in (first, second)]
        if any(not len(each) for each in means) or means[0].shape[1] != means[1].shape[1]:
            continue
        deviations = np.sqrt((means[0].var(axis=0) + means[1].var(axis=0)) / 2)
        gaps = means[1].mean(axis=0) - means[0].mean(axis=0)
        for place, gap in enumerate(gaps.tolist()):
            entry = f"[{place}]" if len(gaps) > 1 else ""
            before, after = (float(each[:, place].mean()) for each in means)
            spread = max(float(deviations[place]), 0.02 * max(abs(before), abs(after)), 1e-9)
            found.append(
                ComparedVariable(
                    name=f"{variable.name}{entry}",
                    means=(before, after),
                    deviations=abs(gap) / spread,
                )
            )
    found.sort(key=lambda each: -each.deviations)
    return tuple(each for each in found[:MOST_DIFFERENCES] if each.deviations > 1.0)


def _episode_means(episodes: Mapping[str, Episode], name: str) -> Columns:
    """Mean magnitude of each column in each episode. Shape: (episodes, columns)."""
    means = [
        np.abs(as_columns(each[name], length_of(each))).mean(axis=0)
        for each in episodes.values()
        if is_whole(each.get(name), length_of(each)) and length_of(each)
    ]
    return np.stack(means) if means else np.zeros((0, 0))


# ── frames ────────────────────────────────────────────────────────────────────────────────────────


class FramesArguments(OfAttemptArguments):
    moments: tuple[float, ...] = Field(
        (), max_length=12, description="seconds; without them six from start to end"
    )


class FramesShown(ToolAnswer):
    attempt: str
    description: str
    media_type: str
    base64: str

    def text(self) -> str:
        return f"Attempt {self.attempt}. {self.description}"

    def pictures(self) -> tuple[ImagePart, ...]:
        return (ImagePart(b64decode(self.base64), self.description),)


async def frames(bench: Bench, asked: FramesArguments) -> FramesShown:
    """Moments of the best and the worst episode of an attempt, as one picture."""
    attempt = bench.attempt(asked.attempt)
    if bench.photograph is None:
        raise ToolError("there are no pictures here", "ask the other tools")
    found = await bench.photograph(attempt, asked.moments)
    return FramesShown(
        attempt=attempt.id,
        description=found.description,
        media_type=found.media_type,
        base64=found.base64,
    )
