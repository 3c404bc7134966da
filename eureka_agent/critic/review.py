"""The critic's last step: a model reads the reward. Only a clear contradiction blocks."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from eureka_agent import syntax
from eureka_agent.critic.parse import finding, parse
from eureka_agent.llm.gateway import ConfiguredModel
from eureka_agent.llm.interface import ChatMessage, FinishReason, Role
from eureka_agent.llm.prompts import render, system_message
from eureka_agent.llm.spoken import objects, spoken, why_no_answer
from eureka_agent.records import Finding, TaskDescription
from eureka_agent.rewards import RewardSpecification
from eureka_agent.settings import SearchSettings
from eureka_agent.text import one_line, printable

EXPLOIT = "R702"
MOST_EXPLOITS = 3
LONGEST_SENTENCE = 300
_SHORTEST_CODE = 4
"""Least characters of code, without spaces, that count as a quotation."""
_NO_TERMS = (
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
)
"""Names that are in every reward and so point at nothing."""
_NOTHING = re.compile(
    r"[\s.]*(?:-|no(?:ne|ne found|thing| contradiction)?|n/?a|null|false)?[\s.]*", re.I
)


@dataclass(frozen=True)
class Contradiction:
    """A contradiction with the task in a reviewer's words."""

    term: str
    task: str
    why: str


@dataclass(frozen=True)
class Review:
    """A reviewer's findings. All of it is text from a model."""

    contradiction: Contradiction | None
    exploits: tuple[str, ...]


class Reviewer:
    """Asks a model if a reward matches the task and how to cheat it (`prompts/review.md`)."""

    def __init__(
        self,
        model: ConfiguredModel,
        description: TaskDescription,
        sentence: str,
        settings: SearchSettings | None = None,
    ) -> None:
        """`sentence`: the task in the user's words; `settings`: the run's, None for the task's."""
        self._model = model
        self._task_words = f"{sentence}\n{description.fitness_doc}"
        self._system = system_message("review.md", description, sentence, settings)

    async def review(
        self, reward: RewardSpecification, attempt: str, doubts: Sequence[Finding] = ()
    ) -> tuple[Finding, ...]:
        """R701 for a contradiction, which blocks only if its term is in the source and its words
        are in the task; R702 for each way to cheat; R703 for an unreadable review. `doubts` are the
        warnings that call for it. Raises BudgetSpentError or LanguageModelError if there is no
        reply."""
        order = ChatMessage("user", render("review_order.md", source=reward.source, doubts=doubts))
        message = await self._model.ask(Role.REVIEWER, self._system, order, attempt=attempt)
        whole = message.finish_reason not in (FinishReason.CUT_OFF, FinishReason.REFUSED)
        review = read_review(message.reply) if whole else None
        if review is None:
            reason, _ = why_no_answer(message, "JSON in the form that was asked for")
            fault = f"the review could not be read: {reason}"
            hint = "it blocks nothing; the reply is kept with the run's messages"
            return (finding("R703", fault, hint=hint, severity="warning"),)
        found = [
            finding(
                EXPLOIT,
                f"a policy may cheat: {one_line(way, LONGEST_SENTENCE)}",
                severity="warning",
            )
            for way in review.exploits[:MOST_EXPLOITS]
        ]
        if review.contradiction is not None:
            found.insert(0, _blamed(review.contradiction, reward.source, self._task_words))
        return tuple(found)


def read_review(reply: str) -> Review | None:
    """The last object in the reply with the form of a review; None without one."""
    for value in objects(spoken(printable(reply)).text):
        found = _by_key(value)
        if {"term", "why"} <= found.keys():  # the contradiction alone
            found = {"contradiction": value}
        if "contradiction" in found or "exploits" in found:
            exploits = tuple(_sentences(found.get("exploits")))
            return Review(_contradiction(found.get("contradiction")), exploits)
    return None


