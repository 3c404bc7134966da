"""The tool that tries a draft of a reward without training it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from pydantic import Field

from eureka_agent.analysis.curves import number
from eureka_agent.analysis.events import finite_mean, numbers_of, slices_of
from eureka_agent.base_record import Record
from eureka_agent.critic.credit import credit_distances
from eureka_agent.critic.memory import KnownEpisodes, Memory
from eureka_agent.designer.observations import kept_reward, with_observation
from eureka_agent.records import Credit, EpisodeOrder, Finding
from eureka_agent.rewards import CodeReward, RewardSpecification
from eureka_agent.tools.bench import Bench, ToolAnswer, ToolError

AUTHOR = "draft"
TOTAL = "total"
MOST_FILES = 6
"""Attempts whose recorded episodes are paid, half of them good ones."""
MOST_COMPARED = 24
"""Trained rewards of which the nearest is sought, the newest ones."""
MOST_EXPLOITS = 3


class DraftArguments(Record):
    source: str = Field(description="the whole reward function as Python code")


class Payments(Record):
    """Mean of each term and of the total in a step; None where it has no finite value."""

    episodes: str
    means: dict[str, float | None]


class NearestReward(Record):
    attempt: str
    alike: float
    """Mean rank correlation of the credit that both give to recorded steps."""
    fitness: float | None


class Overpaid(Record):
    """An episode that pays more than the best one."""

    episode: str
    fitness: float
    total: float


class DraftReport(ToolAnswer):
    """Verdict on a draft, and what it would have paid."""

    accepted: bool
    findings: tuple[Finding, ...]
    payments: tuple[Payments, ...] = ()
    order: EpisodeOrder | None = None
    credit: Credit | None = None
    """Without its ranks."""
    nearest: NearestReward | None = None
    best: Overpaid | None = None
    """The best recorded episode."""
    overpaid: tuple[Overpaid, ...] = ()

    def text(self) -> str:
        lines = ["It would be accepted." if self.accepted else "It would be rejected:"]
        for each in self.findings:
            line = "" if each.line is None else f", line {each.line}"
            hint = f" ({each.hint})" if each.hint else ""
            lines.append(f"- {each.code} {each.severity}{line}: {each.message}{hint}")
        if self.payments:
            lines += _table(self.payments)
        if self.order is not None:
            right = f"{self.order.right:g} of {self.order.pairs}"
            lines.append(
                f"Its returns put {right} pairs of recorded episodes, which differ clearly in"
                " fitness, in the order of their fitness."
            )
        if (known := self.credit) is not None:
            lines.append(
                "Rank correlation with the fitness on steps of early policies: single steps"
                f" {known.step:.2f}, discounted returns {known.to_go:.2f}, advantages"
                f" {known.advantage:.2f}."
            )
        if (near := self.nearest) is not None:
            lines.append(
                f"Nearest trained reward by the credit of these steps: {near.attempt}"
                f" ({near.alike:.2f} alike), fitness {number(near.fitness)}."
            )
        if self.overpaid and self.best is not None:
            told = (f"{it.episode}, {number(it.total)}" for it in self.overpaid)
            lines.append(
                f"It pays {number(self.best.total)} over the best recorded episode"
                f" ({self.best.episode}, fitness {number(self.best.fitness)}), and more over worse"
                f" ones: {'; '.join(told)}."
            )
        return "\n".join(lines)


def _table(payments: Sequence[Payments]) -> list[str]:
    names = list(dict.fromkeys(name for each in payments for name in each.means))
    rows = [["mean a step", *(each.episodes for each in payments)]]
    rows += [[name, *(number(each.means.get(name)) for each in payments)] for name in names]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


async def try_reward(bench: Bench, asked: DraftArguments) -> DraftReport:
    """Judge a draft as a proposal is judged, and say what it would have paid. No training."""
    source, alone = asked.source, bench.run.settings.design == "observation"
    if alone:
        source, problem = with_observation(kept_reward(bench.run.description), source)
        if problem:
            raise ToolError(f"no draft of an observation: {problem}", "leave the reward out")
    draft: RewardSpecification = CodeReward(source=source, author=AUTHOR)
    memory = bench.memory()
    verdict = await bench.critic.judge(draft, memory)
    if alone:  # the kept reward pays what it always does
        return DraftReport(
            accepted=verdict.accepted, findings=_of_draft(verdict.findings, source, asked.source)
        )
    if not verdict.accepted:
        return DraftReport(accepted=False, findings=verdict.findings)
    if verdict.repaired is not None:
        draft = draft.with_source(verdict.repaired)
    random = await bench.runner.ask(draft, {})
    payments = [] if random.reason else [_payments("random actions", random.total, random.terms)]
    stored, best, overpaid = await _stored(bench, draft, memory)
    credit, nearest = await _credit(bench, draft, memory)
    return DraftReport(
        accepted=True,
        findings=verdict.findings,
        payments=(*payments, *stored),
        order=verdict.order,
        credit=credit,
        nearest=nearest,
        best=best,
        overpaid=overpaid,
    )


def _of_draft(findings: Sequence[Finding], joined: str, draft: str) -> tuple[Finding, ...]:
    """The findings with lines of the draft, which ends the joined source."""
    before = joined.count("\n") - draft.rstrip("\n").count("\n") - 1
    return tuple(
        each.model_copy(update={"line": line - before if line > before else None})
        for each in findings
        for line in (each.line or 0,)
    )


Values = Sequence[float | None]


def _payments(episodes: str, total: Values, terms: Mapping[str, Values]) -> Payments:
    means = {name: finite_mean(numbers_of(values)) for name, values in terms.items()}
    return Payments(episodes=episodes, means={**means, TOTAL: finite_mean(numbers_of(total))})


def _chosen(episodes: Sequence[KnownEpisodes]) -> list[KnownEpisodes]:
    """Some with the best and some with the worst episodes."""
    order = sorted(episodes, key=lambda each: (max(each.fitness.values()), each.attempt))
    if len(order) <= MOST_FILES:
        return order
    half = MOST_FILES // 2
    return [*order[:half], *order[-half:]]


async def _stored(
    bench: Bench, draft: RewardSpecification, memory: Memory
) -> tuple[list[Payments], Overpaid | None, tuple[Overpaid, ...]]:
    """Payments in bad and good recorded episodes, the best of them, and worse ones that it pays
    more."""
    files = _chosen(memory.episodes)
    if not files:
        return [], None, ()
    asked = await bench.runner.ask(draft, {each.attempt: each.path for each in files})
    lengths = [steps for each in files for steps in each.steps]
    if asked.reason or sum(lengths) != len(asked.total):
        return [], None, ()
    names = [f"{it.attempt} {name}" for it in files for name in it.fitness]
    fitness = [value for each in files for value in each.fitness.values()]
    parts = slices_of(lengths)
    order = sorted(range(len(fitness)), key=lambda each: fitness[each])
    some = max(1, len(order) // 3)
    payments = []
    for word, places in (("bad", order[:some]), ("good", order[-some:])):
        values = [fitness[each] for each in places]
        steps = [step for each in places for step in range(parts[each].start, parts[each].stop)]
        terms = {name: [it[step] for step in steps] for name, it in asked.terms.items()}
        known = " to ".join(dict.fromkeys(map(number, (min(values), max(values)))))
        head = f"{word} episodes (fitness {known})"
        payments.append(_payments(head, [asked.total[step] for step in steps], terms))
    totals = [float(np.nansum(numbers_of(asked.total[part]))) for part in parts]
    paid = [
        Overpaid(episode=names[each], fitness=fitness[each], total=totals[each]) for each in order
    ]
    best = paid[-1]
    gap = 0.1 * (best.fitness - paid[0].fitness)
    more = [it for it in paid if it.total > best.total and it.fitness < best.fitness - gap]
    more.sort(key=lambda each: -each.total)
    return payments, best, tuple(more[:MOST_EXPLOITS])


async def _credit(
    bench: Bench, draft: RewardSpecification, memory: Memory
) -> tuple[Credit | None, NearestReward | None]:
    """Its credit on recorded steps, and the trained reward with the most similar one."""
    if not memory.practice:
        return None, None
    trained = list(bench.trained().values())[-MOST_COMPARED:]
    rewards = [draft, *(each.proposal.reward for each in trained)]
    own, *others = await bench.critic.credits(rewards, memory)
    if own is None:
        return None, None
    alike = [
        (1.0 - float(credit_distances([own, credit])[0, 1]), attempt)
        for attempt, credit in zip(trained, others, strict=True)
        if credit is not None and len(credit.ranks) == len(own.ranks)
    ]
    shown = own.model_copy(update={"ranks": ()})
    if not alike:
        return shown, None
    value, attempt = max(alike, key=lambda each: each[0])
    return shown, NearestReward(attempt=attempt.id, alike=value, fitness=attempt.fitness)
