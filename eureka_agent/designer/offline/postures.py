"""Terms for what is to stand: upright, or swung up and held there."""

from __future__ import annotations

from dataclasses import dataclass

from eureka_agent.designer.offline import matching
from eureka_agent.designer.offline.dice import Dice
from eureka_agent.designer.offline.matching import Candidate, Scene
from eureka_agent.designer.offline.operands import Operand, rounded
from eureka_agent.designer.offline.semantics import (
    Quantity,
    scalar_last,
    upright_angle,
    upright_sign,
)
from eureka_agent.designer.offline.terms import Stillness, Term, Upright
from eureka_agent.designer.offline.vocabulary import Intent
from eureka_agent.designer.offline.words import stem_set


@dataclass(frozen=True)
class Asked:
    """Terms of one intent and the sentence of the reasoning that says why."""

    terms: tuple[Term, ...]
    note: str


def because(intent: Intent, candidate: Candidate, what: str) -> str:
    words = " and ".join(f"'{word}'" for word in intent.words[:3])
    asks = "asks" if len(intent.words) == 1 else "ask"
    return (
        f"{words} {asks} for {what}: {candidate.operand.code()}"
        f" ({candidate.reading.spec.doc.rstrip('.')})."
    )


def upright_term(candidate: Candidate, name: str, weight: float, sharpness: float = 1.0) -> Upright:
    """The upright term on whatever tells the tilt."""
    spec = candidate.reading.spec
    quantity = candidate.reading.quantity
    return Upright(
        name=name,
        weight=weight,
        sharpness=sharpness,
        operand=candidate.operand,
        form={Quantity.QUATERNION: "quaternion", Quantity.ANGLE: "angle"}.get(quantity, "cosine"),
        sign=upright_sign(spec) if quantity in (Quantity.COSINE, Quantity.UP_VECTOR) else 1,
        offset=rounded(upright_angle(spec)) if quantity is Quantity.ANGLE else 0.0,
        in_degrees=spec.unit.lower().startswith("deg"),
        scalar_last=quantity is Quantity.QUATERNION and scalar_last(spec),
    )


def swing_up(scene: Scene, intent: Intent, dice: Dice) -> Asked | None:
    found = matching.uprights(scene, intent.objects | scene.words)
    if not found:
        return None
    chosen = dice.first_or_other(found)
    whirl = _turning(scene, chosen)
    # without a price on speed the best that is soon found is whirling: it passes the top again and
    # again
    calm = {} if whirl is None or dice.explores() else {"rate": whirl}
    terms: list[Term] = [
        upright_term(chosen, "upright", dice.around(1.0)).model_copy(
            update={**calm, "calm_speed": dice.around(5.0)}
        )
    ]
    if dice.includes(0.8):
        balanced = upright_term(chosen, "balanced", dice.around(1.0), sharpness=dice.around(8.0))
        terms.append(balanced.model_copy(update={**calm, "calm_speed": dice.around(2.0)}))
    note = "the cosine of the angle, from hanging down to upright" + (
        f", at little {whirl.variable}" if calm and whirl is not None else ""
    )
    return Asked(tuple(terms), because(intent, chosen, note))


def stay_upright(scene: Scene, intent: Intent, dice: Dice) -> Asked | None:
    found = matching.uprights(scene, intent.objects | scene.words)
    if not found:
        return None
    chosen = dice.first_or_other(found)
    terms: list[Term] = [
        upright_term(
            chosen, "upright", dice.around(1.0), sharpness=dice.first_or_other([1.0, 2.0, 4.0])
        )
    ]
    terms += _still_there(scene, chosen, dice, gate="upright")
    return Asked(tuple(terms), because(intent, chosen, "an upright posture"))


def _still_there(scene: Scene, upright: Candidate, dice: Dice, gate: str) -> list[Term]:
    """Rest of what is to be upright, counted where it is upright."""
    turning = _turning(scene, upright)
    if turning is None or not dice.includes(0.7):
        return []
    return [
        Stillness(
            name="still_at_top",
            weight=dice.around(0.4),
            gate=gate,
            operand=turning,
            temperature=dice.around(2.0),
        )
    ]


def _turning(scene: Scene, upright: Candidate) -> Operand | None:
    """Angular velocity of the thing whose tilt `upright` tells."""
    own = upright.reading.name_words - stem_set("angle upright cosine")
    found = matching.best(matching.speeds(scene, own, Quantity.ANGULAR_VELOCITY))
    return found.operand if found is not None else None
