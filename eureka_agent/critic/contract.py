"""The critic's third step: `compute_reward`, its arguments and names, by the syntax tree."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator

from eureka_agent import syntax
from eureka_agent.critic import vocabulary
from eureka_agent.critic.allow_list import names_bound, names_used
from eureka_agent.critic.parse import finding
from eureka_agent.critic.vocabulary import executed_nodes
from eureka_agent.errors import did_you_mean
from eureka_agent.records import Finding, TaskDescription
from eureka_agent.reward_names import ALL_BUILTINS
from eureka_agent.rewards import OBSERVATION_FUNCTION, RewardSpecification
from eureka_agent.task import PREVIOUS_PREFIX

FUNCTION_NAME = "compute_reward"


def check_contract(
    tree: ast.Module, description: TaskDescription, trusted: bool = False
) -> list[Finding]:
    """Findings on the contract of a reward, and of an observation beside it. A `trusted` reward may
    read private variables."""
    if not reward_functions(tree):
        return [_missing(tree)]
    findings = []
    for name in (FUNCTION_NAME, OBSERVATION_FUNCTION):
        functions = reward_functions(tree, name)
        findings += [
            finding("C302", f"{name!r} is defined again in line {again.lineno}", again, "keep one")
            for again in functions[1:]
        ]
        of_reward = name == FUNCTION_NAME
        for function in functions[-1:]:
            findings += _check_arguments(function, description, trusted and of_reward, of_reward)
    if not reward_functions(tree, OBSERVATION_FUNCTION):
        findings += _hidden_observation(tree)
    findings += _check_names(tree, description)
    return sorted(findings, key=lambda item: (item.line or 0, item.column or 0))


def contract_fault(reward: RewardSpecification, description: TaskDescription) -> str:
    """First error of a reward that may read all variables of an environment, with its hint; empty
    where it keeps the contract."""
    try:
        findings = check_contract(syntax.parsed(reward.source), description, trusted=True)
    except (SyntaxError, ValueError) as error:
        return f"it is not valid Python: {error}"
    wrong = [each for each in findings if each.severity == "error"]
    return f"{wrong[0].message}; {wrong[0].hint}".rstrip("; ") if wrong else ""


def reward_functions(tree: ast.Module, name: str = FUNCTION_NAME) -> list[ast.FunctionDef]:
    """All `compute_reward` at the top level, or functions of another name. The last one counts."""
    functions = (node for node in tree.body if isinstance(node, ast.FunctionDef))
    return [node for node in functions if node.name == name]


def _missing(tree: ast.Module) -> Finding:
    names = [node.name for node in syntax.nodes(tree) if isinstance(node, ast.FunctionDef)]
    hint = (
        f"define `{FUNCTION_NAME}(<variables by name>)`, which returns `total, {{'name':"
        " component}`"
    )
    if FUNCTION_NAME in names:
        hint = "move it to the top level, out of the function or block around it"
    return finding("C301", f"there is no function {FUNCTION_NAME!r} at the top level", hint=hint)


def _hidden_observation(tree: ast.Module) -> Iterator[Finding]:
    """A function that is meant to be the observation's, and is not taken for it."""
    names = names_bound(tree, imported=False) - {*names_used(tree)}
    for name in difflib.get_close_matches(OBSERVATION_FUNCTION, names, n=1, cutoff=0.9):
        hint = f"write `def {OBSERVATION_FUNCTION}(<variables by name>)` there, or another name"
        message = f"{name!r} is no function {OBSERVATION_FUNCTION!r} at the top level"
        yield finding("C309", message, hint=hint)


def _check_arguments(
    function: ast.FunctionDef, description: TaskDescription, trusted: bool, previous: bool
) -> Iterator[Finding]:
    """`trusted`: private variables may be read; `previous`: values one step before."""
    given = function.args
    for collecting in filter(None, (given.vararg, given.kwarg)):
        message = f"the argument {collecting.arg!r} collects several values"
        yield finding("C305", message, collecting, "name every variable")
    for argument in given.posonlyargs[:1]:
        yield finding(
            "C305", "arguments before `/` cannot be given by name", argument, "leave the `/` out"
        )
    known = {variable.name: variable for variable in description.variables}
    public = [name for name, variable in known.items() if trusted or not variable.private]
    constants = [constant.name for constant in description.constants]
    arguments = [*given.posonlyargs, *given.args, *given.kwonlyargs]
    defaults = _defaults(given)
    if all(argument.arg in constants or argument.arg in defaults for argument in arguments):
        hint = f"name the variables that it reads as arguments: {', '.join(public)}"
        yield finding("C306", f"{function.name} takes no variable as an argument", function, hint)
    read = names_used(function)
    for argument in arguments:
        name, default = argument.arg, defaults.get(argument.arg)
        variable = known.get(name.removeprefix(PREVIOUS_PREFIX))
        if variable is not None and variable.private and not trusted:
            hint = f"build the reward from the public variables: {', '.join(public)}"
            message = f"the variable {name!r} is private: it is part of the fitness"
            yield finding("C304", message, argument, hint)
        elif variable is not None and name.startswith(PREVIOUS_PREFIX) and not previous:
            message = f"{function.name} gets no {name!r}: it sees the current state alone"
            yield finding("C308", message, argument, "read a velocity in its place")
        elif variable is None and name not in constants and default is None:
            prefix = PREVIOUS_PREFIX if name.startswith(PREVIOUS_PREFIX) else ""
            names = [prefix + each for each in public]
            hint = did_you_mean(name, names if prefix else [*names, *constants])
            yield finding("C303", f"unknown variable {name!r}", argument, hint)
        elif (
            variable is None
            and isinstance(default, ast.Constant)
            and not isinstance(default.value, (int, float))
        ):
            message = f"the argument {name!r} is no variable, and its default is no number"
            yield finding("C305", message, argument, "write it into the body")
        elif name not in read:
            yield finding(
                "C307", f"the argument {name!r} is never used", argument, "leave it out", "warning"
            )


def _defaults(arguments: ast.arguments) -> dict[str, ast.expr]:
    positional = reversed([*arguments.posonlyargs, *arguments.args])
    pairs = list(zip(positional, reversed(arguments.defaults), strict=False))
    keywords = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    pairs += [(each, value) for each, value in keywords if value]
    return {argument.arg: value for argument, value in pairs}


def _check_names(tree: ast.Module, description: TaskDescription) -> Iterator[Finding]:
    """A finding for each undefined name at its first use: mostly a missing argument."""
    defined = vocabulary.ALWAYS_DEFINED | names_bound(tree)
    variables = {each.name for each in description.public_variables()}
    variables |= {each.name for each in description.constants}
    seen = set(defined | ALL_BUILTINS)
    names = (node for node in executed_nodes(tree) if isinstance(node, ast.Name))
    loaded = (node for node in names if isinstance(node.ctx, ast.Load))
    for node in sorted(loaded, key=lambda name: (name.lineno, name.col_offset)):
        if node.id in seen:
            continue
        seen.add(node.id)
        if node.id.removeprefix(PREVIOUS_PREFIX) in variables:
            hint = f"it is a variable of the environment: name it as an argument of {FUNCTION_NAME}"
        elif node.id in ("np", "numpy", "jnp"):
            hint = "use the torch function of the same name"
        else:
            hint = did_you_mean(node.id, {*defined, *variables})
            hint = hint if hint.startswith("did you mean") else "define it above its use"
        yield finding("C311", f"{node.id!r} is not defined", node, hint)
