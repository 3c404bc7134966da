"""Rewards as data: terms, each a row of a table of forms with variables, numbers and a weight.

A term's value is about 1 at its best (a penalty's about −1 at its worst), so that a weight says how
much the term counts per step. Values that no physics bounds are clamped: an extreme state must not
turn the reward into inf or NaN.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple, Self

from pydantic import Field, model_validator

from eureka_agent.records import Record

_SHAPES = frozenset({"temperature", "width", "sharpness", "calm_speed"})
"""Numbers of forms with values in [0, 1]."""
TUNABLE = _SHAPES | {"cap"}
"""Numbers that a search may scale, all positive."""


class Form(NamedTuple):
    """How terms of one kind are computed and described.

    `{x}` and `{y}` are the first and the last operand, `{variable}` what the first one reads,
    `{norm}` the magnitude of the last, `{mean}` the mean over entries where there are several, and
    a number's name its constant.
    """

    says: str
    code: tuple[str, ...]
    """Factors of shape (batch,)."""
    numbers: tuple[str, ...] = ()
    local: tuple[str, str] = ("", "")
    """Name and code of what `{local}` stands for in the factors."""
    penalty: bool = False

    @property
    def num_operands(self) -> int:
        text = " ".join((self.says, *self.code, *self.local))
        return ("{x}" in text) + ("{y}" in text)

    @property
    def bounded(self) -> bool:
        """True for values in [0, 1]: such a term can gate others."""
        return not _SHAPES.isdisjoint(self.numbers)


_LEVEL = "(({} - {}) / ({{high}} - {{low}})).clamp(-5.0, 5.0)"
_SPEED = "{x}.clamp(-{cap}, {cap})"
_NEAR = "torch.exp(-{local} / {temperature})"
_TILT = "(0.5 + 0.5 * {x}) ** {sharpness}"
_AT_TOP = "1 upright, 0 upside down, from {variable}"
_FAR = ("{distance}", "{norm}.clamp(max=1000.0)")
FORMS = {
    "progress": Form("speed in the wanted direction, {x}", (_SPEED,), ("cap",)),
    "progress_scaled": Form("speed of change, {x}", (_SPEED + " / {scale}",), ("cap", "scale")),
    "level": Form(
        "{x} up, from its start to its wanted end",
        (_LEVEL.format("{x}{mean}", "{low}"),),
        ("low", "high"),
    ),
    "level_down": Form(
        "{x} down, from its start to its wanted end",
        (_LEVEL.format("{high}", "{x}{mean}"),),
        ("low", "high"),
    ),
    "distance": Form("1 where {x} is 0", (_NEAR,), ("temperature",), _FAR),
    "distance_away": Form("0 where {x} is 0", (f"(1.0 - {_NEAR})",), ("temperature",), _FAR),
    "stillness": Form("1 where {x} is 0", (_NEAR,), ("temperature",), ("{name}_speed", "{norm}")),
    # of the cosine of a tilt
    "upright": Form(_AT_TOP, (_TILT,), ("sharpness",)),
    # standing at the top is told from whirling through it by the turning speed {y}
    "upright_calm": Form(
        _AT_TOP + ", and only while {y} is small",
        (_TILT, "torch.exp(-{local} / {calm_speed})"),
        ("sharpness", "calm_speed"),
        ("{name}_rate", "{norm}"),
    ),
    "tracking": Form(
        "1 where {x} is as asked",
        ("torch.exp(-(({x} - {target}) / {width}).square())",),
        ("target", "width"),
    ),
    "tracking_zero": Form(
        "1 where {x} is 0", ("torch.exp(-({x} / {width}).square())",), ("width",)
    ),
    "alive": Form("1 for every step without a failure", ("(1.0 - terminated)",)),
    "success": Form("the prize of a success that ends the episode", ("succeeded",)),
    # in one step, so that all others stay as they are
    "failure": Form("the price of a failure that ends the episode", ("terminated",), penalty=True),
    "penalty": Form(
        "costs the mean square of {x}", ("{x}.square(){mean}.clamp(max=25.0)",), penalty=True
    ),
    "penalty_scaled": Form(
        "costs the mean square of {x}",
        ("({x} / {scale}).square(){mean}.clamp(max=25.0)",),
        ("scale",),
        penalty=True,
    ),
    # actions in [-1, 1] change by 2 at most
    "jumps": Form(
        "costs jumps of the actions", ("{x}.square(){mean}.clamp(max=4.0)",), penalty=True
    ),
    # 0 until `soft` of the range, 1 at a limit; a hard push takes a joint a little beyond
    "limit": Form(
        "costs {x} near its limits",
        ("(({local} - {soft}) / (1.0 - {soft})).clamp(0.0, 2.0){mean}",),
        ("low", "high", "soft"),
        ("{name}_share", "(({x} - 0.5 * ({low} + {high})) / (0.5 * ({high} - {low}))).abs()"),
        penalty=True,
    ),
}


class Operand(Record):
    """Entries of variables as an expression."""

    code: str
    """Of shape (batch,) for a single entry, else (batch, entries)."""
    reads: tuple[str, ...] = Field(min_length=1)
    """The function's arguments in it."""
    scalar: bool = True


