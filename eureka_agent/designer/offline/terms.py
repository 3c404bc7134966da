"""Rewards as data: terms, each a row of a table of forms with variables, numbers and a weight.

A term's value is about 1 at its best (a penalty's about −1 at its worst), so that a weight says how
much the term counts per step. Values that no physics bounds are clamped: an extreme state must not
turn the reward into inf or NaN.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import NamedTuple, Self

from pydantic import Field, model_validator

from eureka_agent.records import Record

_SHAPES = {"temperature", "width", "sharpness", "calm_speed"}
"""Numbers of forms with values in [0, 1], which can gate other terms."""
TUNABLE = {*_SHAPES, "cap"}
"""Numbers that a search may scale, all positive."""


class Form(NamedTuple):
    """Description and computation of one kind of terms: factors of shape (batch,)."""

    says: str
    numbers: tuple[str, ...]
    factors: tuple[str, ...]


_TABLE = """
progress: speed in the wanted direction, {x}: cap
  {x}.clamp(-{cap}, {cap})
level: {x} up, from its start to its wanted end: low high
  (({x}{mean} - {low}) / ({high} - {low})).clamp(-5.0, 5.0)
level_down: {x} down, from its start to its wanted end: low high
  (({high} - {x}{mean}) / ({high} - {low})).clamp(-5.0, 5.0)
distance: 1 where {x} is 0: temperature
  torch.exp(-{distance} / {temperature})
distance_away: 0 where {x} is 0: temperature
  (1.0 - torch.exp(-{distance} / {temperature}))
stillness: 1 where {x} is 0: temperature
  torch.exp(-{speed} / {temperature})
upright: 1 upright, 0 upside down, from {x}: sharpness
  (0.5 + 0.5 * {x}) ** {sharpness}
upright_calm: 1 upright, 0 upside down, from {x}, while {y} is small: sharpness calm_speed
  (0.5 + 0.5 * {x}) ** {sharpness}
  torch.exp(-{rate} / {calm_speed})
tracking: 1 where {x} is as asked: target width
  torch.exp(-(({x} - {target}) / {width}).square())
tracking_zero: 1 where {x} is 0: width
  torch.exp(-({x} / {width}).square())
alive: 1 for every step without a failure
  (1.0 - terminated)
success: the prize of a success that ends the episode
  succeeded
failure: the price of a failure that ends the episode
  terminated
penalty: costs the mean square of {x}
  {x}.square(){mean}.clamp(max=25.0)
penalty_scaled: costs the mean square of {x}: scale
  ({x} / {scale}).square(){mean}.clamp(max=25.0)
penalty_jumps: costs the mean square of {x}
  {x}.square(){mean}.clamp(max=4.0)
penalty_limits: costs {x} beyond SOFT of its range, 1 at a limit: low high soft
  (({share} - {soft}) / (1.0 - {soft})).clamp(0.0, 2.0){mean}
"""
"""Forms: what a term of the kind rewards and its numbers, then its factors. `{x}` and `{y}` are the
first and the last operand, `{mean}` the mean over entries where there are several, a number's name
its constant, and the rest `LOCALS`."""
LOCALS = {
    "distance": ("{off}_of_{variable}", "{norm}.clamp(max=1000.0)"),
    "speed": ("{name}_speed", "{norm}"),
    "rate": ("{name}_rate", "{norm}"),
    "share": (
        "{name}_share",
        "(({x} - 0.5 * ({low} + {high})) / (0.5 * ({high} - {low}))).abs()",
    ),
}
"""Names and code of the local variables of forms; `{norm}` is the magnitude of the last operand."""
FORMS: dict[str, Form] = {}
for _row in re.split(r"\n(?! )", _TABLE.strip()):
    _head, *_factors = _row.split("\n  ")
    _kind, _says, _numbers = (*_head.split(": "), "")[:3]
    FORMS[_kind] = Form(_says, tuple(_numbers.split()), tuple(_factors))


class Operand(Record):
    """Entries of variables as an expression."""

    code: str
    """Code of shape (batch,) for a single entry, else (batch, entries)."""
    reads: tuple[str, ...] = Field(min_length=1)
    """The function's arguments in it."""
    scalar: bool = True

    def turned(self, sign: int) -> Operand:
        """Times 1 or −1."""
        return self.model_copy(update={"code": f"-{self.code}"}) if sign < 0 else self


class Term(Record):
    """A component of a reward."""

    kind: str
    name: str
    """Component name, unique within a reward."""
    operands: tuple[Operand, ...] = ()
    numbers: dict[str, float]
    """The weight, then the numbers of its form."""
    gate: str | None = None
    """Name of another term of values in [0, 1] that this one is multiplied with."""

    @model_validator(mode="after")
    def _fits_its_form(self) -> Self:
        form = FORMS.get(self.kind)
        marks = sum(mark in str(form) for mark in ("{x}", "{y}"))
        given = tuple(self.numbers), len(self.operands)
        if form is None or given != (("weight", *form.numbers), marks):
            raise ValueError(f"no form of term has kind {self.kind!r} with {given}")
        return self

    @property
    def form(self) -> Form:
        return FORMS[self.kind]

    @property
    def weight(self) -> float:
        return self.numbers["weight"]

    @property
    def penalty(self) -> bool:
        return self.kind.startswith(("penalty", "failure"))

    def arguments(self) -> tuple[str, ...]:
        """Names of the arguments that its code reads."""
        ends = [name for name in ("terminated", "succeeded") if name in "".join(self.form.factors)]
        return (*ends, *(name for operand in self.operands for name in operand.reads))

    def scaled(self, number: str, factor: float) -> Term:
        """The term with a number times `factor`, rounded to two significant digits."""
        value = rounded(self.numbers[number] * factor, digits=2)
        return self.model_copy(update={"numbers": {**self.numbers, number: value}})

    def gated(self, gate: str | None) -> Term:
        """The term with another gate or none."""
        return self.model_copy(update={"gate": gate})


def term(kind: str, name: str, weight: float, *operands: Operand, **numbers: float) -> Term:
    """A term in one line."""
    return Term(kind=kind, name=name, operands=operands, numbers={"weight": weight, **numbers})


class Genome(Record):
    """A reward as the offline designer evolves it: terms in order."""

    terms: tuple[Term, ...] = ()

    def term(self, name: str) -> Term | None:
        """The term called `name`, or None."""
        return next((term for term in self.terms if term.name == name), None)

    def without(self, name: str) -> Genome:
        """The genome with neither the term `name` nor a gate on it."""
        return Genome(terms=unique_terms(term for term in self.terms if term.name != name))

    def with_term(self, term: Term) -> Genome:
        """The genome with `term` in the place of its namesake, or at the end."""
        known = {other.name: other for other in self.terms} | {term.name: term}
        return Genome(terms=unique_terms(known.values()))

    @property
    def empty(self) -> bool:
        """True where nothing is paid."""
        return all(term.penalty for term in self.terms)


def unique_terms(terms: Iterable[Term]) -> tuple[Term, ...]:
    """The first term of each name, without gates on what is not there."""
    kept: dict[str, Term] = {}
    for each in terms:
        kept.setdefault(each.name, each)
    bounded = [each for each in kept.values() if not _SHAPES.isdisjoint(each.numbers)]
    gates = {None, *(each.name for each in bounded if each.gate is None)}
    return tuple(each if each.gate in gates else each.gated(None) for each in kept.values())


def rounded(value: float, digits: int = 3) -> float:
    """`value` with a few significant digits, as a person would write it."""
    return float(f"{value:.{digits}g}") if math.isfinite(value) else value
