"""Expressions in the reward language, checked as rewards are: what is asked of stored episodes."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from eureka_agent import syntax
from eureka_agent.analysis.questions import QuestionError
from eureka_agent.critic.allow_list import check_allow_list, names_used
from eureka_agent.critic.contract import FUNCTION_NAME, check_contract
from eureka_agent.critic.parse import parse
from eureka_agent.errors import did_you_mean
from eureka_agent.records import TaskDescription
from eureka_agent.reward_names import ALL_BUILTINS
from eureka_agent.rewards import OBSERVATION_FUNCTION, CodeReward
from eureka_agent.task import PREVIOUS_PREFIX

CONDITION = "where"
_GIVEN = {"torch", "math"}


def question(
    expression: str,
    where: str,
    description: TaskDescription,
    designed: str = "",
    observes: Sequence[str] = (),
) -> CodeReward:
    """The question as a reward: its total is the expression, its term `where` the condition, if
    there is one. `designed`: an accepted source whose observation, of the variables that it
    `observes`, may be named too. Raises QuestionError for what a reward may not do either."""
    parts = {"expression": expression, CONDITION: where}
    used: set[str] = set()
    for what, text in parts.items():
        used |= _names(text, what) if text.strip() or what == "expression" else set()
    public = [each.name for each in description.public_variables()]
    variables = {*public, *(PREVIOUS_PREFIX + each for each in public)}
    before = seen = ""
    if observes and OBSERVATION_FUNCTION in used:
        names = rf"\b({FUNCTION_NAME}|{OBSERVATION_FUNCTION})\b"
        before = re.sub(names, r"\1_", designed).rstrip() + "\n\n\n"
        seen = f"    {OBSERVATION_FUNCTION} = {OBSERVATION_FUNCTION}_({', '.join(observes)})\n"
        used = used - {OBSERVATION_FUNCTION} | {*observes}
    constants = {each.name for each in description.constants}
    unknown = sorted(used - variables - constants - _GIVEN - ALL_BUILTINS)
    if unknown:
        hint = did_you_mean(unknown[0], [*public, *constants])
        raise QuestionError(f"there is no variable {unknown[0]!r}", hint)
    if not used & variables:
        what = f"the expression {expression!r} names no variable"
        raise QuestionError(what, did_you_mean(expression, public))
    terms = f'{{"{CONDITION}": ({where.strip()}).float()}}' if where.strip() else "{}"
    arguments = ", ".join(sorted(used & (variables | constants)))
    source = (
        f"{before}def {FUNCTION_NAME}({arguments}):\n{seen}"
        f"    total = ({expression.strip()}).float()\n    return total, {terms}\n"
    )
    tree, findings = parse(source)
    if tree is not None:
        findings = [*findings, *check_allow_list(tree)]
        findings = findings or check_contract(tree, description)
    for each in findings:
        if each.severity == "error":
            is_condition = each.line == source.count("\n")
            what = f"condition {where!r}" if is_condition else f"expression {expression!r}"
            raise QuestionError(f"the {what}: {each.message}", each.hint)
    return CodeReward(source=source, author="given")


def _names(text: str, what: str) -> set[str]:
    """Names in an expression. Raises QuestionError for another text."""
    try:
        (statement,) = syntax.parsed(f"({text.strip()})").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        statement = None
    if "\n" in text.strip() or not isinstance(statement, ast.Expr):
        reason = f"the {what} {text!r} is not one expression of Python"
        raise QuestionError(reason, 'such as "torch.linalg.vector_norm(velocity, dim=-1)"')
    bound = names_used(statement, ast.Store)
    return {each for each in names_used(statement) if each not in bound}
