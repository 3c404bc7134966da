"""Rewards as data: terms, each a row of a table of forms with variables, numbers and a weight, and
their source. A term's value is about 1 at its best (a penalty's about −1 at its worst), so that a
weight says how much the term counts per step. Values that no physics bounds are clamped, since an
extreme state must not make the reward inf or NaN. A source carries its terms in a comment at its
end, so that a later generation can change them. Their numbers are read from the named constants,
which a person may have changed."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterable

from pydantic import Field, ValidationError

from eureka_agent.designer.source_tools import ENTRY_POINT, number_constants, same_reward
from eureka_agent.records import Record
from eureka_agent.task import PREVIOUS_PREFIX

_FORMS = """
progress: speed in the wanted direction, {x}
  {x}.clamp(-{cap}, {cap})
level: {x} from its start to its wanted end
  (({x}{mean} - {low}) / ({high} - {low})).clamp(-5.0, 5.0)
closeness: 1 where {x} is 0
  torch.exp(-{norm} / {temperature})
upright: 1 upright, 0 upside down, from {x}
  (0.5 + 0.5 * {x}) ** {sharpness}
upright_calm: 1 upright, 0 upside down, from {x}, while {y} is small
  (0.5 + 0.5 * {x}) ** {sharpness}
  torch.exp(-{norm} / {calm_speed})
tracking: 1 where {x} is as asked
  torch.exp(-(({x} - {target}) / {width}).square())
alive: 1 for every step without a failure
  (1.0 - terminated)
success: the prize of a success that ends the episode
  succeeded
failure: the price of a failure that ends the episode
  terminated
penalty: costs the mean square of {x}
  {x}.square(){mean}.clamp(max=25.0)
penalty_limits: costs {x} beyond SOFT, where 1 is a limit
  (({x} - {soft}) / (1.0 - {soft})).clamp(0.0, 2.0){mean}
"""
FORMS: dict[str, list[str]] = {}
"""By kind the comment of a term, and the factors of its value, of shape (batch,). `{x}` and `{y}`
are the first and the last operand, `{norm}` the last one's magnitude, `{mean}` the mean over
entries where there are several, and any other name is the constant of one of the term's numbers."""
for _row in re.split(r"\n(?! )", _FORMS.strip()):
    _kind, _, _says = _row.partition(": ")
    FORMS[_kind] = _says.split("\n  ")
_BOUNDED = {"temperature", "width", "sharpness", "calm_speed"}
"""Numbers of forms with values in [0, 1], which can gate other terms."""
TUNABLE = {*_BOUNDED, "cap"}
"""Numbers that a search may scale, all positive."""
_TERMS_MARK = "# terms, as the offline designer reads them back:"
_PREFIX = "#   "
_LINE = 100
"""Columns of the source: it is shown in terminals."""


def rounded(value: float, digits: int = 3) -> float:
    """`value` with a few significant digits, as a person would write it."""
    return float(f"{value:.{digits}g}") if math.isfinite(value) else value


class Operand(Record):
    """Entries of variables as an expression."""

    code: str
    """Code of shape (batch,) for a single entry, else (batch, entries)."""
    reads: tuple[str, ...] = Field(min_length=1)
    scalar: bool = True

    def formed(self, form: str) -> Operand:
        """The operand in an expression: `"-{}"`."""
        return self.model_copy(update={"code": form.format(self.code)})

    def turned(self, sign: int) -> Operand:
        return self.formed("-{}") if sign < 0 else self


class RewardTerm(Record):
    """A component of a reward."""

    kind: str
    name: str
    operands: tuple[Operand, ...] = ()
    numbers: dict[str, float]
    """The weight, then the numbers of its form."""
    gate: str | None = None
    """Name of another term of values in [0, 1] that this one is multiplied with."""

    @property
    def penalty(self) -> bool:
        return self.kind.startswith(("penalty", "failure"))

    def arguments(self) -> tuple[str, ...]:
        """Names of the arguments that its code reads."""
        ends = {"alive": "terminated", "failure": "terminated", "success": "succeeded"}
        end = (ends[self.kind],) if self.kind in ends else ()
        return (*end, *(name for operand in self.operands for name in operand.reads))

    def scaled(self, number: str, factor: float) -> RewardTerm:
        """The term with a number times `factor`, rounded to two significant digits."""
        value = rounded(self.numbers[number] * factor, digits=2)
        return self.model_copy(update={"numbers": {**self.numbers, number: value}})

    def gated(self, gate: str | None) -> RewardTerm:
        return self.model_copy(update={"gate": gate})

    def constant(self, number: str) -> str:
        return f"{self.name}_{number}".upper()

    def says(self) -> str:
        return FORMS[self.kind][0].format_map(self.marks())

    def marks(self) -> dict[str, str]:
        marks = {number: self.constant(number) for number in self.numbers}
        if not self.operands:
            return marks
        first, last = self.operands[0], self.operands[-1]
        magnitude = f"({last.code}).abs()" if " - " in last.code else f"{last.code}.abs()"
        norm = magnitude if last.scalar else f"torch.linalg.vector_norm({last.code}, dim=-1)"
        mean = "" if first.scalar else ".mean(dim=-1)"
        return {**marks, "x": first.code, "y": last.code, "norm": norm, "mean": mean}