class Term(Record):
    """A component of a reward."""

    kind: str
    name: str
    """Component name, unique within a reward."""
    weight: float = 1.0
    operands: tuple[Operand, ...] = ()
    numbers: dict[str, float] = Field(default_factory=dict)
    gate: str | None = None
    """Name of another term of values in [0, 1] that this one is multiplied with: it counts only
    where that one does."""

    @model_validator(mode="after")
    def _fits_its_form(self) -> Self:
        given = tuple(self.numbers), len(self.operands)
        if self.kind not in FORMS or given != (self.form.numbers, self.form.num_operands):
            raise ValueError(f"no form of term has kind {self.kind!r} with {given}")
        return self

    @property
    def form(self) -> Form:
        return FORMS[self.kind]

    @property
    def penalty(self) -> bool:
        return self.form.penalty

    def arguments(self) -> tuple[str, ...]:
        """Names of the arguments that its code reads."""
        ends = {"alive": ("terminated",), "failure": ("terminated",), "success": ("succeeded",)}
        return ends.get(self.kind, ()) + tuple(n for each in self.operands for n in each.reads)

    def trait(self) -> str:
        """Form and entries: equal for terms that differ in numbers alone."""
        return f"{self.kind}({', '.join(each.code for each in self.operands)})"

    def tuned(self, number: str, value: float) -> Term:
        """The term with its weight or another number replaced, rounded to two significant
        digits."""
        value = rounded(value, digits=2)
        if number == "weight":
            return self.model_copy(update={"weight": value})
        return self.model_copy(update={"numbers": {**self.numbers, number: value}})

    def gated(self, gate: str | None) -> Term:
        """The term with another gate or none."""
        return self.model_copy(update={"gate": gate})


def term(kind: str, name: str, weight: float, *operands: Operand, **numbers: float) -> Term:
    """A term in one line."""
    return Term(kind=kind, name=name, weight=weight, operands=operands, numbers=numbers)


class Genome(Record):
    """A reward as the offline designer evolves it: terms in order."""

    terms: tuple[Term, ...] = ()

    def term(self, name: str) -> Term | None:
        """The term called `name`, or None."""
        return next((term for term in self.terms if term.name == name), None)

    def without(self, name: str) -> Genome:
        """The genome with neither the term `name` nor a gate on it."""
        kept = [term for term in self.terms if term.name != name]
        return Genome(terms=tuple(t.gated(None) if t.gate == name else t for t in kept))

    def with_term(self, term: Term) -> Genome:
        """The genome with `term` in the place of its namesake, or at the end. A gate that is not
        there is dropped."""
        known = {other.name: other for other in self.terms}
        known[term.name] = term if term.gate in known else term.gated(None)
        return Genome(terms=tuple(known.values()))

    def tuned(self, name: str, number: str, factor: float) -> Genome:
        """The genome with one term's weight or other number times `factor`."""
        term = self.term(name)
        if term is None:
            return self
        value = term.weight if number == "weight" else term.numbers[number]
        return self.with_term(term.tuned(number, value * factor))

    @property
    def empty(self) -> bool:
        """True where nothing is paid."""
        return all(term.penalty for term in self.terms)


def unique_terms(terms: Iterable[Term]) -> tuple[Term, ...]:
    """The terms, without repeated names; the first of each stays. Gates that are not there are
    dropped."""
    kept: dict[str, Term] = {}
    for each in terms:
        kept.setdefault(each.name, each)
    gates = {name for name, each in kept.items() if each.form.bounded and each.gate is None}
    return tuple(each if each.gate in gates else each.gated(None) for each in kept.values())


def rounded(value: float, digits: int = 3) -> float:
    """`value` with a few significant digits, as a person would write it."""
    return float(f"{value:.{digits}g}") if math.isfinite(value) else value
