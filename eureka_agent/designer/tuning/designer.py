"""The designer that tunes a reward's named constants with a numeric optimiser, without a model or
tokens."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from eureka_agent.designer.interface import DesignRequest, ParentSummary
from eureka_agent.designer.source_tools import entry_function
from eureka_agent.designer.tuning.constants import (
    as_written,
    family,
    tunable_constants,
    with_constants,
)
from eureka_agent.designer.tuning.optimiser import LEAST_TRIALS, Trial, suggest
from eureka_agent.records import Cost, Operator, Proposal, Verdict
from eureka_agent.rewards import CodeReward

_TRIES = 24
"""Draws for a proposal that differs from all known ones."""
_LEAST_CHANGE = math.log(1.05)
"""Least change of one constant, as a logarithm, from every known reward of the same form. Less is
lost in a training's noise."""
_CLOSER = 0.5
"""Step of a revision from the parent, as a part of the rejected one's."""


def can_tune(source: str) -> bool:
    """True if the reward has constants to tune."""
    return entry_function(source) is not None and bool(tunable_constants(source))


def worth_tuning(source: str, trained: Sequence[str]) -> bool:
    """True if enough rewards of this form are trained for the optimiser to beat chance. `trained`
    are all trained sources."""
    form = family(source)
    return can_tune(source) and sum(family(other) == form for other in trained) >= LEAST_TRIALS


class TuningDesigner:
    """Proposes a parent's reward with other constants, by the trainings of the same form."""

    name = "tuning"
    concurrent = True

    async def propose(self, request: DesignRequest) -> Proposal:
        """The first parent's reward with constants that no known reward of its form has. Its source
        is empty if it has none to tune."""
        return await _propose(request)

    async def revise(
        self, request: DesignRequest, rejected: Proposal, verdict: Verdict
    ) -> Proposal:
        """Another draw, half as far from the parent as the rejected one."""
        return await _propose(request, rejected, verdict)


@dataclass(frozen=True)
class _Form:
    """Known rewards that differ from the parent only in their constants."""

    parent: ParentSummary
    constants: dict[str, float]
    """The parent's constants."""
    trials: dict[str, Trial]
    """Trials by attempt, in their order."""
    known: tuple[Mapping[str, float], ...]
    """Constants not to be proposed: trained, failed, proposed beside this one, or just rejected."""

    def distance(self, values: Mapping[str, float]) -> float:
        """The largest change of a constant from the nearest known reward, as a logarithm."""
        return min(_change(values, known) for known in self.known)


async def _propose(
    request: DesignRequest, rejected: Proposal | None = None, verdict: Verdict | None = None
) -> Proposal:
    parent = request.parents[0] if request.parents else None
    if parent is None or not can_tune(parent.reward.source):
        return _proposal(request, "", _nothing_to_tune(parent), "")
    form = _form(request, parent, rejected)
    values = await _values(request, form, rejected)
    prompt = _optimiser_input(form)
    if form.distance(values) == 0.0:
        text = f"All constants that were drawn for {parent.id} are known."
        return _proposal(request, "", text, prompt)
    findings = verdict.findings if verdict else ()
    reasons = [finding.message for finding in findings if finding.severity == "error"]
    reasoning = _reasoning(form, values, reasons)
    return _proposal(request, with_constants(parent.reward.source, values), reasoning, prompt)


def _form(request: DesignRequest, parent: ParentSummary, rejected: Proposal | None) -> _Form:
    constants, form = tunable_constants(parent.reward.source), family(parent.reward.source)

    def constants_of(source: str) -> dict[str, float] | None:
        return tunable_constants(source) if family(source) == form else None

    found = {each.id: (constants_of(each.reward.source), each.fitness) for each in request.trained}
    trials = {
        name: Trial(values, fitness)
        for name, (values, fitness) in found.items()
        if values is not None and math.isfinite(fitness)
    }
    if parent.id not in trials and parent.fitness is not None and math.isfinite(parent.fitness):
        trials[parent.id] = Trial(constants, parent.fitness)
    others = [*request.siblings, *(failure.reward.source for failure in request.failures)]
    others += [rejected.reward.source] if rejected is not None else []
    known = [
        constants,
        *(values for values, _ in found.values() if values is not None),
        *(values for values in map(constants_of, others) if values is not None),
    ]
    return _Form(parent, constants, trials, tuple(known))


