"""The task's words → intents: what is to be moved, reached, held or avoided, along which axis and
to which value."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import StrEnum

from eureka_agent.designer.offline.words import STOP_WORDS, stem, stem_set, tokens


class Goal(StrEnum):
    """What a sentence may ask for."""

    MOVE = "move"
    SPIN = "spin"
    REACH = "reach"
    SWING_UP = "swing up"
    UPRIGHT = "stay upright"
    RAISE = "raise"
    CHANGE = "change a position"
    """Open, close, pull, push, maximise, minimise: a named quantity up or down."""
    STILL = "be still"
    CENTRE = "stay at the centre"
    SURVIVE = "survive"
    EFFORT = "save effort"
    SMOOTH = "act smoothly"


MANNERS = frozenset({Goal.STILL, Goal.CENTRE, Goal.SURVIVE, Goal.EFFORT, Goal.SMOOTH})
"""How something is done rather than what: they carry a reward alone only where nothing else is
asked for."""


@dataclass(frozen=True)
class Intent:
    """One thing that the sentence asks for."""

    goal: Goal
    axis: int | None = None
    """0 forward (x), 1 left (y), 2 up (z); None where the words name no direction."""
    sign: int = 1
    """−1: backward, right, down, clockwise, closed, lower."""
    words: tuple[str, ...] = ()
    """The words that it was read off."""
    heading: tuple[str, ...] = ()
    """The words that name its direction."""
    named: bool = True
    """False: no word names the goal; a verb that is not known has a direction."""
    objects: frozenset[str] = frozenset()
    """Stems of the clause's other words: what it is about."""
    target: float | None = None
    """A number that the words give for it, in SI units."""
    target_unit: str = ""
    """`"m"`, `"m/s"`, `"rad"`, `"rad/s"` or empty."""

    @property
    def main(self) -> bool:
        return self.goal not in MANNERS


_TRIGGERS: dict[Goal, frozenset[str]] = {
    Goal.MOVE: stem_set(
        "run walk move go travel hop gallop crawl swim sail drive fly sprint race advance fast"
        " faster fastest speed quickly quick velocity jog trot cruise dash row steer locomotion"
        " locomote step stride ride distance far farther glide scoot"
    ),
    Goal.SPIN: stem_set(
        "spin rotate rotation turn twirl pirouette yaw flip somersault backflip roll whirl revolve"
    ),
    Goal.REACH: stem_set(
        "reach touch goal target waypoint dock arrive hit approach follow catch grasp grab park"
        " navigate hover setpoint"
    ),
    Goal.SWING_UP: stem_set("swing swingup"),
    Goal.UPRIGHT: stem_set(
        "balance upright stand vertical stabilize stabilise topple tilt lean level"
    ),
    Goal.RAISE: stem_set(
        "jump leap high higher highest height lift raise rise climb altitude ascend tall crouch"
        " descend duck sink squat"
    ),
    Goal.CHANGE: stem_set(
        "open pull extend unfold push press insert slide close shut retract fold increase maximize"
        " maximise decrease minimize minimise reduce fill empty stretch bend compress charge"
    ),
    Goal.STILL: stem_set(
        "still hover stop stationary motionless freeze brake steady settle rest halt calm"
    ),
    Goal.CENTRE: stem_set("centre middle origin"),
    Goal.SURVIVE: stem_set("alive survive fall crash collide collision long longer healthy"),
    Goal.EFFORT: stem_set(
        "energy effort power efficient efficiently economical economically torque fuel lazy"
    ),
    Goal.SMOOTH: stem_set("smooth smoothly jerk jerky jitter gentle gently shake"),
}
_NEGATIVE = stem_set(
    "crouch descend duck sink squat close shut retract fold decrease minimize minimise reduce empty"
    " compress"
)
_DIRECTIONS: tuple[tuple[int, int, frozenset[str]], ...] = (
    (0, 1, stem_set("forward forwards ahead front east x")),
    (0, -1, stem_set("backward backwards back reverse rearward rear west backflip")),
    (1, 1, stem_set("left leftward leftwards sideways sideway laterally north y")),
    (1, -1, stem_set("right rightward rightwards south")),
    (2, 1, stem_set("up upward upwards vertically z")),
    (2, -1, stem_set("down downward downwards")),
)
_NEGATORS = frozenset(["avoid", "no", "not", "without", "never", "dont", "prevent"])
_PLACES = frozenset({"to", "toward", "towards", "onto", "into"})
_CLAUSE_END = re.compile(
    r"[,;.:!?](?!\d)|\b(?:and|then|while|but|whilst|(?=without)|(?=avoid))\b", re.IGNORECASE
)
_END_OF_EPISODE = re.compile(
    r"\b(?:ends?|terminates?|stops?) (?:the|an|its) episode|\bepisodes?"
    r" (?:ends?|terminates?|stops?) (?:when|if|on|once|after|as soon)\b",
    re.IGNORECASE,
)
QUANTITY = re.compile(
    r"(?<![\w.])(-?\d+(?:\.\d+)?)\s*(m/s|met(?:re|er)s? per second|rad/s|radians? per"
    r" second|cm|mm|km/h|met(?:re|er)s?|m|rad|radians?|deg|degrees?|°)(?![\w/])",
    re.IGNORECASE,
)
_UNITS = {
    "cm": (0.01, "m"),
    "mm": (0.001, "m"),
    "km/h": (1 / 3.6, "m/s"),
    "m/s": (1.0, "m/s"),
    "rad/s": (1.0, "rad/s"),
    "m": (1.0, "m"),
}


