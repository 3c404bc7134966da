"""English as the offline designer reads it: the clauses that may be read, and what they ask for. It
is no grammar. A clause that names a goal is read only where every word in it is known. One with a
known word that turns round what it names is read only where the vocabulary has its meaning:
`without falling`, `less effort`. Any other is left out, with what may hang on it."""

from __future__ import annotations

import functools
import re
from collections.abc import Container, Iterable
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from eureka_agent.records import TaskDescription

_IRREGULAR = {"going": "go", "goes": "go", "ran": "run", "stood": "stand", "held": "hold"}
_IRREGULAR |= {"kept": "keep", "feet": "foot"}
_IRREGULAR |= dict.fromkeys(("center", "centered", "centred"), "centre")


def stem(word: str) -> str:
    """A crude stem for comparisons, the same for a verb's forms and a noun's numbers."""
    word = _IRREGULAR.get(word, word)
    if word.endswith("ies") and len(word) > 4:
        word = word[:-3] + "y"
    elif word.endswith("es") and len(word) > 4:
        word = word[:-2]
    elif word.endswith("s") and not word.endswith("ss") and len(word) > 3:
        word = word[:-1]
    for suffix in ("ing", "ed"):
        rest = word.removesuffix(suffix)
        if 2 < len(rest) < len(word) and re.search("[aeiouy]", rest) and not word.endswith("eed"):
            word = rest
    if word.endswith("e") and len(word) > 3:
        word = word[:-1]
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] else word


def tokens(text: str) -> list[str]:
    """Lower-case words of a text in order, an identifier's parts too; no numbers, no marks."""
    return re.findall(r"[a-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", text).lower())


_ROWS = re.split(r"\n(?! )", Path(__file__).with_name("words.txt").read_text("utf-8").strip())
LISTS = {row.partition(":")[0]: frozenset(row.partition(":")[2].split()) for row in _ROWS}
WORDS = {name: frozenset(map(stem, words)) for name, words in LISTS.items()}
"""Stems that name a goal, a direction, or a kind of variable."""
STOP_WORDS = LISTS["grammar"]
HEADINGS = (("forward", "backward"), ("leftward", "rightward"), ("upward", "downward"))
"""Names of x, y and z, each forth and back."""


@functools.lru_cache(maxsize=2048)  # an environment's docs are read for every draft
def stems(text: str) -> frozenset[str]:
    """Stems of the words that say something."""
    return frozenset(stem(word) for word in tokens(text) if word not in STOP_WORDS)


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
    objects: frozenset[str] = frozenset()
    """Stems of the clause's other words: what it is about."""
    target: float | None = None
    """A number that the words give for it, in m, m/s or rad/s."""

    @property
    def main(self) -> bool:
        """False for a manner, which carries a reward only where nothing else is asked for."""
        return self.goal not in _MANNERS


_UNWANTED = {goal: WORDS[f"not {goal}"] for goal in Goal if f"not {goal}" in WORDS}
"""Stems that ask for a goal only where they are turned round."""
_BAD = frozenset().union(*_UNWANTED.values())
_TURNS = WORDS["turns"] | WORDS["negators"]
_KNOWN = frozenset().union(*WORDS.values())
_GOAL_STEMS = frozenset().union(
    *(WORDS[each] for axis in HEADINGS for each in axis),
    *(WORDS.get(f"{kind}{goal}", set()) for goal in Goal for kind in ("", "not ", "near ")),
)
_PART_END = re.compile(r"[;.](?!\d)|!(?!\w)|(?<!thing )\b(?:but|while|whilst)\b", re.IGNORECASE)
_CLAUSE_END = re.compile(
    r"[,;.:?\n—–](?!\d)|!(?!\w)|\b(?:and|then|while|but|whilst|(?=without)|(?=avoid))\b",
    re.IGNORECASE,
)
_IDIOMS = {
    r"\bspeed (?:it |things )?up\b(?! to)": "go faster",
    r"\b(?:speed|velocity|height):? down\b": "less",
    r"\b(?:increase|raise) the (?:importance|reward|weight) (?:for|of|on)\b": "more",
    r"\bcounter.?clockwise\b": "anticlockwise",
    r"\btake off\b": "start",
    r"\bfrom below\b": "up",
    r"\bw/o\b": "without",
    r"\btoo slow\b": "faster",
    r":-?\(": " less",
    r"\b(?:at least|a little)\b": "",
}
_UNITS = {
    Goal.MOVE: {"m/s": 1.0, "km/h": 1 / 3.6},
    Goal.SPIN: {"rad/s": 1.0},
    Goal.RAISE: {"m": 1.0, "cm": 0.01},
}
SCALES = {unit: scale for units in _UNITS.values() for unit, scale in units.items()}
QUANTITY = re.compile(r"(?<![\w.])(-?\d+(?:\.\d+)?)\s*(m/s|km/h|rad/s|cm|m)(?![\w/])")
NUMBER = re.compile(rf"{QUANTITY.pattern}|(?<![\w.\-/])[1-9]\d*(?:\.\d+)?(?![\w%/]|\.\d)")
_SIGN = re.compile(r"""(?<!\w)[-!](?![xyz]\b)(?=\w)|(?<!\w)/|/(?!\w)|[^\w\s.,;:!?'’"“”()\-–—/+]""")
"""Signs that may turn a word round: `-height`, `!jump`, `speed = 0`."""
_TURNING = re.compile(
    r"\b(?:other than|an error|a rest|over the top|up to \d|out of|at most|as (?:it )?is"
    r"|(?:bring|get|hold|holding|keep|leave|take|turn) (?:.*\b)?(?:down|back|out)"
    r"|(?:let|give|giving) up|prefer .*\b(?:over|than|to)|max(?:imum|imal)? .*\d|\d.* max"
    r"|its (?:\w+ )?\w+ing|\w+ing again|still (?!during)\w+ing|i see|(?:must|should) go$)\b"
    r"|^(?:now )?(?:it (?!needs|has)(?:\w+ )?\w|keep|move|run|jump)\w*(?:s|ed)\b|^it ran\b"
)
"""Words that turn in this company alone: `take height out`; or that tell what is: `it jumps`."""
_OWN_VERB = frozenset(["bring", "have", "hold", "keep", "let", "make", "stay", "without"])


