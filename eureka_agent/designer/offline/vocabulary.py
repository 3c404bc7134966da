"""English as the offline designer reads it: what a sentence asks to move, reach, hold or avoid,
along which axis and to which value."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable
from enum import StrEnum
from typing import NamedTuple

from eureka_agent.designer.offline.words import HEADINGS, LISTS, STOP_WORDS, WORDS, stem, tokens


class Goal(StrEnum):
    """A thing that a sentence may ask for."""

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


_MANNERS = (Goal.STILL, Goal.CENTRE, Goal.SURVIVE, Goal.EFFORT, Goal.SMOOTH)


class Intent(NamedTuple):
    """One thing that the sentence asks for."""

    goal: Goal
    axis: int | None = None
    """0 forward (x), 1 left (y), 2 up (z); None where the words name no direction."""
    sign: int = 1
    """−1: backward, right, down, clockwise, closed, lower."""
    words: tuple[str, ...] = ()
    """Words that name the goal."""
    heading: tuple[str, ...] = ()
    """Words that name its direction."""
    named: bool = True
    """False where a verb that is not known has a direction."""
    objects: frozenset[str] = frozenset()
    """Stems of the clause's other words: what it is about."""
    target: float | None = None
    """A number that the words give for it, in m, m/s or rad/s."""

    @property
    def main(self) -> bool:
        """False for a manner, which carries a reward only where nothing else is asked for."""
        return self.goal not in _MANNERS


NEGATORS = LISTS["negators"]
_PLACES = frozenset({"to", "toward", "towards", "onto", "into"})
_CLAUSE_END = re.compile(
    r"[,;.:!?](?!\d)|\b(?:and|then|while|but|whilst|(?=without)|(?=avoid))\b", re.IGNORECASE
)
_END_OF_EPISODE = re.compile(
    r"\b(?:ends?|terminates?|stops?) (?:the|an|its) episode|\bepisodes?"
    r" (?:ends?|terminates?|stops?) (?:when|if|on|once|after|as soon)\b",
    re.IGNORECASE,
)
_UNITS = (
    (r"m/s|met(?:re|er)s? per second", 1.0, "m/s"),
    (r"km/h", 1 / 3.6, "m/s"),
    (r"rad/s|radians? per second", 1.0, "rad/s"),
    (r"cm", 0.01, "m"),
    (r"mm", 0.001, "m"),
    (r"met(?:re|er)s?|m", 1.0, "m"),
    (r"rad|radians?", 1.0, "rad"),
    (r"deg|degrees?|°", math.pi / 180, "rad"),
)
_UNIT_OF = {Goal.MOVE: "m/s", Goal.SPIN: "rad/s", Goal.RAISE: "m"}
QUANTITY = re.compile(
    rf"(?<![\w.])(-?\d+(?:\.\d+)?)\s*({'|'.join(each[0] for each in _UNITS)})(?![\w/])",
    re.IGNORECASE,
)


def quantities(text: str) -> list[tuple[float, str]]:
    """Lengths, angles and speeds of a text in SI units: `"2 m/s"` → `(2.0, "m/s")`."""
    return [
        (float(number) * scale, name)
        for number, unit in QUANTITY.findall(text)
        for pattern, scale, name in _UNITS
        if re.fullmatch(pattern, unit, re.IGNORECASE)
    ]


def direction(words: Iterable[str]) -> tuple[int, int] | None:
    """Axis and sign of the first direction among words, or None."""
    ways = [(axis, sign, WORDS[HEADINGS[axis][sign < 0]]) for axis in range(3) for sign in (1, -1)]
    found = (way[:2] for word in words for way in ways if stem(word) in way[2])
    return next(found, None)


def read_intents(text: str) -> tuple[Intent, ...]:
    """Goals of a sentence in its order, each once, completed by later clauses."""
    held_up = any(stem(word) in WORDS["held up"] for word in tokens(text))
    intents: dict[Goal, Intent] = {}
    for clause in _CLAUSE_END.split(re.sub("['’]", "", text)):
        for intent in _read_clause(clause or "", held_up):
            known = intents.get(intent.goal)
            intents[intent.goal] = intent if known is None else complete(known, intent)
    return tuple(intents.values())


