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
    """What the function has by name: constants and locals."""

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

    def constant(self, name: str, value: float) -> str:
        """Name of a new constant."""
        self.constants[name.upper()] = value
        return name.upper()

    def factors(self, term: Term, body: list[str]) -> list[str]:
        """Expressions whose product is the term's value without its weight."""
        factors, numbers = term.form.factors, [*term.form.numbers]
        if term.numbers.get("sharpness") == 1.0:
            numbers.remove("sharpness")
            factors = tuple(each.replace(" ** {sharpness}", "") for each in factors)
        names = {n: self.constant(f"{term.name}_{n}", term.numbers[n]) for n in numbers}
        names |= _operands(term)
        for key, (label, code) in LOCALS.items():
            if f"{{{key}}}" in "".join(factors):
                inline = code == "{norm}" and term.operands[-1].scalar
                label, code = label.format_map(names), code.format_map(names)
                names[key] = code if inline else self.local(label, code, body)
        return [each.format_map(names) for each in factors]


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
    """Source of the genome's `compute_reward`. `variables`: all names of the environment, which no
    local may shadow."""
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
        weight = scope.constant(f"{term.name}_weight", term.weight)
        factors = [("-" if term.penalty else "") + weight, *([gate] if gate else []), *factors]
        gated = f", counted as far as {term.gate!r} does" if gate else ""
        body += [f"# {term.form.says.format_map(_operands(term))}{gated}", *before]
        body += _assignment(components[term.name], factors, "*")
    body += _assignment("total", list(components.values()), "+")
    entries = [f'"{name}": {local}' for name, local in components.items()]
    last = f"return total, {{{', '.join(entries)}}}"
    body += _fitting(last, "return total, {", [f"{entry}," for entry in entries], "}")

    arguments = dict.fromkeys(name for term in genome.terms for name in term.arguments())
    annotated = [f"{name}: Tensor" for name in arguments]
    signature = _fitting(
        f"def {ENTRY_POINT}({', '.join(annotated)}) -> {_RESULT}:",
        f"def {ENTRY_POINT}(",
        [f"{each}," for each in annotated],
        f") -> {_RESULT}:",
    )
    docstring = textwrap.wrap(f'"""Reward for the task: {_plain(sentence)}."""', _LINE - 4)
    head = ["import torch", "from torch import Tensor", ""]
    constants = [f"{name} = {float(value)!r}" for name, value in scope.constants.items()]
    function = [*signature, *(f"    {line}" for line in (*docstring, *body))]
    notes = [_TERMS_MARK]
    notes += [_PREFIX + term.model_dump_json(exclude_defaults=True) for term in genome.terms]
    return "\n".join([*head, *constants, "", "", *function, "", "", *notes]) + "\n"


def recover(source: str, variables: Iterable[str]) -> Genome:
    """The genome of a source that `render` wrote, perhaps with other constants; of any other source
    an empty one."""
    before, mark, after = source.rpartition(_TERMS_MARK)
    texts = [line for line in after.splitlines() if mark and line.startswith(_PREFIX)]
    constants = number_constants(before)
    try:
        terms = [Term.model_validate_json(text.removeprefix(_PREFIX)) for text in texts]
    except ValidationError:
        return Genome()
    genome = Genome(terms=unique_terms(_with_constants(term, constants) for term in terms))
    return genome if texts and same_reward(render(genome, "", variables), source) else Genome()


def _with_constants(term: Term, constants: dict[str, float]) -> Term:
    """The term with every number that a constant of the source names."""
    known = {n: constants.get(f"{term.name}_{n}".upper(), term.numbers[n]) for n in term.numbers}
    return term.model_copy(update={"numbers": known})


def _fitting(line: str, begin: str, rows: list[str], end: str) -> list[str]:
    """The line, or where it is too long its begin, its rows and its end."""
    return [line] if len(line) + 4 <= _LINE else [begin, *(f"    {row}" for row in rows), end]


def _assignment(name: str, parts: list[str], sign: str) -> list[str]:
    """A sum or product with a name."""
    rows = [parts[0], *(f"{sign} {part}" for part in parts[1:])]
    return _fitting(f"{name} = {' '.join(rows)}", f"{name} = (", rows, ")")


def _plain(sentence: str) -> str:
    """A sentence that can stand in a docstring."""
    text = " ".join(sentence.replace("\\", " ").replace('"', "'").split())
    return text.rstrip(".") or "not named"