def _by_key(value: Any) -> dict[str, Any]:
    """An object by its keys in small letters; empty for anything else."""
    pairs = value.items() if isinstance(value, dict) else ()
    return {str(key).strip().lower(): content for key, content in pairs}


def _contradiction(value: Any) -> Contradiction | None:
    match value:
        case [first, *_]:
            return _contradiction(first)
        case str() if not _says_nothing(value):
            return Contradiction("", "", value.strip())
    found = {key: text.strip() for key, text in _by_key(value).items() if isinstance(text, str)}
    term = found.get("term") or found.get("component") or found.get("line") or ""
    parts = term, found.get("task", ""), found.get("why", "")
    return None if all(map(_says_nothing, parts)) else Contradiction(*parts)


def _sentences(value: Any) -> Iterator[str]:
    match value:
        case list() | tuple():
            for item in value:
                if isinstance(item, (str, dict)):
                    yield from _sentences(item)
        case dict():
            texts = (part.strip() for part in value.values() if isinstance(part, str))
            yield from _sentences(": ".join(filter(None, texts)))
        case str() if not _says_nothing(value):
            yield value.strip()


def _says_nothing(text: str) -> bool:
    return _NOTHING.fullmatch(text) is not None


def _blamed(found: Contradiction, source: str, task_words: str) -> Finding:
    term, task = one_line(found.term, 100), one_line(found.task, 100)
    why = one_line(found.why, LONGEST_SENTENCE)
    line = line_of(found.term, source)
    if line is None:
        doubt = f"the term that it names is not in the source: {term!r}"
        doubt = doubt if term else "it names no term of the source"
    elif not said_in(found.task, task_words):
        doubt = f"the words that it names are not in the task: {task!r}"
        doubt = doubt if task else "it names no words of the task"
    else:
        hint = (
            "let the reward pay for what the task says: check sign, variable, axis, frame and"
            " target of this term"
        )
        message = f"{term!r} contradicts the task's {task!r}: {why}"
        return finding("R701", message, hint=hint, line=line)
    message = f"it may contradict the task: {why or term}"
    hint = f"the review does not prove it, so it does not block; {doubt}"
    return finding("R701", message, hint=hint, severity="warning", line=line)


def line_of(term: str, source: str) -> int | None:
    """The first line of a quoted name, key or piece of code, apart from spaces; None if the
    source's code, without comments and docstrings, does not have it."""
    tree, _ = parse(source)
    quotation = term.strip().strip("`'\" \t")
    if tree is None or quotation in _NO_TERMS:
        return None
    named = [line for name, line in _names(tree) if name == quotation]
    if named or re.fullmatch(r"\w+", quotation):
        return min(named, default=None)
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


def _names(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Names of arguments, variables, helpers and components, with their lines."""
    for node in syntax.nodes(tree):
        match node:
            case ast.Name(id=name) | ast.arg(arg=name) | ast.FunctionDef(name=name):
                yield name, node.lineno
            case ast.Dict(keys=keys):
                for key in keys:
                    if isinstance(key, ast.Constant) and isinstance(key.value, str):
                        yield key.value, key.lineno
            case ast.Subscript(slice=ast.Constant(value=str() as component)):
                yield component, node.lineno


def _is_no_term(node: ast.stmt) -> bool:
    """True for imports, docstrings and compound statements."""
    docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return docstring or isinstance(node, (ast.Import, ast.ImportFrom)) or hasattr(node, "body")


def said_in(words: str, task_words: str) -> bool:
    """True if the quoted words, or all parts around an ellipsis, are in the task."""
    parts = [_plain(part) for part in re.split(r"\.{3}|…", words)]
    task = f" {_plain(task_words)} "
    # languages without spaces have no whole words to compare
    return any(parts) and all(
        (f" {part} " if part.isascii() else part) in task for part in parts if part
    )


def _plain(text: str) -> str:
    return " ".join(re.sub(r"[^\w\s]|_", " ", text.casefold()).split())