def quantities(text: str) -> list[tuple[float, str]]:
    """Numbers with a length, angle or speed in a text, in SI units: `"2 m/s"` → `(2.0, "m/s")`."""
    found = []
    for number, unit in QUANTITY.findall(text):
        unit = unit.lower()
        if unit.startswith("met"):
            scale, name = 1.0, "m/s" if "second" in unit else "m"
        elif unit.startswith("rad"):
            scale, name = 1.0, "rad/s" if "second" in unit or unit == "rad/s" else "rad"
        elif unit.startswith(("deg", "°")):
            scale, name = 0.017453292519943295, "rad"
        else:
            scale, name = _UNITS[unit]
        found.append((float(number) * scale, name))
    return found


def direction(words: list[str]) -> tuple[int, int] | None:
    """Axis and sign of the first direction among a clause's stems, or None."""
    for word in words:
        for axis, sign, names in _DIRECTIONS:
            if word in names:
                return axis, sign
    return None


def _clauses(text: str) -> list[str]:
    return [part for part in _CLAUSE_END.split(re.sub("['’]", "", text)) if part and part.strip()]


def _turn_sign(words: set[str], heading: tuple[int, int] | None) -> tuple[int | None, int]:
    """Axis and sign of a rotation: yaw unless the words name a flip; counter-clockwise and left are
    positive (right-hand rule)."""
    if words & stem_set("flip somersault backflip"):
        # about +y the body pitches forward (x forward, z up)
        return 1, -1 if words & stem_set("backflip backward backwards back") else 1
    if stem("clockwise") in words and not words & stem_set("counter anti"):
        return 2, -1
    if heading is not None and heading[0] == 1:
        return 2, heading[1]
    return 2, 1