def _read_clause(clause: str, held_up: bool) -> list[Intent]:
    """`held_up`: the sentence says that what swings is to come up."""
    plain = tokens(clause)
    pairs = [(word, stem(word)) for word in plain]
    present = {stemmed for _, stemmed in pairs}
    found = {goal: tuple(word for word, its in pairs if its in WORDS[goal]) for goal in Goal}
    negator = next((place for place, word in enumerate(plain) if word in NEGATORS), len(plain))
    avoided = {stemmed for _, stemmed in pairs[negator:]}
    if "tip" in avoided:
        found[Goal.UPRIGHT] += ("tipping",)
    goals = [goal for goal in Goal if found[goal]]
    back_and_forth = {"back", "forward"} <= set(plain)
    heading = direction(word for word in plain if not (back_and_forth and word == "back"))

    def rename(old: Goal, new: Goal) -> None:
        goals[goals.index(old)] = new
        found[new] += found[old]

    named = bool(goals)
    carried = Goal.MOVE in goals or present & WORDS["carried"]
    if carried and Goal.UPRIGHT not in goals and _names_a_place(plain):
        for old in [each for each in goals if each in (Goal.MOVE, Goal.CHANGE)]:
            rename(old, Goal.REACH)
    if not goals and heading is not None and len(plain) > 1:
        goals = [Goal.MOVE]  # a verb that is not known with a direction: 'drift to the left'
    if Goal.SWING_UP in goals and not held_up:
        rename(Goal.SWING_UP, Goal.MOVE)
    vertical = heading is not None and heading[0] == 2
    if Goal.REACH in goals and Goal.MOVE in goals:
        goals.remove(Goal.MOVE)
    elif Goal.MOVE in goals and Goal.RAISE in goals:
        # 'jump forward as far as possible' moves; 'fly as high as possible' rises
        goals.remove(Goal.MOVE if heading is None or vertical else Goal.RAISE)
    elif Goal.MOVE in goals and vertical:
        rename(Goal.MOVE, Goal.RAISE)
    if Goal.MOVE in goals and Goal.SPIN in goals and not present & WORDS["whole turn"]:
        goals.remove(Goal.SPIN)

    about = frozenset(stemmed for word, stemmed in pairs if word not in STOP_WORDS)
    pointing = tuple(word for word in plain if heading and direction([word]) == heading)
    intents: list[Intent] = []
    for goal in dict.fromkeys(goals):
        negated = any(stem(word) in avoided for word in found[goal])
        if negated and goal in (Goal.MOVE, Goal.SPIN):
            intents.append(Intent(Goal.STILL, words=found[goal], objects=about))
            continue
        axis, sign = _way(goal, heading, present, negated)
        directed = goal in (Goal.MOVE, Goal.SPIN, Goal.RAISE, Goal.SWING_UP)
        unit = _UNIT_OF.get(goal)
        target = next((value for value, its in quantities(clause) if its == unit), None)
        words = tuple(dict.fromkeys(found[goal])) or tuple(plain[:1])
        heading_words = pointing if directed else ()
        intents.append(Intent(goal, axis, sign, words, heading_words, named, about, target))
    return intents


def _names_a_place(plain: list[str]) -> bool:
    """True for 'to the box', but neither for 'to the left' nor for 'to run'."""
    after = [plain[place + 1 : place + 4] for place, word in enumerate(plain) if word in _PLACES]
    named = [next((each for each in three if each not in STOP_WORDS), "left") for three in after]
    return any(not direction([each]) and stem(each) not in WORDS[Goal.MOVE] for each in named)


def _way(
    goal: Goal, heading: tuple[int, int] | None, present: set[str], negated: bool
) -> tuple[int | None, int]:
    """Axis and sign; of turning by the right-hand rule, about z unless the words name a flip."""
    if goal is Goal.MOVE and heading is not None:
        return heading
    if goal is Goal.SPIN and present & WORDS["flip"]:
        # about +y the body pitches forward
        return 1, -1 if present & WORDS["backward"] else 1
    if goal is Goal.SPIN:
        clockwise = stem("clockwise") in present and not present & {"counter", "anti"}
        return 2, -1 if clockwise or heading == (1, -1) else 1
    if goal in (Goal.RAISE, Goal.CHANGE):
        lowered = present & WORDS["lower"] or heading == (2, -1)
        return 2 if goal is Goal.RAISE else None, -1 if lowered else 1
    turned = negated and goal in (Goal.REACH, Goal.STILL, Goal.SWING_UP)
    return None, -1 if turned else 1


def complete(known: Intent, other: Intent) -> Intent:
    """`known` with the direction and the number that only `other`, of the same goal, gives."""
    way = other if known.axis is None and other.axis is not None else known
    return known._replace(
        axis=way.axis,
        sign=way.sign,
        words=tuple(dict.fromkeys(known.words + other.words)),
        heading=known.heading + other.heading,
        objects=known.objects | other.objects,
        target=known.target if known.target is not None else other.target,
    )


def measured(fitness_doc: str) -> str:
    """The metric in words without the clauses on how an episode ends, which name no goal."""
    clauses = re.split(r"[;.]\s+", fitness_doc)
    return "; ".join(each for each in clauses if not _END_OF_EPISODE.search(each)) or fitness_doc


def task_intents(
    sentence: str, task_sentence: str, fitness_doc: str, refused: Collection[Goal] = ()
) -> tuple[Intent, ...]:
    """Intents of the searcher's sentence, completed from the task's metric in words.

    The metric adds a direction or a number that the sentence leaves open. Goals of its own it adds
    only where the sentence is the task's, or says nothing that can be used: someone who types
    another sentence wants something else. How an episode ends says what to beware of, and no goal.
    `refused`: goals that the metric does not add, since the sentence may speak against them.
    """
    intents = {intent.goal: intent for intent in read_intents(sentence)}
    same = tokens(sentence) == tokens(task_sentence)
    silent = not any(intent.main for intent in intents.values())
    asked_for = read_intents(measured(fitness_doc))
    goals = {each.goal for each in asked_for}
    beware = [e for e in read_intents(fitness_doc) if not e.main and e.goal not in goals]
    for other in (*asked_for, *beware):
        if other.goal in intents:
            intents[other.goal] = complete(intents[other.goal], other)
        elif other.goal in refused:
            continue
        elif silent or (same and not other.main):
            intents[other.goal] = other
    return tuple(intents.values())