async def _values(
    request: DesignRequest, form: _Form, rejected: Proposal | None
) -> dict[str, float]:
    """New constants: the first draw that differs enough from the known ones, or the one that
    differs most."""
    start = f"{request.seed}"
    if rejected is not None:
        start += f"/revision/{rejected.reward.source}"
    drawn: list[dict[str, float]] = []
    for draw in range(_TRIES):
        seed = random.Random(f"{start}/{draw}").getrandbits(32)
        # in a thread, since importing and asking the optimiser is slow; and nothing else is, as
        # Python 3.11 raises SystemError where two threads parse at a time
        trials = list(form.trials.values())
        values = await asyncio.to_thread(suggest, form.constants, trials, seed)
        if rejected is not None:
            values = _closer(values, form, rejected)
        values = {name: as_written(value) for name, value in values.items()}
        if form.distance(values) >= _LEAST_CHANGE:
            return values
        drawn.append(values)
    return max(drawn, key=form.distance)


def _closer(values: Mapping[str, float], form: _Form, rejected: Proposal) -> dict[str, float]:
    """The values moved towards the parent's, to half the rejected reward's distance or half their
    own, whichever is less."""
    own = _change(values, form.constants)
    source = rejected.reward.source
    same_form = family(source) == family(form.parent.reward.source)
    farthest = _change(tunable_constants(source), form.constants) if same_form else own
    part = _CLOSER * min(1.0, farthest / own) if own > 0.0 else 0.0
    return {name: value * (values[name] / value) ** part for name, value in form.constants.items()}


def _change(values: Mapping[str, float], others: Mapping[str, float]) -> float:
    """The largest change of a constant of `others`, as a logarithm."""
    return max(abs(math.log(values[name] / value)) for name, value in others.items())


def _proposal(request: DesignRequest, source: str, reasoning: str, prompt: str) -> Proposal:
    return Proposal(
        reward=CodeReward(source=source, author=TuningDesigner.name),
        reasoning=reasoning,
        operator=Operator.TUNE_WEIGHTS,
        parents=tuple(parent.id for parent in request.parents[:1]),
        prompt=prompt,
        reply=f"{reasoning}\n\n```python\n{source}```\n" if source else reasoning,
        cost=Cost(money=Decimal(0), prompt_tokens=0, completion_tokens=0),
    )


def _nothing_to_tune(parent: ParentSummary | None) -> str:
    if parent is None:
        return "There is no reward to tune."
    return (
        f"The reward of {parent.id} has no constants to tune: floats with a name at the top level."
    )


def _reasoning(form: _Form, values: Mapping[str, float], reasons: Sequence[str]) -> str:
    parent, number = form.parent.id, len(form.trials)
    changes = [
        f"{name} {before:.4g} → {values[name]:.4g}"
        for name, before in form.constants.items()
        if values[name] != before
    ]
    text = (
        f"Kept the form of {parent} and changed {len(changes)} of its {len(form.constants)}"
        f" constants: {', '.join(changes)}."
    )
    trainings = f"{number} training{'' if number == 1 else 's'} of this form"
    if number < LEAST_TRIALS:
        text += f" With {trainings} known, this is a random step around {parent}."
    else:
        best = max(form.trials, key=lambda name: form.trials[name].fitness)
        worst = min(trial.fitness for trial in form.trials.values())
        text += (
            f" A Parzen estimator chose them by {trainings}, with fitness from {worst:.4g} to"
            f" {form.trials[best].fitness:.4g} ({best})."
        )
    if reasons:
        text = (
            f"The critic found: {'; '.join(reasons)}. So this is another step, and a smaller one."
            f" {text}"
        )
    return text


def _optimiser_input(form: _Form) -> str:
    """The optimiser's input as text for the run's records."""
    lines = [f"Trainings of the form of {form.parent.id}, by attempt: fitness; constants", ""]
    for name, trial in form.trials.items():
        values = ", ".join(f"{constant} {value:.4g}" for constant, value in trial.values.items())
        lines.append(f"{name}: {trial.fitness:.4g}; {values}")
    return "\n".join(lines) + "\n"
