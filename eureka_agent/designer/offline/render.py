"""Genome → readable reward source, and back.

The source carries its terms in a comment at its end, so that a later generation can evolve it. The
numbers are read from the named constants, which an optimiser may have changed.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from pydantic import ValidationError

from eureka_agent.designer.offline.terms import LOCALS, Genome, Term, unique_terms
from eureka_agent.designer.source_tools import ENTRY_POINT, number_constants, same_reward
from eureka_agent.task import PREVIOUS_PREFIX

_TERMS_MARK = "# terms, as the offline designer reads them back:"
_PREFIX = "#   "
_LINE = 100
"""Columns of the source: it is shown in terminals."""
_RESULT = "tuple[Tensor, dict[str, Tensor]]"


class _Scope:
    """Names that the function has: constants and locals."""

    def __init__(self, reserved: set[str]) -> None:
        self.constants: dict[str, float] = {}
        self._taken = reserved
        self._locals: dict[str, str] = {}

    def free(self, name: str) -> str:
        """`name`, or one like it that clashes with no variable and no other local."""
        while name in self._taken:
            name += "_value"
        self._taken.add(name)
        return name

    def local(self, name: str, code: str, body: list[str]) -> str:
        """Name of a local that holds `code`; the same code is computed once, in `body`."""
        if code not in self._locals:
            self._locals[code] = self.free(name)
            body.append(f"{self._locals[code]} = {code}")
        return self._locals[code]

    def factors(self, term: Term, body: list[str]) -> list[str]:
        """Expressions whose product is the term's value without its weight."""
        factors, numbers = term.form.factors, [*term.form.numbers]
        if term.numbers.get("sharpness") == 1.0:
            numbers.remove("sharpness")
            factors = tuple(each.replace(" ** {sharpness}", "") for each in factors)
        names = {number: _constant(term, number) for number in numbers}
        self.constants |= {names[number]: term.numbers[number] for number in numbers}
        names |= _operands(term)
        for key, (label, code) in LOCALS.items():
            if f"{{{key}}}" in "".join(factors):
                inline = code == "{norm}" and term.operands[-1].scalar
                label, code = label.format_map(names), code.format_map(names)
                names[key] = code if inline else self.local(label, code, body)
        return [each.format_map(names) for each in factors]


def _constant(term: Term, number: str) -> str:
    return f"{term.name}_{number}".upper()


def _operands(term: Term) -> dict[str, str]:
    """Code for the marks in a form's texts that stand for operands."""
    if not term.operands:
        return {}
    first, last = term.operands[0], term.operands[-1]
    magnitude = f"({last.code}).abs()" if " - " in last.code else f"{last.code}.abs()"
    return {
        "name": term.name,
        "x": first.code,
        "y": last.code,
        "mean": "" if first.scalar else ".mean(dim=-1)",
        "norm": magnitude if last.scalar else f"torch.linalg.vector_norm({last.code}, dim=-1)",
        "off": "distance" if len(last.reads) > 1 else "size",
        "variable": last.reads[0],
    }


def render(genome: Genome, sentence: str, variables: Iterable[str]) -> str:
    """Source of the genome's `compute_reward`, in which no local shadows one of the `variables`."""
    taken = {prefix + name for name in variables for prefix in ("", PREVIOUS_PREFIX)}
    scope = _Scope({*taken, "total", "torch", "Tensor"})
    # a component's local has the component's name, so claim those before any helper local does
    components = {term.name: scope.free(term.name) for term in genome.terms}
    gates = dict.fromkeys((term.gate for term in genome.terms if term.gate is not None), "")
    body: list[str] = []
    for term in sorted(genome.terms, key=lambda each: each.gate is not None):
        before: list[str] = []
        factors = scope.factors(term, before)
        if term.name in gates:
            factors = [scope.local(f"{term.name}_gate", " * ".join(factors), before)]
            gates[term.name] = factors[0]
        gate = gates.get(term.gate or "", "")
        weight = _constant(term, "weight")
        scope.constants[weight] = term.weight
        factors = [("-" if term.penalty else "") + weight, *([gate] if gate else []), *factors]
        gated = f", counted as far as {term.gate!r} does" if gate else ""
        body += [f"# {term.form.says.format_map(_operands(term))}{gated}", *before]
        body += _assignment(components[term.name], factors, "*")
    body += _assignment("total", [*components.values()], "+")
    entries = [f'"{name}": {local}' for name, local in components.items()]
    body += _listing("return total, {", entries, "}")
    arguments = dict.fromkeys(name for term in genome.terms for name in term.arguments())
    annotated = [f"{name}: Tensor" for name in arguments]
    signature = _listing(f"def {ENTRY_POINT}(", annotated, f") -> {_RESULT}:")
    # a sentence that cannot end the docstring
    plain = " ".join(sentence.replace("\\", " ").replace('"', "'").split()).rstrip(".")
    docstring = f'"""Reward for the task: {plain or "not named"}."""'
    constants = [f"{name} = {float(value)!r}" for name, value in scope.constants.items()]
    function = [f"    {line}" for line in (*textwrap.wrap(docstring, _LINE - 4), *body)]
    lines = ["import torch", "from torch import Tensor", "", *constants, "", "", *signature]
    lines += [*function, "", "", _TERMS_MARK]
    lines += [_PREFIX + term.model_dump_json(exclude_defaults=True) for term in genome.terms]
    return "\n".join(lines) + "\n"


def recover(source: str, variables: Iterable[str]) -> Genome:
    """The genome of a source that `render` wrote; an empty one of any other source."""
    before, mark, after = source.rpartition(_TERMS_MARK)
    texts = [line for line in after.splitlines() if mark and line.startswith(_PREFIX)]
    constants = number_constants(before)
    try:
        read = [Term.model_validate_json(text.removeprefix(_PREFIX)) for text in texts]
    except ValidationError:
        return Genome()
    terms = []
    for each in read:
        known = {n: constants.get(_constant(each, n), v) for n, v in each.numbers.items()}
        terms.append(each.model_copy(update={"numbers": known}))
    genome = Genome(terms=unique_terms(terms))
    return genome if texts and same_reward(render(genome, "", variables), source) else Genome()


def _fitting(line: str, begin: str, rows: list[str], end: str) -> list[str]:
    """The line, or where it is too long its begin, its rows and its end."""
    return [line] if len(line) + 4 <= _LINE else [begin, *(f"    {row}" for row in rows), end]


def _listing(begin: str, entries: list[str], end: str) -> list[str]:
    line = f"{begin}{', '.join(entries)}{end}"
    return _fitting(line, begin, [f"{each}," for each in entries], end)


def _assignment(name: str, parts: list[str], sign: str) -> list[str]:
    """A sum or product with a name."""
    rows = [parts[0], *(f"{sign} {part}" for part in parts[1:])]
    return _fitting(f"{name} = {' '.join(rows)}", f"{name} = (", rows, ")")
