"""A reward as data: ordered terms with their weights."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pydantic import TypeAdapter

from eureka_agent.designer.offline.operands import rounded
from eureka_agent.designer.offline.terms import Term
from eureka_agent.records import Record


class Genome(Record):
    """What the offline designer evolves."""

    terms: tuple[Term, ...] = ()

    def term(self, name: str) -> Term | None:
        """The term called `name`, or None."""
        return next((term for term in self.terms if term.name == name), None)

    def without(self, name: str) -> Genome:
        """The genome with neither the term `name` nor a gate on it."""
        kept = tuple(
            term.model_copy(update={"gate": None}) if term.gate == name else term
            for term in self.terms
            if term.name != name
        )
        return self.model_copy(update={"terms": kept})

    def with_term(self, term: Term) -> Genome:
        """The genome with `term` in the place of its namesake, or at the end. A gate that is not
        there is dropped."""
        names = {other.name for other in self.terms}
        if term.gate is not None and term.gate not in names:
            term = term.model_copy(update={"gate": None})
        if term.name in names:
            return self.model_copy(
                update={
                    "terms": tuple(
                        term if other.name == term.name else other for other in self.terms
                    )
                }
            )
        return self.model_copy(update={"terms": (*self.terms, term)})

    def change(self, name: str, edit: Callable[[Term], Term]) -> Genome:
        """The genome with `edit` applied to one term."""
        return self.model_copy(
            update={
                "terms": tuple(edit(term) if term.name == name else term for term in self.terms)
            }
        )

    def scaled(self, name: str, factor: float) -> Genome:
        """The genome with one term's weight times `factor`."""
        return self.change(name, lambda term: set_number(term, "weight", term.weight * factor))

    @property
    def empty(self) -> bool:
        return not any(not term.penalty for term in self.terms)


def set_number(term: Term, field: str, value: float) -> Term:
    """`term` with one number replaced, rounded to two significant digits."""
    return term.model_copy(update={field: rounded(value, digits=2)})


def unique_terms(terms: Iterable[Term]) -> tuple[Term, ...]:
    """The terms, without repeated names; the first of each stays. Gates that are not there are
    dropped."""
    kept: dict[str, Term] = {}
    for term in terms:
        kept.setdefault(term.name, term)
    gates = {name for name, term in kept.items() if term.unit_interval and term.gate is None}
    return tuple(
        term.model_copy(update={"gate": None})
        if term.gate is not None and term.gate not in gates
        else term
        for term in kept.values()
    )


TERMS: TypeAdapter[Term] = TypeAdapter(Term)
