"""Whether a float would do in place of a named whole number: only where each of its uses is plain
arithmetic on tensors. In doubt it would not."""

from __future__ import annotations

import ast

from eureka_agent.designer.tuning.functions import (
    NUMBER_KEYWORDS,
    OF_NUMBERS,
    OF_TENSORS,
    called_name,
    is_method,
)

_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div)
_ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_COUNTS = frozenset({"len", "range", "int", "enumerate"})
_SHAPES = frozenset({"shape", "size", "ndim", "dim", "numel"})


def a_float_would_do(tree: ast.Module, name: str) -> bool:
    """Whether every use of `name`, whatever is meant by it there, takes any number."""
    above = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    uses = [each for each in ast.walk(tree) if isinstance(each, ast.Name) and each.id == name]
    return all(_takes_any_number(use, above) for use in uses if isinstance(use.ctx, ast.Load))


def _takes_any_number(use: ast.Name, above: dict[ast.AST, ast.AST]) -> bool:
    """Follows the value of a use up to its statement."""
    node: ast.AST = use
    # by now the value is more than the number alone: made with something that no whole number is
    mixed = False
    while True:
        parent = above[node]
        match parent:
            case ast.UnaryOp(op=ast.UAdd() | ast.USub()):
                pass
            case ast.BinOp(left=left, op=operation, right=right) if isinstance(
                operation, _ARITHMETIC
            ):
                other = right if node is left else left
                mixed = (
                    mixed or isinstance(operation, ast.Div) or _is_more_than_a_count(other, use.id)
                )
            case ast.BinOp(left=left, op=ast.Pow()) if node is left:
                pass
            case ast.Compare(ops=operations) if all(
                isinstance(each, _ORDER) for each in operations
            ):
                return True
            case ast.Call(args=arguments) if node in arguments:
                if called_name(parent) in OF_NUMBERS:
                    mixed = True
                elif (
                    called_name(parent) not in OF_TENSORS
                    or not mixed
                    or node is not arguments[0]
                    or is_method(parent)
                ):
                    # the first argument of a tensor's method is a dimension as often as not
                    return False
            case ast.keyword(arg=argument) if argument in NUMBER_KEYWORDS:
                parent = above[parent]
                if not isinstance(parent, ast.Call) or called_name(parent) not in OF_NUMBERS:
                    return False
                mixed = True
            case ast.Attribute(attr=method) if mixed and method in OF_TENSORS:
                parent = above[parent]
                if not isinstance(parent, ast.Call):
                    return False
            case ast.Subscript(value=value) if mixed and node is value:
                pass
            case ast.IfExp(test=test) if node is not test:
                pass
            case ast.Tuple() | ast.List() | ast.Dict() if mixed:
                pass
            case ast.Assign() | ast.AnnAssign() | ast.Return():
                return mixed
            case ast.AugAssign(op=operation):
                return mixed and isinstance(operation, _ARITHMETIC)
            case _:
                return False
        node = parent


def _is_more_than_a_count(node: ast.expr, name: str) -> bool:
    """Whether a tensor or a float may be in it, and no length, shape or counter."""
    parts = list(ast.walk(node))
    if isinstance(node, (ast.List, ast.Tuple, ast.ListComp)):
        return False  # repeated, not multiplied
    if any(isinstance(each, ast.Constant) and type(each.value) is float for each in parts):
        return True
    names = {each.id for each in parts if isinstance(each, ast.Name)}
    attributes = {each.attr for each in parts if isinstance(each, ast.Attribute)}
    return bool(names - {name}) and not (names & _COUNTS or attributes & _SHAPES)
