"""The designer without a model or a key: the default, and the baseline to beat."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from decimal import Decimal

from eureka_agent.critic.memory import normalized
from eureka_agent.designer.interface import DesignRequest
from eureka_agent.designer.offline.compose import (
    FREE,
    MAX_TERMS,
    OTHER_SHAPES,
    THEMES,
    Composition,
    Dice,
    Option,
    compose,
    generic_options,
    optional_terms,
)
from eureka_agent.designer.offline.scene import TaskReading
from eureka_agent.designer.offline.terms import TUNABLE, Genome, pays, recover, render, rounded
from eureka_agent.designer.offline.wishes import as_told
from eureka_agent.records import Cost, Operator, Proposal, Verdict
from eureka_agent.rewards import CodeReward

_TRIES = 24
"""Draws until a proposal differs from what is already there."""
_WEIGHT_SPREAD = 0.5
"""Standard deviation of a retuned weight's logarithm: two in three factors are below 1.6."""
_SMALLEST_CHANGE = 0.1
"""Logarithm of the least factor of a retuned weight: less is lost in the training's noise."""


class OfflineDesigner:
    """Composes rewards from variables and the task's words, and evolves them by fitness."""

    name = "offline"
    concurrent = False

    async def propose(self, request: DesignRequest) -> Proposal:
        """A reward that is none of the siblings, parents or failures; the same for each request."""
        scene = TaskReading(request.description, request.sentence)
        parents = [_genome(request, parent.reward.source) for parent in request.parents]
        parents = [genome for genome in parents if pays(genome)]
        failed = [each.reward for each in request.failures if each.stage in ("rejected", "failed")]
        rewards = [*(parent.reward for parent in request.parents), *failed]
        sources = [*request.siblings, *(reward.source for reward in rewards)]
        known = set(map(normalized, sources))
        asked_before = request.siblings or request.failures or request.parents
        for attempt in range(_TRIES):
            generator = random.Random(f"{request.seed}/{attempt}")
            first, place = attempt == 0, len(request.siblings)
            if parents and request.operator is not Operator.FRESH:
                made = _offspring(request, scene, parents, Dice(generator, FREE), first)
            elif first and not asked_before:
                made = compose(scene, Dice(generator))
            else:
                # siblings go through the themes, then they draw one
                next_in_turn = first and 0 < place < len(THEMES)
                theme = THEMES[place] if next_in_turn else generator.choice(THEMES[2:])
                made = compose(scene, Dice(generator, theme))
            genome, notes = as_told(made.genome, request.description, request.told)
            proposal = _proposal(request, genome, [*made.notes, *notes])
            if normalized(proposal.reward.source) not in known:
                break
        return proposal

    async def revise(
        self, request: DesignRequest, rejected: Proposal, verdict: Verdict
    ) -> Proposal:
        """The proposal without the terms that errors name; else a draft, or another draw."""
        errors = [each.message for each in verdict.findings if each.severity == "error"]
        found, reasons = "\n".join(errors), f"The critic found: {'; '.join(errors)}."
        genome = _genome(request, rejected.reward.source)
        blamed = [name for name in genome if repr(name) in found]
        kept = {name: term for name, term in genome.items() if name not in blamed}
        if blamed and pays(kept):
            names = ", ".join(map(repr, blamed))
            return _proposal(request, kept, [f"{reasons} So {names} is left out."])
        if request.drafts:
            draft = request.drafts[0]
            note = f"{reasons} So the next draft is taken."
            return draft.model_copy(update={"reasoning": f"{note} {draft.reasoning}"})
        scene = TaskReading(request.description, request.sentence)
        generator = random.Random(f"{request.seed}/revision/{normalized(rejected.reward.source)}")
        made = compose(scene, Dice(generator, generator.choice(THEMES[1:])))
        return _proposal(request, made.genome, [f"{reasons} So this is another draw.", *made.notes])


def _genome(request: DesignRequest, source: str) -> Genome:
    return recover(source, [variable.name for variable in request.description.variables])