def _read_clause(clause: str, sentence_stems: set[str]) -> list[Intent]:
    plain = tokens(clause)
    words = [stem(word) for word in plain]
    present = set(words)
    found = {
        goal: tuple(p for p, w in zip(plain, words, strict=True) if w in trigger)
        for goal, trigger in _TRIGGERS.items()
    }
    goals = [goal for goal in Goal if found[goal]]
    first_negator = next(
        (place for place, word in enumerate(plain) if word in _NEGATORS), len(plain)
    )
    heading = direction(
        [
            w
            for p, w in zip(plain, words, strict=True)
            if p not in ("back",) or "forward" not in plain
        ]
    )
    if first_negator < len(plain) and "tip" in words[first_negator:]:
        goals.append(Goal.UPRIGHT)
        found[Goal.UPRIGHT] = found[Goal.UPRIGHT] + ("tipping",)
    about = frozenset(stem(word) for word in plain if word not in STOP_WORDS)
    values = quantities(clause)

    has_place = any(
        p in _PLACES
        and any(q not in STOP_WORDS and direction([stem(q)]) is None for q in plain[i + 1 : i + 4])
        for i, p in enumerate(plain)
    )
    if Goal.MOVE in goals or Goal.CHANGE in goals:
        carried = Goal.MOVE in goals or bool(present & stem_set("push pull slide"))
        if has_place and carried and Goal.UPRIGHT not in goals:
            goals = [g for g in goals if g not in (Goal.MOVE, Goal.CHANGE)]
            goals.insert(0, Goal.REACH)
            found[Goal.REACH] = found[Goal.REACH] + found[Goal.MOVE] + found[Goal.CHANGE]
    named = bool(goals)
    if not goals and heading is not None and len(plain) > 1:
        # a verb that is not known with a direction: 'drift to the left'
        goals = [Goal.MOVE]
    if Goal.REACH in goals and Goal.MOVE in goals:
        goals.remove(Goal.MOVE)
    if Goal.SWING_UP in goals and not sentence_stems & stem_set(
        "up upright top balance invert swingup"
    ):
        goals[goals.index(Goal.SWING_UP)] = Goal.MOVE
        found[Goal.MOVE] = found[Goal.SWING_UP]
    if Goal.MOVE in goals and Goal.RAISE in goals:
        # 'jump forward as far as possible' moves; 'fly as high as possible' rises
        goals.remove(Goal.RAISE if heading is not None and heading[0] != 2 else Goal.MOVE)
    elif Goal.MOVE in goals and heading is not None and heading[0] == 2:
        goals[goals.index(Goal.MOVE)] = Goal.RAISE
        found[Goal.RAISE] = found[Goal.MOVE]
    if (
        Goal.SPIN in goals
        and Goal.MOVE in goals
        and not present & stem_set("spin rotate twirl flip backflip somersault")
    ):
        goals.remove(Goal.SPIN)

    intents: list[Intent] = []
    for goal in dict.fromkeys(goals):
        axis, sign = None, 1
        if any(stem(word) in words[first_negator:] for word in found[goal]):
            if goal in (Goal.MOVE, Goal.SPIN):
                intents.append(Intent(Goal.STILL, words=found[goal], objects=about))
                continue
            if goal in (Goal.REACH, Goal.STILL, Goal.RAISE, Goal.SWING_UP):
                sign = -1
        pointing: tuple[str, ...] = ()
        if heading is not None and goal in (Goal.MOVE, Goal.SPIN, Goal.RAISE, Goal.SWING_UP):
            pointing = tuple(
                p for p, w in zip(plain, words, strict=True) if direction([w]) == heading
            )
        if goal is Goal.MOVE and heading is not None:
            axis, sign = heading
        elif goal is Goal.SPIN:
            axis, sign = _turn_sign(present, heading)
        elif goal in (Goal.RAISE, Goal.CHANGE):
            axis = 2 if goal is Goal.RAISE else None
            lowered = bool(present & _NEGATIVE) or (heading is not None and heading == (2, -1))
            sign = -1 if lowered else 1
        unit = {Goal.MOVE: "m/s", Goal.SPIN: "rad/s", Goal.RAISE: "m"}.get(goal, "")
        target = (
            next((value for value, its_unit in values if its_unit == unit), None) if unit else None
        )
        intents.append(
            Intent(
                goal,
                axis,
                sign,
                tuple(dict.fromkeys(found[goal])) or tuple(plain[:1]),
                pointing,
                named,
                about,
                target,
                unit if target is not None else "",
            )
        )
    return intents


def read_intents(text: str) -> tuple[Intent, ...]:
    """What a sentence asks for, in its order, each goal once; a later clause completes an earlier
    one's direction and number."""
    sentence_stems = {stem(word) for word in tokens(text)}
    intents: dict[Goal, Intent] = {}
    for clause in _clauses(text):
        for intent in _read_clause(clause, sentence_stems):
            known = intents.get(intent.goal)
            intents[intent.goal] = intent if known is None else complete(known, intent)
    return tuple(intents.values())


def complete(known: Intent, other: Intent) -> Intent:
    """`known` with the direction and the number that only `other`, an intent of the same goal,
    gives."""
    axis_missing = known.axis is None and other.axis is not None
    return replace(
        known,
        axis=other.axis if axis_missing else known.axis,
        sign=other.sign if axis_missing else known.sign,
        words=tuple(dict.fromkeys(known.words + other.words)),
        heading=known.heading + other.heading,
        objects=known.objects | other.objects,
        target=known.target if known.target is not None else other.target,
        target_unit=known.target_unit or other.target_unit,
    )


def measured(fitness_doc: str) -> str:
    """The metric in words without the clauses on how an episode ends: those name nothing that is to
    be done."""
    clauses = re.split(r"[;.]\s+", fitness_doc)
    return (
        "; ".join(clause for clause in clauses if not _END_OF_EPISODE.search(clause)) or fitness_doc
    )


def task_intents(sentence: str, task_sentence: str, fitness_doc: str) -> tuple[Intent, ...]:
    """Intents of the searcher's sentence, completed from the task's metric in words.

    The metric adds a direction or a number that the sentence leaves open. Goals of its own it adds
    only where the sentence is the task's, or says nothing that can be used: someone who types
    another sentence wants something else. How an episode ends says what to beware of, and no goal.
    """
    intents = {intent.goal: intent for intent in read_intents(sentence)}
    same = tokens(sentence) == tokens(task_sentence)
    silent = not any(intent.main for intent in intents.values())
    asked_for = read_intents(measured(fitness_doc))
    beware = [
        each
        for each in read_intents(fitness_doc)
        if not each.main and all(each.goal is not it.goal for it in asked_for)
    ]
    for other in (*asked_for, *beware):
        if other.goal in intents:
            intents[other.goal] = complete(intents[other.goal], other)
        elif silent or (same and not other.main):
            intents[other.goal] = other
    return tuple(intents.values())
