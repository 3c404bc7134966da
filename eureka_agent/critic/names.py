"""Names that a reward uses and nothing defines: mostly variables that were left out of the arguments."""

from __future__ import annotations

import ast

from eureka_agent.critic import vocabulary
from eureka_agent.critic.findings import finding
from eureka_agent.errors import did_you_mean
from eureka_agent.records import Finding, TaskDescription
from eureka_agent.task import PREVIOUS_PREFIX

_NUMPY_NAMES = ("np", "numpy", "jnp")


def check_names(tree: ast.Module, description: TaskDescription) -> list[Finding]:
    """One finding for each name that is not defined, at its first use."""
    defined = names_defined(tree)
    variables = {variable.name for variable in description.public_variables()}
    findings: dict[str, Finding] = {}
    for node in _executed_names(tree):
        if node.id in defined or node.id in vocabulary.ALL_BUILTINS or node.id in findings:
            continue
        if node.id.removeprefix(PREVIOUS_PREFIX) in variables:
            hint = "it is a variable of the environment: name it as an argument of compute_reward"
        elif node.id in _NUMPY_NAMES:
            hint = "use the torch function of the same name"
        else:
            hint = did_you_mean(node.id, {*defined, *variables})
            if not hint.startswith("did you mean"):
                hint = "define it above its use"
        findings[node.id] = finding("C311", f"{node.id!r} is not defined", node, hint)
    return list(findings.values())


def names_defined(tree: ast.Module) -> set[str]:
    """All names that the source binds anywhere, and those that are there without an import."""
    names = set(vocabulary.ALWAYS_DEFINED)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.alias):
            names.add((node.asname or node.name).split(".")[0])
        elif isinstance(node, (ast.MatchAs, ast.MatchStar, ast.ExceptHandler)) and node.name is not None:
            names.add(node.name)
    return names


def _executed_names(tree: ast.Module) -> list[ast.Name]:
    """Names that are read, in the order of the source, without those in annotations: the trainer never evaluates them."""
    found: list[ast.Name] = []
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            found.append(node)
        annotations = {id(getattr(node, name, None)) for name in ("annotation", "returns")}
        waiting.extend(child for child in ast.iter_child_nodes(node) if id(child) not in annotations)
    return sorted(found, key=lambda node: (node.lineno, node.col_offset))