def term(kind: str, name: str, weight: float, *operands: Operand, **numbers: float) -> RewardTerm:
    """A term in one line."""
    return RewardTerm(
        kind=kind, name=name, operands=operands, numbers={"weight": weight, **numbers}
    )


Genome = dict[str, RewardTerm]
"""A reward as the offline designer changes it: terms in order, by name."""


def genome_of(terms: Iterable[RewardTerm]) -> Genome:
    """The first term of each name."""
    genome: Genome = {}
    for each in terms:
        genome.setdefault(each.name, each)
    return genome


def pays(genome: Genome) -> bool:
    """True where something is paid, not only charged."""
    return not all(term.penalty for term in genome.values())


def render(genome: Genome, sentence: str, variables: Iterable[str]) -> str:
    """Source of the genome's `compute_reward`, in which no local shadows one of the `variables`."""
    taken = {prefix + name for name in variables for prefix in ("", PREVIOUS_PREFIX)}
    taken |= {"total", "torch", "Tensor"}

    def free(name: str) -> str:
        while name in taken:
            name += "_value"
        taken.add(name)
        return name

    components = {name: free(name) for name in genome}
    wanted = {each.gate for each in genome.values()}
    able = [e.name for e in genome.values() if e.gate is None and _BOUNDED & {*e.numbers}]
    gates = {name: free(f"{name}_gate") for name in able if name in wanted}
    body: list[str] = []
    for each in sorted(genome.values(), key=lambda it: it.gate in gates):
        factors = [form.format_map(each.marks()) for form in FORMS[each.kind][1:]]
        gate, as_far = gates.get(each.gate or ""), f", counted as far as {each.gate!r} does"
        body.append(f"# {each.says()}{as_far if gate else ''}")
        if each.name in gates:
            body.append(_assigned(gates[each.name], factors, "*"))
            factors = [gates[each.name]]
        weight = ("-" if each.penalty else "") + each.constant("weight")
        product = [weight, *filter(None, [gate]), *factors]
        body.append(_assigned(components[each.name], product, "*"))
    body.append(_assigned("total", [*components.values()], "+"))
    entries = [f'"{name}": {local}' for name, local in components.items()]
    body.append(_listed("return total, {", entries, "}"))
    arguments = dict.fromkeys(name for each in genome.values() for name in each.arguments())
    signature = [f"{name}: Tensor" for name in arguments]
    # a sentence that cannot end the docstring
    plain = " ".join(sentence.replace("\\", " ").replace('"', "'").split()).rstrip(".")
    body.insert(0, textwrap.fill(f'"""Reward for the task: {plain or "not named"}."""', _LINE - 4))
    lines = ["import torch", "from torch import Tensor", ""]
    lines += [
        f"{each.constant(number)} = {float(value)!r}"
        for each in genome.values()
        for number, value in each.numbers.items()
    ]
    head = _listed(f"def {ENTRY_POINT}(", signature, ") -> tuple[Tensor, dict[str, Tensor]]:")
    lines += ["", "", head, textwrap.indent("\n".join(body), "    "), "", "", _TERMS_MARK]
    lines += [_PREFIX + each.model_dump_json(exclude_defaults=True) for each in genome.values()]
    return "\n".join(lines) + "\n"


def _assigned(name: str, parts: list[str], sign: str) -> str:
    """A sum or product with a name, over several lines where it is too long for one."""
    line, rows = f"{name} = {f' {sign} '.join(parts)}", f"\n    {sign} ".join(parts)
    return line if len(line) + 4 <= _LINE else f"{name} = (\n    {rows}\n)"


def _listed(begin: str, entries: list[str], end: str) -> str:
    line, rows = begin + ", ".join(entries) + end, ",\n    ".join(entries)
    return line if len(line) + 4 <= _LINE else f"{begin}\n    {rows},\n{end}"


def recover(source: str, variables: Iterable[str]) -> Genome:
    """The genome of a source that `render` wrote; an empty one of any other source."""
    before, mark, after = source.rpartition(_TERMS_MARK)
    texts = [line for line in after.splitlines() if mark and line.startswith(_PREFIX)]
    constants = number_constants(before)
    genome: Genome = {}
    try:
        for text in texts:
            each = RewardTerm.model_validate_json(text.removeprefix(_PREFIX))
            numbers = {n: constants.get(each.constant(n), v) for n, v in each.numbers.items()}
            genome.setdefault(each.name, each.model_copy(update={"numbers": numbers}))
        same = same_reward(render(genome, "", variables), source)
    except (ValidationError, LookupError):  # no such form, or without a number of it
        return {}
    return genome if genome and same else {}