class Understood(NamedTuple):
    """A sentence as far as it may be read."""

    text: str
    refused: tuple[str, ...] = ()

    def spoken_of(self) -> dict[Goal, Intent]:
        """The goals that the refused clauses name, for or against them."""
        named, about = {*goal_words(self.refused)}, stems(" ".join(self.refused))
        rows = {goal: (goal, f"not {goal}", f"near {goal}") for goal in Goal}
        found = (g for g in Goal if any(named & WORDS.get(row, set()) for row in rows[g]))
        read = {each.goal: each for each in read_intents("; ".join(self.refused))}
        return {goal: Intent(goal, objects=about) for goal in found} | read


def understood_in(description: TaskDescription, sentence: str) -> Understood:
    """`understood`, where the names are known that an environment has for its things: of its
    variables, and behind an article in its docs and its task's sentence."""
    names = [Path(description.environment).name, *(each.name for each in description.variables)]
    docs = [description.sentence, description.doc, *(each.doc for each in description.variables)]
    things = re.findall(r"\b(?:an?|its|the) ([a-z]+)", " ".join(docs).lower())
    return understood(sentence, stems(" ".join([*names, *things])))


@functools.lru_cache(maxsize=256)  # a sentence is read for every draft
def understood(sentence: str, own: frozenset[str] = frozenset()) -> Understood:
    """The clauses that may be read, and those that a word turns in a way that is not known. A word
    that is not known may turn all that stands with it between full stops. What `and` or a comma
    joins to a turned clause may be turned with it: it is left out too. `own`: stems that the
    environment makes known."""
    kept: list[str] = []
    refused: list[str] = []
    for idiom, words in _IDIOMS.items():
        sentence = re.sub(idiom, words, sentence, flags=re.IGNORECASE)
    for part in _PART_END.split(sentence):
        clauses = [each.strip() for each in _CLAUSE_END.split(part) if each.strip()]
        question = "?" in part and not {"can", "could", "please", "will", "would"} & {*_words(part)}
        begun, before, of_goals = False, len(kept), bool(goal_words(clauses))
        for place, clause in enumerate(clauses):
            plain = _words(clause)
            strange = _strange(clause, own) if of_goals else []
            turning = sorted({*strange, *_turning(plain)})
            # what ends in a turn may turn the clauses before: 'speed and height should be lower'
            if turning and not begun and not goal_words(plain[turning[0] + 1 :]):
                own_verb = _OWN_VERB & {*plain} or (strange and LISTS["negators"] & {*plain[:2]})
                if not own_verb:
                    refused += clauses[:place]
                    del kept[before:]
            begun = begun or bool(turning)
            read = not strange and not question and _is_read(plain, turning, begun)
            (kept if read else refused).append(clause)
    return Understood("; ".join(kept), tuple(refused))


def _words(clause: str) -> list[str]:
    """Lower-case words without apostrophes; an identifier is one word."""
    return re.findall(r"\w+", re.sub("['’‘ʼ`´′]", "", clause).lower())


