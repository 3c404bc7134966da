"""Genome → readable reward source, and back.

The source carries its terms in a comment at its end, so that a later generation can evolve it. The numbers are read
from the named constants: whoever edits a weight by hand keeps the genome. Any other edit makes the source a base of its own.
"""

from __future__ import annotations

import itertools
import re
import textwrap
from collections.abc import Iterable

from pydantic import ValidationError

from eureka_agent.designer.offline.genome import TERMS, Genome, unique_terms
from eureka_agent.designer.offline.operands import Scope, number
from eureka_agent.designer.offline.terms import Term
from eureka_agent.designer.source_tools import (
    ENTRY_POINT,
    entry_function,
    number_constants,
    parameter_names,
    same_reward,
)

BASE_NAME = "base_reward"
_TERMS_MARK = "# terms, as the offline designer reads them back:"
_BASE_MARK = "# ── terms added around the function above ──"
_PREFIX = "#   "
_LINE = 100
"""Columns of the source: it is shown in terminals."""


def render(genome: Genome, sentence: str, variables: Iterable[str]) -> str:
    """Source of the genome's `compute_reward`. `variables`: all names of the environment, which no local may shadow."""
    variables = tuple(variables)
    reserved = {
        *variables,
        *(f"previous_{name}" for name in variables),
        "total",
        "components",
        "torch",
        "Tensor",
        "base_total",
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
        factors = [weight, *([gate_locals[term.gate]] if term.gate in gate_locals else []), expression]
        gated = f", counted as far as {term.gate!r} does" if term.gate in gate_locals else ""
        body += [f"# {term.describe()}{gated}", *scope.take_statements()]
        body += _product(component_locals[term.name], "-" if term.penalty else "", factors)

    arguments = list(dict.fromkeys(name for term in genome.terms for name in term.arguments()))
    entries = [(f'"{term.name}"', component_locals[term.name]) for term in genome.terms]
    if genome.base is None:
        body.append(f"total = {' + '.join(local for _, local in entries)}")
        body.append(f"return total, {{{', '.join(f'{key}: {local}' for key, local in entries)}}}")
    else:
        base_arguments = parameter_names(genome.base.replace(f"def {BASE_NAME}", f"def {ENTRY_POINT}"))
        arguments = list(dict.fromkeys((*base_arguments, *arguments)))
        body = (
            [
                f"total, components = {BASE_NAME}({', '.join(f'{name}={name}' for name in base_arguments)})",
                "components = dict(components)",
            ]
            + [line for name, factor in genome.base_scales.items() for line in _rescaling(scope, name, factor)]
            + body
        )
        for key, local in entries:
            body += [f"total = total + {local}", f"components[{key}] = {local}"]
        body.append("return total, components")

    head = [] if genome.base is not None else [*_imports(), ""]
    constants = [f"{name} = {number(value)}" for name, value in scope.constants.items()]
    signature = _signature(arguments)
    docstring = textwrap.wrap(f'"""Reward for the task: {_plain(sentence)}."""', _LINE - 4)
    function = [signature, *(f"    {line}" for line in docstring), *(f"    {line}" for line in _wrapped(body))]
    before = [genome.base.rstrip(), "", "", _BASE_MARK] if genome.base is not None else []
    return "\n".join([*before, *head, *constants, "", "", *function, "", "", *_terms_comment(genome)]) + "\n"


def recover(source: str, variables: Iterable[str]) -> Genome:
    """The genome of a source that `render` wrote; any other source becomes the base of a new genome.

    Source without a `compute_reward` gives an empty genome.
    """
    variables = tuple(variables)
    genome = _read_comment(source)
    if genome is not None and same_reward(render(genome, "", variables), source):
        return genome
    function = entry_function(source)
    if function is None:
        return Genome()
    lines = source.splitlines()
    first = function.lineno - 1
    lines[first] = lines[first].replace(ENTRY_POINT, BASE_NAME, 1)
    for decorator in function.decorator_list:
        for place in range(decorator.lineno - 1, (decorator.end_lineno or decorator.lineno)):
            lines[place] = ""
    kept = [line for line in lines if not line.startswith((_TERMS_MARK, _PREFIX + "{"))]
    return Genome(base="\n".join(kept).strip() + "\n")


def component_lines(genome: Genome, source: str) -> dict[str, range]:
    """Lines (from 1) of each term in a rendered source: from its comment up to the next term."""
    lines = source.splitlines()
    begins = [
        place for place, line in enumerate(lines, start=1) if line.startswith(("    # ", "    total = ", "    return "))
    ]
    found: dict[str, range] = {}
    for begin, end in itertools.pairwise(begins):
        block = "\n".join(lines[begin - 1 : end - 1])
        for term in genome.terms:
            if re.search(rf"^    {term.name}(_value)* = ", block, re.MULTILINE):
                found.setdefault(term.name, range(begin, end))
    return found


def _imports() -> list[str]:
    return ["import torch", "from torch import Tensor"]


def _rescaling(scope: Scope, name: str, factor: float) -> list[str]:
    constant = scope.constant("base_" + "".join(mark if mark.isalnum() else "_" for mark in name) + "_factor", factor)
    return [
        f"total = total + ({constant} - 1.0) * components[{name!r}]",
        f"components[{name!r}] = {constant} * components[{name!r}]",
    ]


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
    return " ".join(sentence.replace("\\", " ").replace('"', "'").split()).rstrip(".") or "not named"


def _terms_comment(genome: Genome) -> list[str]:
    lines = [_TERMS_MARK]
    for term in genome.terms:
        lines.append(
            _PREFIX + term.model_dump_json(exclude_defaults=True).replace("{", '{"kind":"' + term.kind + '",', 1)
        )
    if genome.base_scales:
        lines.append(_PREFIX + Genome(base_scales=genome.base_scales).model_dump_json(exclude_defaults=True))
    return lines


def _read_comment(source: str) -> Genome | None:
    """The genome in the comment at the end, with the numbers of the source's constants; None where there is none."""
    before, mark, after = source.rpartition(_TERMS_MARK)
    if not mark:
        return None
    base_text, base_mark, _ = before.rpartition(_BASE_MARK)
    constants = number_constants(before)
    terms: list[Term] = []
    scales: dict[str, float] = {}
    for line in after.splitlines():
        text = line.removeprefix(_PREFIX)
        if not line.startswith(_PREFIX):
            continue
        try:
            if text.startswith('{"base_scales"'):
                scales = Genome.model_validate_json(text).base_scales
            else:
                terms.append(_with_constants(TERMS.validate_json(text), constants))
        except ValidationError:
            return None
    scales = {name: constants.get(f"BASE_{name.upper()}_FACTOR", factor) for name, factor in scales.items()}
    return Genome(terms=unique_terms(terms), base=base_text.rstrip() + "\n" if base_mark else None, base_scales=scales)


def _with_constants(term: Term, constants: dict[str, float]) -> Term:
    """The term with every number that a constant of the source names."""
    for field in type(term).model_fields:
        name = f"{term.name}_{field}".upper()
        if name in constants and isinstance(getattr(term, field), float):
            term = term.model_copy(update={field: constants[name]})
    return term
