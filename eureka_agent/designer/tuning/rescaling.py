"""Whether a constant only multiplies a reward's total: a change of it trains to the same policy,
and the critic rejects it (N502).

The total is followed through the source as a power of the constant: `W * x` has power 1, `x` power
0, `W * x / W` power 0 again, and `W * x + y` none. What is not understood has none, so in doubt a
constant counts.
"""

from __future__ import annotations

import ast

from eureka_agent.designer.source_tools import ENTRY_POINT, parsed
from eureka_agent.designer.tuning.functions import (
    KEEP_A_FACTOR,
    MODULES,
    POWERS_OF_A_FACTOR,
    called_name,
    is_method,
)

Power = float | None
"""Of the constant in a value; None where the value is no power of it times what does not depend on
it."""


def only_rescales(source: str, name: str) -> bool:
    """Whether `compute_reward`'s total is a power of the constant `name` times what does not depend
    on it. With power 0 it does not depend on it at all."""
    tree = parsed(source)
    entries = [
        each
        for each in (tree.body if tree is not None else ())
        if isinstance(each, ast.FunctionDef) and each.name == ENTRY_POINT
    ]
    if tree is None or not entries:
        return False
    entry = entries[-1]
    top = _Reading(name, {name: 1.0})
    statements = [each for each in tree.body if each not in entries and _target(each) != name]
    for _ in statements:  # a function may stand above what it reads, so once is not always enough
        before = dict(top.powers)
        for statement in statements:
            top.read(statement)
        if top.powers == before:
            break
    arguments = {each.arg for each in ast.walk(entry.args) if isinstance(each, ast.arg)}
    body = _Reading(
        name, {known: power for known, power in top.powers.items() if known not in arguments}
    )
    for statement in entry.body:
        body.read(statement)
    return None not in body.totals and len(set(body.totals)) == 1


class _Reading:
    """What is known of every name so far. A name that is not in `powers` does not depend on the
    constant."""

    def __init__(self, constant: str, powers: dict[str, Power]) -> None:
        self.powers = powers
        self._fixed = {constant, *MODULES}
        self._made_of: dict[str, frozenset[str]] = {}
        """By name the others that may be the same tensor."""
        self.totals: list[Power] = []
        """Of what is returned as the total, a value for every `return`."""

    def read(self, statement: ast.stmt) -> None:
        """Take a statement in."""
        if any(isinstance(each, ast.NamedExpr) for each in ast.walk(statement)):
            self._read_as_a_whole(statement)
            return
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self.powers[name] = self.power(value)
                self._made_of[name] = _may_share_memory(value)
            case ast.AnnAssign(target=ast.Name(id=name), value=value):
                self.powers[name] = self.power(value)
            case ast.AugAssign(target=ast.Name(id=name), op=operation, value=value):
                self.powers[name] = self.power(
                    ast.BinOp(ast.Name(name, ast.Load()), operation, value)
                )
                if self.mentions(value):  # in place, where it is a tensor
                    shared = {
                        each
                        for each, parts in self._made_of.items()
                        if name in parts and each != name
                    }
                    shared |= self._made_of.get(name, frozenset())
                    self.powers.update(dict.fromkeys(shared - self._fixed, None))
            case ast.Assign(
                targets=[ast.Subscript(value=ast.Name(id=name), slice=place)], value=value
            ):
                powers = {self.powers.get(name, 0.0), self.power(value)}
                self.powers[name] = (
                    powers.pop() if len(powers) == 1 and not self.mentions(place) else None
                )
            case ast.FunctionDef(name=name):  # only its calls do something
                self.powers[name] = None if self.mentions(statement) else 0.0
            case ast.Return(value=ast.Tuple(elts=[total, _])):
                self.totals.append(self.power(total))
            case ast.Return():
                self.totals.append(None)
            case _:
                self._read_as_a_whole(statement)

    def _read_as_a_whole(self, statement: ast.stmt) -> None:
        """A block that is not followed: if anything in it depends on the constant, all that it
        names may from here on."""
        depends = self.mentions(statement)
        for node in ast.walk(statement):
            if isinstance(node, ast.FunctionDef):
                self.powers[node.name] = None if depends else 0.0
            elif isinstance(node, ast.Name) and depends and node.id not in self._fixed:
                self.powers[node.id] = None
            elif isinstance(node, ast.Return):
                self.totals.append(None if depends else 0.0)

    def power(self, node: ast.expr | None) -> Power:
        """The constant's power in an expression."""
        match node:
            case ast.Name(id=name):
                return self.powers.get(name, 0.0)
            case ast.UnaryOp(op=ast.UAdd() | ast.USub(), operand=operand):
                return self.power(operand)
            case ast.BinOp(left=left, op=operation, right=right):
                return self._of_operation(left, operation, right)
            case ast.Call():
                return self._of_call(node)
            case ast.Subscript(value=value, slice=place) if not self.mentions(place):
                return self.power(value)
            case ast.Dict(values=[_, *_] as parts) | ast.List(elts=[_, *_] as parts):
                powers = {self.power(part) for part in parts}
                return powers.pop() if len(powers) == 1 else None
            case _:
                return None if node is not None and self.mentions(node) else 0.0

    def _of_operation(self, left: ast.expr, operation: ast.operator, right: ast.expr) -> Power:
        first, second = self.power(left), self.power(right)
        if first is None or second is None:
            return None
        match operation:
            case ast.Mult():
                return first + second
            case ast.Div():
                return first - second
            case ast.Add() | ast.Sub() if first == second:
                return first
            case ast.Pow() if isinstance(right, ast.Constant) and isinstance(
                right.value, (int, float)
            ):
                return first * right.value
            case _:
                return 0.0 if first == second == 0.0 else None

    def _of_call(self, call: ast.Call) -> Power:
        if not self.mentions(call):
            return 0.0
        name = called_name(call)
        arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
        if isinstance(call.func, ast.Attribute) and is_method(call):
            arguments.insert(0, call.func.value)
        elif isinstance(call.func, ast.Name) and (len(arguments) != 1 or name in self.powers):
            return None  # a function of the source's own, or a `sum` that starts from something
        power = self.power(arguments[0])
        if power is None or any(self.mentions(each) for each in arguments[1:]):
            return None
        if name in POWERS_OF_A_FACTOR:
            return power * POWERS_OF_A_FACTOR[name]
        return power if name in KEEP_A_FACTOR else None

    def mentions(self, node: ast.AST) -> bool:
        """Whether a part of it depends on the constant."""
        return any(
            isinstance(each, ast.Name) and self.powers.get(each.id, 0.0) != 0.0
            for each in ast.walk(node)
        )


def _may_share_memory(node: ast.expr) -> frozenset[str]:
    """Names whose tensors a value may be, or be a view of: all but those in arithmetic, which makes
    a new one."""
    if isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Compare)):
        return frozenset()
    return frozenset(each.id for each in ast.walk(node) if isinstance(each, ast.Name)) - MODULES


def _target(statement: ast.stmt) -> str:
    """The one name that is assigned; empty for other statements."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name
    return ""
