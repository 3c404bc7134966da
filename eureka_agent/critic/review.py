"""The critic's last step: a language model reads the reward against the task. Only a clear
contradiction blocks."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from eureka_agent.critic.parse import parse
from eureka_agent.critic.review_reply import Contradiction, Review, read_review
from eureka_agent.llm.gateway import ConfiguredModel
from eureka_agent.llm.interface import ChatMessage, FinishReason, Role
from eureka_agent.llm.prompts import render, system_message
from eureka_agent.llm.spoken import why_no_answer
from eureka_agent.records import Finding, TaskDescription
from eureka_agent.rewards import RewardSpecification
from eureka_agent.settings import SearchSettings
from eureka_agent.text import one_line

EXPLOIT = "R702"
"""Code of the finding for a way to cheat a reward."""
MOST_EXPLOITS = 3
LONGEST_SENTENCE = 300
_SHORTEST_CODE = 4
"""Least characters of code, without spaces, that count as a quotation."""
_NO_TERMS = {
    "compute_reward",
    "torch",
    "math",
    "Tensor",
    "dict",
    "tuple",
    "float",
    "int",
    "str",
    "dim",
}
"""Names that are in every reward and so point at nothing."""


class Reviewer:
    """Asks a model if a reward matches the task and how a policy could cheat it, with
    `prompts/review.md`."""

    def __init__(
        self,
        model: ConfiguredModel,
        description: TaskDescription,
        sentence: str,
        settings: SearchSettings | None = None,
    ) -> None:
        """`sentence` is the user's task in words; `settings` are the run's, or None for the task's
        own."""
        self._model = model
        self._task_words = f"{sentence}\n{description.fitness_doc}"
        self._system = system_message("review.md", description, sentence, settings)

    async def review(
        self, reward: RewardSpecification, attempt: str, doubts: Sequence[Finding] = ()
    ) -> tuple[Finding, ...]:
        """R701 for a contradiction, R702 for each way to cheat, R703 for an unreadable review.
        `doubts` are the warnings that call for it.

        Raises BudgetSpentError or LanguageModelError if there is no reply.
        """
        order = ChatMessage("user", render("review_order.md", source=reward.source, doubts=doubts))
        message = await self._model.ask(Role.REVIEWER, self._system, order, attempt=attempt)
        whole = message.finish_reason not in (FinishReason.CUT_OFF, FinishReason.REFUSED)
        review = read_review(message.reply) if whole else None
        if review is None:
            reason, _ = why_no_answer(message, "JSON in the form that was asked for")
            hint = "it blocks nothing; the reply is kept with the run's messages"
            return (
                Finding(
                    code="R703",
                    severity="warning",
                    message=f"the review could not be read: {reason}",
                    hint=hint,
                ),
            )
        return findings_of(review, reward.source, self._task_words)


def findings_of(review: Review, source: str, task_words: str) -> tuple[Finding, ...]:
    """The findings of a review. A contradiction blocks only if its term is in the source and its
    words are in the task."""
    findings = []
    if review.contradiction is not None:
        findings.append(_contradiction(review.contradiction, source, task_words))
    for exploit in review.exploits[:MOST_EXPLOITS]:
        sentence = one_line(exploit, LONGEST_SENTENCE)
        findings.append(
            Finding(code=EXPLOIT, severity="warning", message=f"a policy may cheat: {sentence}")
        )
    return tuple(findings)


def _contradiction(found: Contradiction, source: str, task_words: str) -> Finding:
    term, task = one_line(found.term, 100), one_line(found.task, 100)
    why = one_line(found.why, LONGEST_SENTENCE)
    line = line_of(found.term, source)
    if line is None:
        doubt = "it names no term of the source"
        if term:
            doubt = f"the term that it names is not in the source: {term!r}"
    elif not said_in(found.task, task_words):
        doubt = "it names no words of the task"
        if task:
            doubt = f"the words that it names are not in the task: {task!r}"
    else:
        return Finding(
            code="R701",
            severity="error",
            message=f"{term!r} contradicts the task's {task!r}: {why}",
            line=line,
            hint=(
                "let the reward pay for what the task says: check sign, variable, axis, frame and"
                " target of this term"
            ),
        )
    return Finding(
        code="R701",
        severity="warning",
        message=f"it may contradict the task: {why or term}",
        line=line,
        hint=f"the review does not prove it, so it does not block; {doubt}",
    )


def line_of(term: str, source: str) -> int | None:
    """The first line of a quoted name, key or piece of code; None if the source's code does not
    have it."""
    tree, _ = parse(source)
    if tree is None:
        return None
    quotation = term.strip().strip("`'\" \t")
    if re.fullmatch(r"\w+", quotation):
        lines = [line for name, line in _names(tree) if name == quotation]
        return min(lines, default=None) if quotation not in _NO_TERMS else None
    return _line_of_code(quotation, source, tree)


def _names(tree: ast.Module) -> list[tuple[str, int]]:
    """Names of arguments, variables, helpers and components, with their lines."""
    found = []
    for node in ast.walk(tree):
        match node:
            case ast.Name():
                found.append((node.id, node.lineno))
            case ast.arg():
                found.append((node.arg, node.lineno))
            case ast.FunctionDef():
                found.append((node.name, node.lineno))
            case ast.Dict():
                keys = (
                    key
                    for key in node.keys
                    if isinstance(key, ast.Constant) and isinstance(key.value, str)
                )
                found += [(str(key.value), key.lineno) for key in keys]
            case ast.Subscript(slice=ast.Constant(value=str() as key)):
                found.append((key, node.lineno))
    return found


def _line_of_code(quotation: str, source: str, tree: ast.Module) -> int | None:
    """The line of quoted code, apart from spaces, without comments and docstrings; or of a
    component's name of several words."""
    for name, line in _names(tree):
        if name == quotation:
            return line
    wanted = "".join(quotation.partition("#")[0].split())
    if len(wanted) < _SHORTEST_CODE or not re.search(r"[^\W\d]", wanted):
        return None
    lines = source.split("\n")
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and not _is_no_term(node):
            text = "\n".join(lines[node.lineno - 1 : node.end_lineno])
            if wanted in "".join(re.sub(r"#[^\n]*", "", text).split()):
                return node.lineno
    return None


def _is_no_term(node: ast.stmt) -> bool:
    """True for imports, docstrings and compound statements."""
    docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return docstring or isinstance(node, (ast.Import, ast.ImportFrom)) or hasattr(node, "body")


def said_in(words: str, task_words: str) -> bool:
    """True if the quoted words, or all parts around an ellipsis, are in the task, in any case and
    punctuation."""
    parts = [_plain(part) for part in re.split(r"\.{3}|…", words)]
    task = f" {_plain(task_words)} "
    # languages without spaces have no whole words to compare
    return any(parts) and all(
        (f" {part} " if part.isascii() else part) in task for part in parts if part
    )


def _plain(text: str) -> str:
    return " ".join(re.sub(r"[^\w\s]|_", " ", text.casefold()).split())
