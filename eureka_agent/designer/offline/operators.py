"""Changes of a genome from one generation to the next."""

from __future__ import annotations

import math
from collections.abc import Iterable

from eureka_agent.designer.offline.compose import MAX_TERMS, Composition, compose
from eureka_agent.designer.offline.dice import FREE, OTHER_SHAPES, THEMES, Dice
from eureka_agent.designer.offline.matching import Scene
from eureka_agent.designer.offline.terms import TUNABLE, Genome, Term, rounded, unique_terms
from eureka_agent.designer.offline.unasked import Option, generic_options, optional_terms
from eureka_agent.records import Diagnosis

WEIGHT_SPREAD = 0.5
"""Standard deviation of a retuned weight's logarithm: two in three factors are below 1.6."""
_SMALLEST_CHANGE = 0.1
"""Logarithm of the least factor of a retuned weight: less is lost in the training's noise."""
_DRAWS = 6
"""Fresh rewards among which the most different one is taken."""
_FACTORS = {"saturated-actions": 3.0, "reward-hacking": 0.3}
"""Factors on a term's weight by finding: on the price of effort, and on what was hacked."""


def improve(genome: Genome, diagnosis: Diagnosis | None, dice: Dice) -> Composition:
    """Retuned after edits by diagnosis, of single weights: larger ones gained nothing."""
    done: dict[str, str] = {}
    findings = diagnosis.findings if diagnosis is not None else ()
    # a price that is raised against saturation is not dropped for being small
    for finding in sorted(findings, key=lambda each: each.code, reverse=True):
        name = "effort" if finding.code == "saturated-actions" else finding.component or ""
        term = genome.term(name)
        if term is None or name in done:
            continue
        if finding.code in _FACTORS:
            factor = _FACTORS[finding.code]
            genome = genome.with_term(term.scaled("weight", factor))
            edit = f"the weight of '{name}' is multiplied by {factor:g}"
        elif finding.code == "dead-component" and term.penalty and term.kind != "failure":
            genome, edit = genome.without(name), f"'{name}' is dropped"
        else:
            continue
        done[name] = f"{finding.message.rstrip('.')}. So {edit}."
    tuned = retune(genome, dice, spread=0.15 if done else 0.35)
    return Composition(tuned.genome, (*done.values(), *tuned.notes))


def retune(genome: Genome, dice: Dice, spread: float = WEIGHT_SPREAD) -> Composition:
    """Weights and shape parameters times log-normal factors; the structure stays."""
    generator = dice.generator
    picked = [term for term in genome.terms if generator.random() < 0.5]
    notes = []
    for term in picked or [generator.choice(genome.terms)]:
        numbers = [number for number in term.numbers if number in TUNABLE]
        shaped = numbers and generator.random() < 0.4
        number = generator.choice(numbers) if shaped else "weight"
        # a factor that changes something, up or down
        drawn = generator.gauss(0.0, spread)
        factor = math.exp(math.copysign(_SMALLEST_CHANGE + abs(drawn), drawn))
        factor = rounded(factor, digits=2)
        genome = genome.with_term(term.scaled(number, factor))
        notes.append(f"the {number} of '{term.name}' is multiplied by {factor:g}")
    return Composition(genome, (f"Retuned: {'; '.join(notes)}.",))


def mutate_structure(genome: Genome, scene: Scene, dice: Dice) -> Composition:
    """One term added, dropped, or drawn anew."""
    moves = [_add, _add, _drop, _reshape]
    dice.generator.shuffle(moves)
    made = (move(genome, scene, dice) for move in moves)
    return next((each for each in made if each is not None), None) or retune(genome, dice)


def crossover(first: Genome, second: Genome, dice: Dice) -> Composition:
    """Terms of both parents: shared ones from either, others more often from the better one."""
    kept: list[Term] = []
    for name in dict.fromkeys(term.name for term in (*first.terms, *second.terms)):
        one, other = first.term(name), second.term(name)
        if one is not None and other is not None:
            kept.append(one if dice.generator.random() < 0.5 else other)
        elif one is not None and not (one.penalty and dice.generator.random() < 0.3):
            kept.append(one)
        elif other is not None and dice.generator.random() >= 0.5:
            kept.append(other)
    taken = ", ".join(f"'{term.name}'" for term in kept if first.term(term.name) is not term)
    note = f"Crossed: from the second parent come {taken or 'nothing'}; the rest is the first's."
    return Composition(Genome(terms=unique_terms(kept)), (note,))


def different(scene: Scene, dice: Dice, known: Iterable[Genome]) -> Composition:
    """The one of several fresh rewards that shares least with what is known."""
    others = [_traits(genome) for genome in known]
    generator = dice.generator
    themes = (generator.choice(THEMES[4:]) for _ in range(_DRAWS))
    drawn = [compose(scene, Dice(generator, theme)) for theme in themes]

    def likeness(fresh: Composition) -> float:
        """Largest Jaccard index of its terms and those of a known reward."""
        mine = _traits(fresh.genome)
        return max((len(mine & each) / max(1, len(mine | each)) for each in others), default=0.0)

    return min(drawn, key=likeness)


def _traits(genome: Genome) -> set[tuple[str, ...]]:
    return {(term.kind.split("_")[0], *term.arguments()) for term in genome.terms}


def _add(genome: Genome, scene: Scene, dice: Dice) -> Composition | None:
    """A new term: an optional one, one that is asked for, or one of a variable not yet read."""
    fresh = compose(scene, Dice(dice.generator, OTHER_SHAPES)).genome
    options = optional_terms(scene, dice)
    known = {option.term.name for option in options}
    why = "it serves what the sentence asks for"
    options += [Option(term, 0.5, why) for term in fresh.terms if term.name not in known]
    options += generic_options(scene, genome.terms, dice, 0.05)
    options = [option for option in options if genome.term(option.term.name) is None]
    if not options or len(genome.terms) >= MAX_TERMS:
        return None
    term, _, why, _ = dice.generator.choices(options, [each.probability for each in options])[0]
    return Composition(genome.with_term(term), (f"Added '{term.name}': {why}.",))


def _drop(genome: Genome, scene: Scene, dice: Dice) -> Composition | None:
    """A term less, of those that nobody asked for."""
    asked = {name for name, _ in compose(scene, dice).asked}
    candidates = [term.name for term in genome.terms if term.name not in asked]
    if not candidates or len(genome.terms) < 2:
        return None
    name = dice.generator.choice(candidates)
    smaller, note = genome.without(name), f"Dropped '{name}', to see whether it is needed."
    return None if smaller.empty else Composition(smaller, (note,))


def _reshape(genome: Genome, scene: Scene, dice: Dice) -> Composition | None:
    """A term redrawn in another form or with other parameters."""
    fresh = compose(scene, Dice(dice.generator, FREE)).genome
    redrawn = [term for term in fresh.terms if genome.term(term.name) not in (None, term)]
    if not redrawn:
        return None
    term = dice.generator.choice(redrawn)
    return Composition(genome.with_term(term), (f"'{term.name}' is drawn anew.",))
