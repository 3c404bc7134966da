"""The critic's third step: `compute_reward`, its arguments and what it returns, from the syntax tree alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from eureka_agent.critic.findings import finding
from eureka_agent.critic.names import check_names
from eureka_agent.errors import did_you_mean
from eureka_agent.records import Finding, TaskDescription, VariableSpec
from eureka_agent.task import PREVIOUS_PREFIX

FUNCTION_NAME = "compute_reward"


def check_contract(tree: ast.Module, description: TaskDescription, trusted: bool = False) -> list[Finding]:
    """Findings on the reward contract. `trusted`: private variables may be read."""
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == FUNCTION_NAME]
    if not functions:
        return [_missing(tree)]
    findings = [
        finding(
            "C302",
            f"{FUNCTION_NAME!r} is defined again; the first definition is in line {functions[0].lineno}",
            function,
            "keep one of them",
        )
        for function in functions[1:]
    ]
    function = functions[-1]
    findings += _check_arguments(function, description.variables, trusted)
    findings += _check_returns(function)
    findings += _check_writes(function)
    findings += check_names(tree, description)
    return sorted(findings, key=lambda item: (item.line or 0, item.column or 0))


def _missing(tree: ast.Module) -> Finding:
    names = [node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    hint = did_you_mean(FUNCTION_NAME, names)
    if FUNCTION_NAME in names:
        hint = "move it to the top level, out of the function or block around it"
    elif not hint.startswith("did you mean"):
        hint = f"define `{FUNCTION_NAME}(<variables by name>)`"
    else:
        hint = f"rename {hint.removeprefix('did you mean ').removesuffix('?')} to {FUNCTION_NAME!r}"
    return finding("C301", f"there is no function {FUNCTION_NAME!r} at the top level", hint=hint)


def _check_arguments(
    function: ast.FunctionDef, variables: tuple[VariableSpec, ...], trusted: bool
) -> Iterator[Finding]:
    arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    if not arguments:
        yield finding(
            "C306", f"{FUNCTION_NAME} takes no argument", function, "name the variables that it reads as arguments"
        )
    for collecting, stars in ((function.args.vararg, "*"), (function.args.kwarg, "**")):
        if collecting is not None:
            yield finding(
                "C305",
                f"the argument {stars + collecting.arg!r} collects several values",
                collecting,
                "name every variable",
            )
    if function.args.posonlyargs:
        yield finding(
            "C305", "arguments before `/` cannot be given by name", function.args.posonlyargs[0], "leave the `/` out"
        )
    defaults = [*function.args.defaults, *(item for item in function.args.kw_defaults if item is not None)]
    for default in defaults:
        hint = "write constants at the top level or in the body: every argument is a variable"
        yield finding("C305", f"an argument has the default value {ast.unparse(default)}", default, hint)
    known = {variable.name: variable for variable in variables}
    names_read = {
        node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }
    for argument in arguments:
        variable = known.get(argument.arg.removeprefix(PREVIOUS_PREFIX))
        if variable is None:
            yield finding("C303", f"unknown variable {argument.arg!r}", argument, _suggestion(argument.arg, variables))
        elif variable.private and not trusted:
            hint = "build the reward from the public variables: " + ", ".join(_public_names(variables))
            yield finding(
                "C304", f"the variable {argument.arg!r} is private: it is part of the fitness", argument, hint
            )
        elif argument.arg not in names_read:
            yield finding("C307", f"the argument {argument.arg!r} is never used", argument, "leave it out", "warning")


def _suggestion(name: str, variables: tuple[VariableSpec, ...]) -> str:
    public = _public_names(variables)
    if name.startswith(PREVIOUS_PREFIX):
        return did_you_mean(name, [PREVIOUS_PREFIX + item for item in public])
    return did_you_mean(name, public)


def _public_names(variables: tuple[VariableSpec, ...]) -> list[str]:
    return [variable.name for variable in variables if not variable.private]


def _check_returns(function: ast.FunctionDef) -> Iterator[Finding]:
    returns = [node for node in _own_nodes(function) if isinstance(node, ast.Return)]
    if not any(node.value is not None for node in returns):
        yield finding(
            "C308", f"{FUNCTION_NAME} returns nothing", function, "end with `return total, {'name': component}`"
        )
    dictionaries = _names_bound_to_displays(function)
    for node in returns:
        value = node.value
        if value is None:
            if len(returns) > 1:
                yield finding("C308", "a `return` without a value", node, "return (total, components) on every way")
        elif isinstance(value, ast.Tuple):
            yield from _check_pair(value, node, dictionaries)
        elif isinstance(value, (ast.Constant, ast.BinOp, ast.UnaryOp, ast.Dict, ast.List, ast.Compare)):
            yield finding(
                "C309",
                f"returns {_kind(value)}, expected (total, components)",
                node,
                "end with `return total, {'name': component}`",
            )


def _check_pair(value: ast.Tuple, node: ast.Return, dictionaries: dict[str, ast.expr]) -> Iterator[Finding]:
    if len(value.elts) != 2:
        yield finding(
            "C309",
            f"returns {len(value.elts)} values, expected two: total and components",
            node,
            "put every term into the dictionary",
        )
        return
    total, components = value.elts
    if isinstance(total, (ast.Dict, ast.Constant)):
        yield finding(
            "C309",
            f"the total is {_kind(total)}, expected a tensor of shape (batch,)",
            total,
            "return (total, components) in this order",
        )
    if isinstance(components, ast.Name):
        components = dictionaries.get(components.id, components)
    if isinstance(components, (ast.Constant, ast.List, ast.Tuple, ast.Set, ast.BinOp, ast.ListComp)):
        yield finding(
            "C309",
            f"the components are {_kind(components)}, expected a dict of tensors by name",
            value.elts[1],
            "return `{'name': component}`",
        )


def _check_writes(function: ast.FunctionDef) -> Iterator[Finding]:
    """In-place operations on an argument under its own name. The trainer's values are safe: rewards get copies."""
    arguments = {argument.arg for argument in (*function.args.args, *function.args.kwonlyargs)}
    hint = "make a new tensor: `x = x * 2` in place of `x *= 2`, `torch.where` in place of writing to rows"
    for node in _own_nodes(function):
        target: ast.expr | None = None
        if isinstance(node, ast.AugAssign):
            target = node.target
        elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            target = node
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _is_in_place(node.func.attr):
            target = node.func.value
        while isinstance(target, ast.Subscript):
            target = target.value
        if isinstance(target, ast.Name) and target.id in arguments:
            yield finding("C310", f"the argument {target.id!r} is written to in place", node, hint, "warning")
            arguments.discard(target.id)


def _is_in_place(method: str) -> bool:
    return method.endswith("_") and not method.endswith("__")


def _own_nodes(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """Nodes of a function's body, without those of functions within it."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop(0)
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            waiting.extend(ast.iter_child_nodes(node))


def _names_bound_to_displays(function: ast.FunctionDef) -> dict[str, ast.expr]:
    """Names that are assigned exactly once, with what they are assigned."""
    values: dict[str, list[ast.expr]] = {}
    for node in _own_nodes(function):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            values.setdefault(node.targets[0].id, []).append(node.value)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            values.setdefault(node.target.id, []).append(node.value)
    return {name: assigned[0] for name, assigned in values.items() if len(assigned) == 1}


def _kind(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return repr(node.value)
    names = {ast.Dict: "a dict", ast.List: "a list", ast.ListComp: "a list", ast.Tuple: "a tuple", ast.Set: "a set"}
    return names.get(type(node), "one value")