def goal_words(texts: Iterable[str]) -> list[str]:
    """Stems that name a goal or a direction, an identifier's parts too, and the opposite's."""
    parts = [stem(each) for text in texts for each in tokens(text)]
    found = [its if its in _GOAL_STEMS else re.sub("^(un|non|anti|dis)", "", its) for its in parts]
    return [its for its in found if its in _GOAL_STEMS]


def _strange(clause: str, own: frozenset[str]) -> list[int]:
    """Places of words that are not known, and the last one's where a sign may turn a word."""
    plain, rest = _words(clause), _words(NUMBER.sub(" ", clause))
    known = _KNOWN | own
    parts = {word: [stem(each) for each in tokens(word)] for word in rest}
    unknown = {word for word, its in parts.items() if not (its and known.issuperset(its))}
    places = [at for at, word in enumerate(plain) if word in unknown or not word.isascii()]
    return places + [max(0, len(plain) - 1)] * bool(_SIGN.search(clause))


def _turning(plain: list[str]) -> list[int]:
    """Places of words that may turn round what the clause names."""
    spelt = " ".join(plain)
    found = [spelt.count(" ", 0, phrase.start()) for phrase in _TURNING.finditer(spelt)]
    return found + [at for at in range(len(plain)) if _turns(plain, at)]


def _turns(plain: list[str], at: int) -> bool:
    its, after = stem(plain[at]), plain[at + 1 :]
    named, reach, near = {*goal_words(plain)}, WORDS[Goal.REACH], WORDS["error"]
    if its in WORDS["stop"]:  # 'stop jumping', but 'stop at the goal'
        return not named <= WORDS[Goal.STILL] | reach | WORDS[Goal.CENTRE]
    if its in WORDS["decrease"]:  # heights, openings and errors can be small
        small = (WORDS[Goal.RAISE] | WORDS[Goal.CHANGE]) - WORDS["lower"]
        small |= reach | near if named & reach and named & near else set()
        return not ({*goal_words(after)} or named) - {its} <= small
    match plain[at]:
        case "distance":  # to be kept, but where a word makes it small
            return bool(named & reach) and WORDS["decrease"].isdisjoint(map(stem, plain))
        case "from":  # 'far from upright', but 'from hanging to upright', 'prevent it from falling'
            alone = "to" not in after and _TURNS.isdisjoint(map(stem, plain[:at]))
            return alone and bool(goal_words(after))
    return its in _TURNS


def _is_read(plain: list[str], turning: list[int], begun: bool) -> bool:
    """True where every word that names a goal asks for it. `turning`: places of the words that may
    turn them round. `begun`: such a word stands there or in a clause before."""
    named = {*goal_words(plain)}
    if not turning:
        wanted = (named & (WORDS[goal] - bad) for goal, bad in _UNWANTED.items() if named & bad)
        return named <= _BAD if begun else all(wanted)
    after = {*goal_words(plain[turning[0] + 1 :])}
    kept_bad = after and not _BAD.isdisjoint(goal_words(plain[: turning[0]]))
    return len(turning) == 1 and set() != (after or named) <= _BAD and not kept_bad


def direction(words: Iterable[str]) -> tuple[int, int] | None:
    """Axis and sign of the first direction among words, or None."""
    ways = [(axis, sign, WORDS[HEADINGS[axis][sign < 0]]) for axis in range(3) for sign in (1, -1)]
    found = (way[:2] for word in words for way in ways if stem(word) in way[2])
    return next(found, None)


def read_intents(text: str) -> tuple[Intent, ...]:
    """Goals of a text in order, each once. `understood` sees what is turned round."""
    intents: dict[Goal, Intent] = {}
    for clause in _CLAUSE_END.split(text):
        for intent in _read_clause(clause):
            known = intents.get(intent.goal)
            intents[intent.goal] = intent if known is None else _completed(known, intent)
    return tuple(intents.values())