def _proposal(request: DesignRequest, genome: Genome, notes: Iterable[str]) -> Proposal:
    public = request.description.public_variables()
    names = [variable.name for variable in request.description.variables]
    source = render(genome, request.sentence, names)
    parents = tuple(parent.id for parent in request.parents)
    said = "; ".join(f"{name!r}: {term.says()}" for name, term in genome.items())
    reasoning = " ".join([*notes, f"The terms are {said}."])
    asked = f"Task: {request.sentence}\nMetric: {request.description.fitness_doc}\n"
    asked += f"Operator: {request.operator.value}, of {', '.join(parents) or 'nothing'}\n"
    return Proposal(
        reward=CodeReward(source=source, author=OfflineDesigner.name),
        reasoning=reasoning,
        operator=request.operator,
        parents=parents,
        prompt=f"{asked}Variables: {', '.join(each.name for each in public)}\n",
        reply=f"{reasoning}\n\n```python\n{source}```\n",
        cost=Cost(money=Decimal(0), prompt_tokens=0, completion_tokens=0),
    )


def _offspring(
    request: DesignRequest, scene: TaskReading, parents: list[Genome], dice: Dice, first: bool
) -> Composition:
    match request.operator:
        case Operator.IMPROVE:
            return retune(parents[0], dice, spread=0.35)  # larger steps gained nothing
        case Operator.RETUNE_WEIGHTS:
            return retune(parents[0], dice)
        case Operator.CROSSOVER if len(parents) > 1:
            crossed = _crossed(parents[0], parents[1], dice)
            # equal parents, or a draw that took all from one, would repeat a reward
            return crossed if first else retune(crossed.genome, dice)
        case Operator.DIFFERENT:
            return compose(scene, Dice(dice.generator, dice.generator.choice(THEMES[4:])))
        case _:
            moves = [_add, _add, _drop]
            dice.generator.shuffle(moves)
            made = (move(parents[0], scene, dice) for move in moves)
            return next(filter(None, made), None) or retune(parents[0], dice)


def retune(genome: Genome, dice: Dice, spread: float = _WEIGHT_SPREAD) -> Composition:
    """Weights and shape parameters times log-normal factors; the structure stays."""
    generator = dice.generator
    picked = [term for term in genome.values() if generator.random() < 0.5]
    notes = []
    for term in picked or [generator.choice([*genome.values()])]:
        numbers = [number for number in term.numbers if number in TUNABLE]
        shaped = numbers and generator.random() < 0.4
        number = generator.choice(numbers) if shaped else "weight"
        # a factor that changes something, up or down
        drawn = generator.gauss(0.0, spread)
        factor = rounded(math.exp(math.copysign(_SMALLEST_CHANGE + abs(drawn), drawn)), digits=2)
        genome = {**genome, term.name: term.scaled(number, factor)}
        notes.append(f"the {number} of '{term.name}' is multiplied by {factor:g}")
    return Composition(genome, (f"Retuned: {'; '.join(notes)}.",))


def _crossed(first: Genome, second: Genome, dice: Dice) -> Composition:
    """Terms of both parents: shared ones from either, others more often from the better one."""
    kept: Genome = {}
    for name in {**first, **second}:
        one, other = first.get(name), second.get(name)
        if one is not None and other is not None:
            kept[name] = one if dice.generator.random() < 0.5 else other
        elif one is not None and not (one.penalty and dice.generator.random() < 0.3):
            kept[name] = one
        elif other is not None and dice.generator.random() >= 0.5:
            kept[name] = other
    taken = ", ".join(f"'{name}'" for name, term in kept.items() if first.get(name) is not term)
    note = f"Crossed: from the second parent come {taken or 'nothing'}; the rest is the first's."
    return Composition(kept, (note,))


def _add(genome: Genome, scene: TaskReading, dice: Dice) -> Composition | None:
    """A new term: an optional one, one that is asked for, or one of a variable not yet read."""
    fresh = compose(scene, Dice(dice.generator, OTHER_SHAPES)).genome
    options = optional_terms(scene, dice)
    known = {option.term.name for option in options}
    options += [Option(term, 0.5) for term in fresh.values() if term.name not in known]
    options += generic_options(scene, genome.values(), dice, 0.05)
    options = [option for option in options if option.term.name not in genome]
    if not options or len(genome) >= MAX_TERMS:
        return None
    term = dice.generator.choices(options, [each.probability for each in options])[0].term
    return Composition({**genome, term.name: term}, (f"Added '{term.name}': {term.says()}.",))


def _drop(genome: Genome, scene: TaskReading, dice: Dice) -> Composition | None:
    """A term less, of those that nobody asked for."""
    asked = {name for name, _ in compose(scene, dice).asked}
    candidates = [name for name in genome if name not in asked]
    if not candidates or len(genome) < 2:
        return None
    name = dice.generator.choice(candidates)
    smaller = {each: term for each, term in genome.items() if each != name}
    note = f"Dropped '{name}', to see whether it is needed."
    return Composition(smaller, (note,)) if pays(smaller) else None
