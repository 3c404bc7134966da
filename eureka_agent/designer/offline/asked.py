"""Terms for what the sentence asks: one small function per goal, each returning the terms and where
they come from."""

from __future__ import annotations

from eureka_agent.designer.offline import matching
from eureka_agent.designer.offline.dice import Dice
from eureka_agent.designer.offline.matching import Candidate, Scene
from eureka_agent.designer.offline.operands import rounded
from eureka_agent.designer.offline.postures import Asked, because, stay_upright, swing_up
from eureka_agent.designer.offline.semantics import Quantity, Reading
from eureka_agent.designer.offline.terms import (
    Distance,
    Level,
    Progress,
    Term,
    Tracking,
)
from eureka_agent.designer.offline.vocabulary import Goal, Intent

_HEADINGS = {
    (0, 1): "forward",
    (0, -1): "backward",
    (1, 1): "leftward",
    (1, -1): "rightward",
    (2, 1): "upward",
    (2, -1): "downward",
}
_LENGTH_SCALE = {"m": 1.0, "rad": 0.5, "deg": 30.0}
"""A distance that matters, by unit, where a variable has no range."""


def asked_terms(scene: Scene, intent: Intent, dice: Dice) -> Asked | None:
    """The terms for one intent, or None where no variable can express it."""
    makers = {
        Goal.MOVE: _move,
        Goal.SPIN: _spin,
        Goal.REACH: _reach,
        Goal.SWING_UP: swing_up,
        Goal.UPRIGHT: stay_upright,
        Goal.RAISE: _raise,
        Goal.CHANGE: _change,
    }
    maker = makers.get(intent.goal)
    return maker(scene, intent, dice) if maker is not None else None


def length_scale(reading: Reading) -> float:
    """A distance that matters for this variable: a third of its range, else by its unit."""
    limit = reading.limit()
    return (
        rounded(limit / 3.0)
        if limit is not None
        else _LENGTH_SCALE.get(reading.spec.unit.lower(), 1.0)
    )


def _chosen(found: list[Candidate], dice: Dice, margin: float = 2.0) -> Candidate:
    """The best candidate, or now and then another within `margin` of its score."""
    return dice.first_or_other(
        [candidate for candidate in found if candidate.score > found[0].score - margin]
    )


def _move(scene: Scene, intent: Intent, dice: Dice) -> Asked | None:
    found = matching.velocities(scene, intent.axis, intent.sign, intent.objects | scene.words)
    if not found:
        return None
    chosen = _chosen(found, dice)
    name = _HEADINGS.get((intent.axis or 0, intent.sign), "forward")
    note = because(
        intent,
        chosen,
        f"speed {name}"
        + ("" if intent.axis is not None else " (no direction is named, so along x)"),
    )
    if intent.target is not None:
        target = chosen.sign * abs(intent.target)
        width = dice.around(max(0.3, 0.5 * abs(target)))
        terms: list[Term] = [
            Tracking(
                name=f"{name}_speed", operand=chosen.operand, target=rounded(target), width=width
            )
        ]
        return Asked(
            (
                *terms,
                Progress(
                    name=name,
                    weight=dice.around(0.2),
                    operand=chosen.operand,
                    sign=chosen.sign,
                    cap=rounded(abs(target)),
                ),
            ),
            note,
        )
    cap = chosen.reading.limit() or 20.0
    progress = Progress(
        name=name,
        weight=dice.around(1.0),
        operand=chosen.operand,
        sign=chosen.sign,
        cap=rounded(cap),
    )
    return Asked((progress,), note)


def _spin(scene: Scene, intent: Intent, dice: Dice) -> Asked | None:
    words = intent.objects | scene.words
    named = [
        c
        for c in matching.levels(scene, intent.objects)
        if c.reading.quantity in (Quantity.ANGLE, Quantity.JOINT_POSITION)
        and c.reading.centrality() == 0
    ]
    found = matching.angular_velocities(scene, intent.axis, intent.sign, words)
    if named and (
        not found
        or (
            named[0].reading.name_words & intent.objects
            and not found[0].reading.name_words & intent.objects
        )
    ):
        return _change(scene, intent, dice)
    if not found:
        return None
    chosen = _chosen(found, dice)
    note = because(intent, chosen, "turning")
    if intent.target is not None:
        target = chosen.sign * abs(intent.target)
        return Asked(
            (
                Tracking(
                    name="spin",
                    operand=chosen.operand,
                    target=rounded(target),
                    width=dice.around(max(0.5, 0.5 * abs(target))),
                ),
            ),
            note,
        )
    return Asked(
        (
            Progress(
                name="spin",
                weight=dice.around(1.0),
                operand=chosen.operand,
                sign=chosen.sign,
                scale=1.0,
                cap=10.0,
            ),
        ),
        note,
    )


