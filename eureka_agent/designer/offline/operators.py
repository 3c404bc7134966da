"""How a genome changes from one generation to the next: weights, structure, crossing, and something
else altogether."""

from __future__ import annotations

import math
from collections.abc import Iterable

from eureka_agent.designer.offline.compose import MAX_TERMS, Composition, compose
from eureka_agent.designer.offline.dice import THEMES, Dice
from eureka_agent.designer.offline.genome import Genome, set_number, unique_terms
from eureka_agent.designer.offline.matching import Scene
from eureka_agent.designer.offline.operands import rounded
from eureka_agent.designer.offline.terms import Failure, Term
from eureka_agent.designer.offline.unasked import Option, generic_options, optional_terms
from eureka_agent.designer.offline.vocabulary import Intent
from eureka_agent.records import Diagnosis

WEIGHT_SPREAD = 0.5
"""Standard deviation of the logarithm of a retuned weight: two in three change by less than a
factor of 1.6."""
_SMALLEST_CHANGE = 0.1
"""Logarithm of the least factor of a retuned weight: less is lost in the training's noise."""
_DRAWS = 6
"""Fresh rewards among which the most different one is taken."""
_FACTORS = {"saturated-actions": 3.0, "reward-hacking": 0.3}
"""Factors on the price of effort where actions are at their bounds, and on the weight of what was
hacked."""


def improve(genome: Genome, diagnosis: Diagnosis | None, dice: Dice) -> Composition:
    """Retuned, after a diagnosis has had its say on single weights. Larger edits did not pay
    (benchmarks/LOG.md)."""
    notes, changed = [], set()  # what is raised comes before what is dropped
    for finding in sorted(
        diagnosis.findings if diagnosis is not None else (),
        key=lambda each: each.code,
        reverse=True,
    ):
        name = "effort" if finding.code == "saturated-actions" else finding.component or ""
        term = genome.term(name)
        if term is None or name in changed:
            continue
        if finding.code in _FACTORS:
            genome = genome.scaled(name, _FACTORS[finding.code])
            done = f"the weight of '{name}' is multiplied by {_FACTORS[finding.code]:g}"
        elif finding.code == "dead-component" and term.penalty and not isinstance(term, Failure):
            genome, done = genome.without(name), f"'{name}' is dropped"
        else:
            continue
        changed.add(
            name
        )  # a price that is raised against saturation is not dropped for being small
        notes.append(f"{finding.message.rstrip('.')}. So {done}.")
    tuned = retune(genome, dice, spread=0.15 if notes else 0.35)
    return Composition(tuned.genome, (*notes, *tuned.notes))


def retune(genome: Genome, dice: Dice, spread: float = WEIGHT_SPREAD) -> Composition:
    """Weights and shape parameters times log-normal factors; the structure stays."""
    generator = dice.generator
    names = [term.name for term in genome.terms]
    picked = [name for name in names if generator.random() < 0.5] or [generator.choice(names)]
    notes = []
    for term in [term for term in genome.terms if term.name in picked]:
        parameters = term.parameters()
        if parameters and generator.random() < 0.4:
            parameter = generator.choice(parameters)
            value = float(getattr(term, parameter)) * _factor(dice, spread)
            genome = genome.with_term(set_number(term, parameter, value))
            notes.append(f"{parameter} of '{term.name}' is now {value:.2g}")
        else:
            factor = _factor(dice, spread)
            genome = genome.scaled(term.name, factor)
            notes.append(f"the weight of '{term.name}' is multiplied by {factor:g}")
    return Composition(genome, (f"Retuned: {'; '.join(notes)}.",))


def _factor(dice: Dice, spread: float) -> float:
    """A log-normal factor that changes something: at least by a tenth, up or down."""
    drawn = dice.generator.gauss(0.0, spread)
    return rounded(math.exp(math.copysign(_SMALLEST_CHANGE + abs(drawn), drawn)), digits=2)


def mutate_structure(
    genome: Genome, scene: Scene, intents: tuple[Intent, ...], dice: Dice
) -> Composition:
    """One term added, dropped, or drawn anew."""
    moves = [_add, _add, _drop, _reshape]
    dice.generator.shuffle(moves)
    for move in moves:
        changed = move(genome, scene, intents, dice)
        if changed is not None:
            return changed
    return retune(genome, dice)


