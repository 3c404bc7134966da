"""Genome → readable reward source, and back.

The source carries its terms in a comment at its end, so that a later generation can evolve it. The
numbers are read from the named constants, which an optimiser may have changed.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from pydantic import ValidationError

from eureka_agent.designer.offline.genome import TERMS, Genome, unique_terms
from eureka_agent.designer.offline.operands import Scope, number
from eureka_agent.designer.offline.terms import Term
from eureka_agent.designer.source_tools import (
    ENTRY_POINT,
    number_constants,
    same_reward,
)

_TERMS_MARK = "# terms, as the offline designer reads them back:"
_PREFIX = "#   "
_LINE = 100
"""Columns of the source: it is shown in terminals."""


def render(genome: Genome, sentence: str, variables: Iterable[str]) -> str:
    """Source of the genome's `compute_reward`. `variables`: all names of the environment, which no
    local may shadow."""
    variables = tuple(variables)
    reserved = {
        *variables,
        *(f"previous_{name}" for name in variables),
        "total",
        "torch",
        "Tensor",
    }
    scope = Scope(reserved)
    # a component's local has the component's name, so claim those before any helper local does
    component_locals = {term.name: scope.free(term.name) for term in genome.terms}
    gates = {term.gate for term in genome.terms if term.gate is not None}
    body: list[str] = []
    gate_locals: dict[str, str] = {}
    for term in sorted(genome.terms, key=lambda each: each.gate is not None):
        expression = term.value(scope)
        if term.name in gates:
            expression = scope.local(f"{term.name}_gate", expression)
            gate_locals[term.name] = expression
        weight = scope.constant(f"{term.name}_weight", term.weight)
        factors = [
            weight,
            *([gate_locals[term.gate]] if term.gate in gate_locals else []),
            expression,
        ]
        gated = f", counted as far as {term.gate!r} does" if term.gate in gate_locals else ""
        body += [f"# {term.describe()}{gated}", *scope.take_statements()]
        body += _product(component_locals[term.name], "-" if term.penalty else "", factors)

    arguments = list(dict.fromkeys(name for term in genome.terms for name in term.arguments()))
    body.append(f"total = {' + '.join(component_locals[term.name] for term in genome.terms)}")
    entries = ", ".join(f'"{term.name}": {component_locals[term.name]}' for term in genome.terms)
    body.append(f"return total, {{{entries}}}")

    constants = [f"{name} = {number(value)}" for name, value in scope.constants.items()]
    docstring = textwrap.wrap(f'"""Reward for the task: {_plain(sentence)}."""', _LINE - 4)
    function = [_signature(arguments), *(f"    {line}" for line in (*docstring, *_wrapped(body)))]
    head = ["import torch", "from torch import Tensor", ""]
    return "\n".join([*head, *constants, "", "", *function, "", "", *_terms_comment(genome)]) + "\n"


def recover(source: str, variables: Iterable[str]) -> Genome:
    """The genome of a source that `render` wrote, perhaps with other constants; of any other source
    an empty one."""
    genome = _read_comment(source)
    return genome if same_reward(render(genome, "", variables), source) else Genome()


def _signature(arguments: list[str]) -> str:
    annotated = ", ".join(f"{name}: Tensor" for name in arguments)
    line = f"def {ENTRY_POINT}({annotated}) -> tuple[Tensor, dict[str, Tensor]]:"
    if len(line) <= _LINE:
        return line
    rows = "\n".join(f"    {name}: Tensor," for name in arguments)
    return f"def {ENTRY_POINT}(\n{rows}\n) -> tuple[Tensor, dict[str, Tensor]]:"


def _product(name: str, sign: str, factors: list[str]) -> list[str]:
    """An assignment of a product, one factor a line where it is long."""
    line = f"{name} = {sign}{' * '.join(factors)}"
    if len(line) + 4 <= _LINE:
        return [line]
    first, *others = [part for factor in factors for part in _top_level_factors(factor)]
    return [f"{name} = (", f"    {sign}{first}", *(f"    * {factor}" for factor in others), ")"]


def _top_level_factors(expression: str) -> list[str]:
    """The expression split at its multiplications outside of all brackets."""
    parts, depth, begin = [], 0, 0
    for place, mark in enumerate(expression):
        depth += (mark in "([{") - (mark in ")]}")
        if depth == 0 and expression.startswith(" * ", place):
            parts.append(expression[begin:place])
            begin = place + 3
    return [*parts, expression[begin:]]


def _wrapped(body: list[str]) -> list[str]:
    """Long statements broken at their entries or sums."""
    lines: list[str] = []
    for statement in body:
        if len(statement) + 4 <= _LINE or statement.startswith("#"):
            lines.append(statement)
        elif statement.startswith("return total, {"):
            entries = statement.removeprefix("return total, {").removesuffix("}").split(", ")
            lines += ["return total, {", *(f"    {entry}," for entry in entries), "}"]
        elif statement.startswith("total = "):
            first, *others = statement.removeprefix("total = ").split(" + ")
            lines += ["total = (", f"    {first}", *(f"    + {other}" for other in others), ")"]
        else:
            lines.append(statement)
    return lines


def _plain(sentence: str) -> str:
    """A sentence that can stand in a docstring."""
    return (
        " ".join(sentence.replace("\\", " ").replace('"', "'").split()).rstrip(".") or "not named"
    )


def _terms_comment(genome: Genome) -> list[str]:
    texts = (term.model_dump_json(exclude_defaults=True) for term in genome.terms)
    kinds = (term.kind for term in genome.terms)
    return [
        _TERMS_MARK,
        *(
            _PREFIX + text.replace("{", f'{{"kind":"{kind}",', 1)
            for text, kind in zip(texts, kinds, strict=True)
        ),
    ]


def _read_comment(source: str) -> Genome:
    """The genome in the comment at the end, with the numbers of the source's constants; empty where
    there is none."""
    before, mark, after = source.rpartition(_TERMS_MARK)
    texts = [
        line.removeprefix(_PREFIX)
        for line in after.splitlines()
        if mark and line.startswith(_PREFIX)
    ]
    constants = number_constants(before)
    try:
        return Genome(
            terms=unique_terms(
                _with_constants(TERMS.validate_json(text), constants) for text in texts
            )
        )
    except ValidationError:
        return Genome()


def _with_constants(term: Term, constants: dict[str, float]) -> Term:
    """The term with every number that a constant of the source names."""
    for field in type(term).model_fields:
        name = f"{term.name}_{field}".upper()
        if name in constants and isinstance(getattr(term, field), float):
            term = term.model_copy(update={field: constants[name]})
    return term
