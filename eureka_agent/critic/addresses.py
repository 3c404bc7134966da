"""Values whose text holds an address, which differs from process to process: functions and
iterators. A reward that turns values into text may call and loop over these, and not keep them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterator

from eureka_agent.critic import vocabulary
from eureka_agent.helper_names import HELPER_NAMES

_NUMBER = re.compile(r"%[-+ #0]*[\d*]*(\.[\d*]*)?[diouxXeEfFgGc%]")
"""A directive of `%` that refuses all but numbers."""
_ITERATORS = frozenset(("enumerate", "filter", "map", "reversed", "zip"))
_PLAIN_ATTRIBUTES = frozenset(
    """T mT H data device dtype ndim shape real imag is_cuda requires_grad itemsize bits eps tiny
    resolution smallest_normal""".split()  # noqa: SIM905
)
_PLAIN_ATTRIBUTES_OF_RESULTS = frozenset(("indices", "max", "min", "values"))
_PLAIN_MEMBERS = vocabulary.TYPES | {"pi", "inf", "nan", "e", "Tensor", "Size", "device", "dtype"}


def kept_addresses(
    tree: ast.Module, own: Collection[str], path: Callable[[ast.AST], str]
) -> list[ast.expr]:
    """Functions and iterators that a source keeps and could turn into text. `own`: names that it
    binds itself; `path`: of a module's member, or empty."""
    nodes = list(executed_nodes(tree))
    if not any(map(_makes_text, nodes)):
        return []
    functions = (set(HELPER_NAMES) | _ITERATORS) - set(own)
    for node in nodes:
        match node:
            case (
                ast.FunctionDef(name=name)
                | ast.Assign(targets=[ast.Name(id=name)], value=ast.Lambda())
            ):
                functions.add(name)
    used = {id(part) for node in nodes for part in _used(node, own, path)}

    def has_address(node: ast.AST) -> bool:
        member = path(node)
        match node:
            case _ if member and member not in vocabulary.MODULES:
                module, _, name = member.rpartition(".")
                if name == "NamedTuple":
                    return True
                return module not in ("math", "typing") and name not in _PLAIN_MEMBERS
            case ast.Name(id=name, ctx=ast.Load()):
                return name in functions
            case ast.Attribute(attr=name, value=value) if not member:
                of_result = isinstance(value, ast.Call) and name in _PLAIN_ATTRIBUTES_OF_RESULTS
                return name not in _PLAIN_ATTRIBUTES and not of_result
            case ast.Call(func=called):
                return _is_iterator(node, own) or path(called) == "torch.no_grad"
        return isinstance(node, (ast.Lambda, ast.GeneratorExp))

    return [
        node
        for node in nodes
        if isinstance(node, ast.expr) and id(node) not in used and has_address(node)
    ]


def executed_nodes(tree: ast.Module) -> Iterator[ast.AST]:
    """All nodes without docstrings, and without annotations, which the trainer never evaluates."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue
        yield node
        annotations = {id(getattr(node, name, None)) for name in ("annotation", "returns")}
        waiting.extend(
            child for child in ast.iter_child_nodes(node) if id(child) not in annotations
        )


def _makes_text(node: ast.AST) -> bool:
    """True for what may turn any value into text: no literal, and no format for numbers alone."""
    match node:
        case ast.FormattedValue(value=ast.Constant()):
            return False
        case ast.FormattedValue(conversion=-1, format_spec=ast.JoinedStr(values=[ast.Constant()])):
            return False
        case ast.FormattedValue() | ast.Name(id="str"):
            return True
        case ast.Constant(value=str() | bytes() as text):
            return "%" in _NUMBER.sub("", text if isinstance(text, str) else text.decode("latin1"))
    return False


def _is_iterator(node: ast.AST, own: Collection[str]) -> bool:
    match node:
        case ast.Call(func=ast.Name(id=name)):
            return name in _ITERATORS and name not in own
    return isinstance(node, ast.GeneratorExp)


def _used(node: ast.AST, own: Collection[str], path: Callable[[ast.AST], str]) -> Iterator[ast.AST]:
    """Parts of a node that it calls, loops over or hands to a function that does."""
    match node:
        case ast.Call(func=called, args=arguments, keywords=keywords):
            yield called
            name = called.id if isinstance(called, ast.Name) and called.id not in own else ""
            if name in ("map", "filter"):
                yield from (each for each in arguments[:1] if not _is_maker(each))
            if name in ("max", "min", "sorted"):
                yield from (each.value for each in keywords if each.arg == "key")
            if (name and name != "str" and name in vocabulary.BUILTINS) or path(called):
                yield from (each for each in arguments if _is_iterator(each, own))
        case ast.For(iter=looped) | ast.comprehension(iter=looped) | ast.Starred(value=looped):
            yield looped
        case ast.Assign(targets=[ast.Name()], value=ast.Lambda() as value):
            yield value
        case ast.FunctionDef(decorator_list=decorators):
            yield from decorators
        case ast.withitem(context_expr=value) | ast.Attribute(value=value):
            yield value


def _is_maker(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id in _ITERATORS
