"""What a diagnosis asks for: one small edit per finding, with the sentence that says why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from eureka_agent.designer.offline.compose import Composition, compose
from eureka_agent.designer.offline.dice import THEMES, Dice
from eureka_agent.designer.offline.genome import Genome, set_number
from eureka_agent.designer.offline.matching import Scene
from eureka_agent.designer.offline.operators import missing_options, retune
from eureka_agent.designer.offline.terms import Alive, Bonus, Failure, Term
from eureka_agent.designer.offline.unasked import optional_terms
from eureka_agent.designer.offline.vocabulary import Intent
from eureka_agent.designer.offline.words import stems
from eureka_agent.records import Diagnosis, DiagnosisFinding

_MAX_EDITS = 3
"""Findings acted on at once; more changes than that teach nothing about any of them."""
_ORDER = (
    "not-a-number",
    "reward-hacking",
    "early-termination",
    "no-learning",
    "saturated-actions",
    "exploration-lost",
    "dominant-component",
    "dead-component",
    "collapsed",
)


@dataclass(frozen=True)
class Patient:
    """A genome under treatment, with what an edit may look at."""

    genome: Genome
    scene: Scene
    intents: tuple[Intent, ...]
    dice: Dice
    components: tuple[str, ...]

    def asked_for(self, name: str) -> bool:
        """Whether a component stems from the sentence rather than from habit."""
        return self.genome.term(name) is not None and name not in {
            option.term.name
            for option in optional_terms(self.scene, self.intents, self.dice)
            if option.probability < 1.0
        }


Edit = Callable[[Patient, DiagnosisFinding], tuple[Genome, str] | None]


def improve(
    genome: Genome, diagnosis: Diagnosis | None, scene: Scene, intents: tuple[Intent, ...], dice: Dice
) -> Composition:
    """The genome with the diagnosis's findings acted on, then retuned a little."""
    findings = diagnosis.findings if diagnosis is not None else ()
    components = tuple(component.name for component in diagnosis.components) if diagnosis is not None else ()
    notes: list[str] = []
    original = genome
    usable = sorted(
        (finding for finding in findings if finding.code in EDITS), key=lambda finding: _ORDER.index(finding.code)
    )
    for finding in usable:
        if len(notes) == _MAX_EDITS:
            break
        if finding.component is not None and genome.term(finding.component) != original.term(finding.component):
            # an earlier finding has changed it: effort that is raised against saturation is not dropped for being small
            continue
        edited = EDITS[finding.code](Patient(genome, scene, intents, dice, components), finding)
        if edited is not None and not edited[0].empty:
            genome, note = edited
            notes.append(f"{finding.message.rstrip('.')}. So {note}.")
    if any(finding.code == "still-improving" for finding in findings):
        notes.append("The fitness was still rising at the end, so the structure stays.")
    tuned = retune(genome, dice, components, spread=0.15 if notes else 0.35)
    return Composition(tuned.genome, (*notes, *tuned.notes))


def _cut(patient: Patient, finding: DiagnosisFinding) -> tuple[Genome, str] | None:
    """For a component that pays for something else than the task."""
    name = finding.component
    if name is None:
        return None
    if patient.genome.term(name) is not None and not patient.asked_for(name) and patient.dice.generator.random() < 0.4:
        return patient.genome.without(name), f"'{name}' is dropped"
    return patient.genome.scaled(name, 0.3), f"'{name}' is cut to 0.3 of its weight"


def _revive(patient: Patient, finding: DiagnosisFinding) -> tuple[Genome, str] | None:
    name = finding.component
    term = patient.genome.term(name) if name is not None else None
    if name is None or isinstance(term, Alive | Failure):
        # what is the same in almost every step still counts where an episode ends
        return None
    if term is None:
        return (
            (patient.genome.scaled(name, 4.0), f"'{name}' counts 4 times as much")
            if patient.genome.base is not None
            else None
        )
    widened = _widen(term, 3.0)
    if widened is not None and patient.dice.generator.random() < 0.6:
        return patient.genome.with_term(widened), f"'{name}' reaches farther"
    if term.penalty or not patient.asked_for(name):
        return patient.genome.without(name), f"'{name}' is dropped"
    return patient.genome.scaled(name, 4.0), f"'{name}' counts 4 times as much"