def crossover(first: Genome, second: Genome, dice: Dice) -> Composition:
    """Terms of both parents: shared ones from either, the others more often from the better
    parent."""
    generator = dice.generator
    kept: list[Term] = []
    from_second: list[str] = []
    for name in dict.fromkeys(term.name for term in (*first.terms, *second.terms)):
        one, other = first.term(name), second.term(name)
        if one is not None and other is not None:
            pick = one if generator.random() < 0.5 else other
        elif one is not None:
            if one.penalty and generator.random() < 0.3:
                continue
            pick = one
        else:
            assert other is not None
            if generator.random() < 0.5:
                continue
            pick = other
        if pick is other:
            from_second.append(name)
        kept.append(pick)
    genome = Genome(terms=unique_terms(kept))
    taken = ", ".join(f"'{name}'" for name in from_second) or "nothing"
    return Composition(
        genome, (f"Crossed: from the second parent come {taken}; the rest is the first's.",)
    )


def different(
    scene: Scene, intents: tuple[Intent, ...], dice: Dice, known: Iterable[Genome]
) -> Composition:
    """Of several fresh rewards the one that shares least with what is known."""
    others = [_traits(genome) for genome in known]
    drawn = [
        compose(scene, intents, Dice(dice.generator, dice.generator.choice(THEMES[4:])))
        for _ in range(_DRAWS)
    ]
    return min(
        drawn,
        key=lambda each: max(
            (_overlap(_traits(each.genome), other) for other in others), default=0.0
        ),
    )


def _traits(genome: Genome) -> set[tuple[str, ...]]:
    return {(term.kind, *term.arguments()) for term in genome.terms}


def _overlap(first: set[tuple[str, ...]], second: set[tuple[str, ...]]) -> float:
    """Jaccard index of two sets of terms."""
    return len(first & second) / max(1, len(first | second))


def _add(
    genome: Genome, scene: Scene, intents: tuple[Intent, ...], dice: Dice
) -> Composition | None:
    """A term that the reward does not have yet: an optional one, another that the sentence asks
    for, or one of a variable that it does not read."""
    fresh = compose(scene, intents, Dice(dice.generator, THEMES[4])).genome
    options = optional_terms(scene, intents, dice)
    known = {option.term.name for option in options}
    options += [
        Option(term, 0.5, "it serves what the sentence asks for")
        for term in fresh.terms
        if term.name not in known
    ]
    options += generic_options(scene, genome.terms, dice, 0.05)
    options = [option for option in options if genome.term(option.term.name) is None]
    if not options or len(genome.terms) >= MAX_TERMS:
        return None
    option = dice.generator.choices(options, weights=[option.probability for option in options])[0]
    return Composition(
        genome.with_term(option.term), (f"Added '{option.term.name}': {option.why}.",)
    )


def _drop(
    genome: Genome, scene: Scene, intents: tuple[Intent, ...], dice: Dice
) -> Composition | None:
    asked = {name for name, _ in compose(scene, intents, dice).asked}
    candidates = [term.name for term in genome.terms if term.name not in asked]
    if not candidates or len(genome.terms) < 2:
        return None
    name = dice.generator.choice(candidates)
    smaller = genome.without(name)
    return (
        None
        if smaller.empty
        else Composition(smaller, (f"Dropped '{name}', to see whether it is needed.",))
    )


def _reshape(
    genome: Genome, scene: Scene, intents: tuple[Intent, ...], dice: Dice
) -> Composition | None:
    """A term redrawn in another form or with other parameters."""
    fresh = compose(scene, intents, Dice(dice.generator, THEMES[6]))
    redrawn = [
        term
        for term in fresh.genome.terms
        if (known := genome.term(term.name)) is not None and known != term
    ]
    if not redrawn:
        return None
    term = dice.generator.choice(redrawn)
    return Composition(
        genome.with_term(term), (f"'{term.name}' is drawn anew: {term.describe()}.",)
    )