def _reach(scene: Scene, intent: Intent, dice: Dice) -> Asked | None:
    found = matching.goals(scene, intent.objects)
    if not found:
        return None
    chosen = _chosen(found, dice)
    temperature = length_scale(chosen.reading)
    note = because(
        intent,
        chosen,
        "a small distance" if chosen.goal is None else f"a small distance to {chosen.goal.code()}",
    )
    if intent.sign < 0:
        return Asked(
            (
                Distance(
                    name="away",
                    weight=dice.around(1.0),
                    operand=chosen.operand,
                    goal=chosen.goal,
                    temperature=dice.around(temperature),
                    away=True,
                ),
            ),
            note,
        )
    terms: list[Term] = [
        Distance(
            name="reach",
            weight=dice.around(1.0),
            operand=chosen.operand,
            goal=chosen.goal,
            temperature=dice.around(temperature),
        )
    ]
    if dice.includes(0.6):
        terms.append(
            Distance(
                name="reach_closely",
                weight=dice.around(0.7),
                operand=chosen.operand,
                goal=chosen.goal,
                temperature=dice.around(temperature / 5),
            )
        )
    return Asked(tuple(terms), note)


def _raise(scene: Scene, intent: Intent, dice: Dice) -> Asked | None:
    found = matching.heights(scene, intent.objects | scene.words)
    if not found:
        return None
    chosen = _chosen(found, dice)
    up = intent.sign > 0
    note = because(intent, chosen, "height" if up else "a low height")
    if intent.target is not None:
        width = dice.around(max(0.05, 0.3 * abs(intent.target)))
        return Asked(
            (
                Tracking(
                    name="height",
                    weight=dice.around(1.0),
                    operand=chosen.operand,
                    target=rounded(intent.target),
                    width=width,
                ),
            ),
            note,
        )
    high = length_scale(chosen.reading)
    terms: list[Term] = [
        Level(
            name="height" if up else "lowness",
            weight=dice.around(1.0),
            operand=chosen.operand,
            sign=intent.sign,
            low=0.0,
            high=dice.around(high),
        )
    ]
    rising = matching.velocities(scene, 2, intent.sign, intent.objects | scene.words)
    if rising and dice.includes(0.5):
        terms.append(
            Progress(
                name="rise" if up else "sinking",
                weight=dice.around(0.3),
                operand=rising[0].operand,
                sign=rising[0].sign,
                cap=10.0,
            )
        )
    return Asked(tuple(terms), note)


def _change(scene: Scene, intent: Intent, dice: Dice) -> Asked | None:
    found = matching.levels(scene, intent.objects) or matching.levels(scene, scene.words)
    if not found:
        return None
    chosen = _chosen(found, dice, 1.0)
    low, high = chosen.reading.spec.range or (0.0, length_scale(chosen.reading))
    terms: list[Term] = [
        Level(
            name="opening" if intent.goal is Goal.CHANGE and "open" in intent.words else "change",
            weight=dice.around(1.0),
            operand=chosen.operand,
            sign=intent.sign,
            low=rounded(low),
            high=rounded(high),
        )
    ]
    if dice.includes(0.3):
        rate = chosen.operand.model_copy(update={"differenced": True, "step_s": scene.step_s})
        terms.append(
            Progress(
                name="rate",
                weight=dice.around(0.3),
                operand=rate,
                sign=intent.sign,
                scale=max(rounded(high - low), 0.01),
                cap=10.0,
            )
        )
    return Asked(
        tuple(terms), because(intent, chosen, "more of it" if intent.sign > 0 else "less of it")
    )