def _widen(term: Term, factor: float) -> Term | None:
    """The term with a longer reach, where it has one."""
    for parameter in ("temperature", "width", "radius"):
        if parameter in term.tunable:
            return set_number(term, parameter, getattr(term, parameter) * factor)
    return None


def _tame(patient: Patient, finding: DiagnosisFinding) -> tuple[Genome, str] | None:
    name = finding.component
    if name is None or patient.asked_for(name):
        # what the sentence asks for may well be most of the reward
        return None
    return patient.genome.scaled(name, 0.4), f"'{name}' is cut to 0.4 of its weight"


def _survive(patient: Patient, finding: DiagnosisFinding) -> tuple[Genome, str] | None:
    genome, notes = patient.genome, []
    cause = stems((finding.cause or "").replace("_", " "))
    for option in missing_options(genome, patient.scene, patient.intents, patient.dice, patient.components):
        spoken = (
            frozenset().union(*(stems(name.replace("_", " ")) for name in option.term.arguments()))
            if option.term.arguments()
            else frozenset()
        )
        if option.term.name in ("alive", "failure", "upright") or cause & spoken:
            genome = genome.with_term(option.term)
            notes.append(f"'{option.term.name}' is added")
    if not notes:
        for name in ("alive", "failure", "upright", "centred"):
            if genome.term(name) is not None or name in patient.components:
                genome = genome.scaled(name, 2.0)
                notes.append(f"'{name}' is doubled")
    return (genome, " and ".join(notes)) if notes else None


def _relax(patient: Patient, finding: DiagnosisFinding) -> tuple[Genome, str] | None:
    """For actions at their bounds."""
    if patient.genome.term("effort") is not None or "effort" in patient.components:
        return patient.genome.scaled("effort", 3.0), "'effort' is tripled"
    options = missing_options(patient.genome, patient.scene, patient.intents, patient.dice, patient.components)
    wanted = [option.term for option in options if option.term.name in ("effort", "smoothness")]
    if not wanted:
        return None
    term = patient.dice.generator.choice(wanted)
    return patient.genome.with_term(term), f"'{term.name}' is added"


def _reshape(patient: Patient, finding: DiagnosisFinding) -> tuple[Genome, str] | None:
    """For a fitness that never moved: a gradient elsewhere."""
    wider = [
        (term, widened)
        for term in patient.genome.terms
        if (widened := _widen(term, 2.5)) is not None and not isinstance(term, Bonus)
    ]
    if wider and patient.dice.generator.random() < 0.5:
        term, widened = patient.dice.generator.choice(wider)
        return patient.genome.with_term(widened), f"'{term.name}' reaches 2.5 times as far"
    fresh = compose(patient.scene, patient.intents, Dice(patient.dice.generator, THEMES[4])).genome
    asked = tuple(
        term for term in fresh.terms if patient.asked_for(term.name) or patient.genome.term(term.name) is None
    )
    genome = patient.genome
    for redrawn in asked[:2]:
        genome = genome.with_term(redrawn)
    names = ", ".join(f"'{term.name}'" for term in asked[:2])
    return (genome, f"{names} are drawn anew") if names else None


def _encourage(patient: Patient, finding: DiagnosisFinding) -> tuple[Genome, str] | None:
    """For a policy that stopped trying: penalties a third."""
    genome = patient.genome
    names = [term.name for term in genome.terms if term.penalty]
    for name in names:
        genome = genome.scaled(name, 0.3)
    return (genome, "all penalties are cut to 0.3") if names else None


def _calm(patient: Patient, finding: DiagnosisFinding) -> tuple[Genome, str] | None:
    """For a training that fell apart: a smaller reward makes smaller steps of the value function."""
    genome = patient.genome
    for term in genome.terms:
        genome = genome.scaled(term.name, 0.5)
    return (genome, "the whole reward is halved") if genome.terms else None


EDITS: dict[str, Edit] = {
    "not-a-number": _cut,
    "reward-hacking": _cut,
    "early-termination": _survive,
    "no-learning": _reshape,
    "saturated-actions": _relax,
    "exploration-lost": _encourage,
    "dominant-component": _tame,
    "dead-component": _revive,
    "collapsed": _calm,
}