def _read_clause(clause: str) -> list[Intent]:
    plain = tokens(re.sub("['’]", "", clause))
    present = {*map(stem, plain)}
    found = {goal: [word for word in plain if stem(word) in WORDS[goal]] for goal in Goal}
    if present & WORDS["velocity"]:  # a high speed is no height
        found[Goal.RAISE] = [word for word in found[Goal.RAISE] if not word.startswith("high")]
    goals = [goal for goal in Goal if found[goal]]
    heading = direction(word for word in plain if word != "back" or "forward" not in plain)
    vertical = heading is not None and heading[0] == 2

    def rename(old: Goal, new: Goal) -> None:
        goals[goals.index(old)] = new
        found[new] += found[old]

    carried = Goal.MOVE in goals or present & WORDS["carried"]
    if carried and Goal.UPRIGHT not in goals and _names_a_place(plain):
        for old in [each for each in goals if each in (Goal.MOVE, Goal.CHANGE)]:
            rename(old, Goal.REACH)
    if Goal.SWING_UP in goals and not present & WORDS["held up"]:
        rename(Goal.SWING_UP, Goal.MOVE)
    if Goal.REACH in goals and Goal.MOVE in goals:
        goals.remove(Goal.MOVE)
    elif Goal.MOVE in goals and Goal.RAISE in goals:
        # 'jump forward as far as possible' moves; 'fly as high as possible' rises
        goals.remove(Goal.MOVE if heading is None or vertical else Goal.RAISE)
    elif Goal.MOVE in goals and vertical:
        rename(Goal.MOVE, Goal.RAISE)
    if Goal.MOVE in goals and Goal.SPIN in goals and not present & WORDS["whole turn"]:
        goals.remove(Goal.SPIN)
    about = frozenset(stem(word) for word in plain if word not in STOP_WORDS)
    pointing = [word for word in plain if heading and direction([word]) == heading]
    intents: list[Intent] = []
    for goal in dict.fromkeys(goals):
        axis, sign = _way(goal, heading, present)
        units = _UNITS.get(goal, {})
        target = [float(n) * units[unit] for n, unit in QUANTITY.findall(clause) if unit in units]
        directed = goal in (Goal.MOVE, Goal.SPIN, Goal.RAISE, Goal.SWING_UP)
        words = tuple(dict.fromkeys(found[goal] + pointing * directed))
        intents.append(Intent(goal, axis, sign, words, about, next(iter(target), None)))
    return intents


def _names_a_place(plain: list[str]) -> bool:
    """True for 'to the box', but neither for 'to the left' nor for 'to run'."""
    places = {"to", "toward", "towards", "onto", "into"}
    after = [plain[place + 1 : place + 4] for place, word in enumerate(plain) if word in places]
    named = [next((each for each in three if each not in STOP_WORDS), "left") for three in after]
    return any(not direction([each]) and stem(each) not in WORDS[Goal.MOVE] for each in named)


def _way(goal: Goal, heading: tuple[int, int] | None, present: set[str]) -> tuple[int | None, int]:
    """Axis and sign; of turning by the right-hand rule, about z unless the words name a flip."""
    if goal is Goal.MOVE and heading is not None:
        return heading
    if goal is Goal.SPIN and present & WORDS["flip"]:
        return 1, -1 if present & WORDS["backward"] else 1  # about +y the body pitches forward
    if goal is Goal.SPIN:
        return 2, -1 if stem("clockwise") in present or heading == (1, -1) else 1
    if goal in (Goal.RAISE, Goal.CHANGE):
        lowered = present & WORDS["lower"] or heading == (2, -1)
        return 2 if goal is Goal.RAISE else None, -1 if lowered else 1
    return None, 1


def _completed(known: Intent, other: Intent) -> Intent:
    """`known` with the direction and the number that only `other`, of the same goal, gives."""
    way = other if known.axis is None and other.axis is not None else known
    words = tuple(dict.fromkeys(known.words + other.words))
    about, target = known.objects | other.objects, known.target
    return Intent(known.goal, way.axis, way.sign, words, about, target or other.target)


def measured(fitness_doc: str) -> str:
    """The metric in words without the clauses on how an episode ends, which name no goal."""
    end = r"\b(?:end|terminate|stop)s?"
    ending = rf"{end} (?:the|an|its) episode|\bepisodes? {end} (?:when|if|on|once|after)\b"
    clauses = re.split(r"[;.]\s+", fitness_doc)
    return "; ".join(e for e in clauses if not re.search(ending, e, re.IGNORECASE)) or fitness_doc


def task_intents(
    sentence: str, task_sentence: str, fitness_doc: str, refused: Container[Goal] = ()
) -> tuple[Intent, ...]:
    """Intents of the sentence, completed from the task's metric in words. The metric adds a
    direction or a number that the sentence leaves open. It adds goals of its own, without the
    `refused` ones, only where the sentence is the task's or says nothing that can be used. How an
    episode ends says what to beware of, and names no goal."""
    intents = {intent.goal: intent for intent in read_intents(sentence)}
    same = tokens(sentence) == tokens(task_sentence)
    silent = not any(intent.main for intent in intents.values())
    asked_for = read_intents(measured(fitness_doc))
    goals = {each.goal for each in asked_for}
    beware = [e for e in read_intents(fitness_doc) if not e.main and e.goal not in goals]
    for other in (*asked_for, *beware):
        if other.goal in intents:
            intents[other.goal] = _completed(intents[other.goal], other)
        elif other.goal not in refused and (silent or (same and not other.main)):
            intents[other.goal] = other
    return tuple(intents.values())
