"""The writer of a fitness: it asks a language model until the critic accepts one. A reply holds the
function, and a JSON block with the words."""

from __future__ import annotations

import json
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from eureka_agent.critic.parse import finding
from eureka_agent.designer.reply import parse_reply
from eureka_agent.errors import EurekaError
from eureka_agent.llm.gateway import ConfiguredModel
from eureka_agent.llm.interface import ChatMessage, FinishReason, Role
from eureka_agent.llm.prompts import render
from eureka_agent.llm.spoken import ending_of, objects, spoken, why_no_answer
from eureka_agent.records import Finding, Message, TaskDescription, Verdict, WrittenFitness
from eureka_agent.rewards import CodeReward, RewardSpecification
from eureka_agent.task import FitnessReduction
from eureka_agent.text import printable

REVISIONS = 3
LONGEST_DOC, LONGEST_UNIT = 300, 20
_REDUCTIONS: tuple[FitnessReduction, ...] = get_args(FitnessReduction)
_EXPECTED = {
    "doc": f"the episode's fitness in words, a text of at most {LONGEST_DOC} characters",
    "unit": f'a unit such as "s", at most {LONGEST_UNIT} characters, "1" for none',
    "reduction": f"one of {', '.join(_REDUCTIONS)}",
    "success": "a number, or null where no episode counts as solved",
}
"""Keys of the JSON block with what each holds; `success` may be left out."""
_FORM = 'end with one JSON block: {"doc": "…", "unit": "…", "reduction": "sum", "success": null}'


class FitnessNotWrittenError(EurekaError):
    """A failure of a model to write a fitness that the critic accepts."""


@dataclass(frozen=True)
class FitnessWords:
    """Content of the JSON block."""

    doc: str
    unit: str
    reduction: FitnessReduction
    success: float | None


@dataclass(frozen=True)
class FitnessReply:
    """Content of a reply."""

    source: str
    """Empty without a `compute_reward`."""
    reasoning: str
    words: FitnessWords | None
    """None if they cannot be used; `findings` tell why."""
    findings: tuple[Finding, ...]
    """Findings on the parts of the reply."""


class FitnessWriter:
    """Writes a fitness with a model (`prompts/fitness*.md`); the critic judges it like a reward."""

    def __init__(
        self,
        model: ConfiguredModel,
        judge: Callable[[RewardSpecification], Awaitable[Verdict]],
        revisions: int = REVISIONS,
        *,
        sample: int = 0,
    ) -> None:
        """`revisions`: most revisions of a rejected fitness; another `sample`: another reply."""
        self._model = model
        self._judge = judge
        self._revisions = revisions
        self._sample = sample

    async def write(
        self, description: TaskDescription, sentence: str
    ) -> tuple[WrittenFitness, Verdict]:
        """A fitness for the sentence that the critic accepts, with its verdict. The model does not
        see the task's own metric. Raises FitnessNotWrittenError with the last findings, and the
        errors of the gateway."""
        messages = opening(description, sentence)
        findings: Sequence[Finding] = ()
        for _ in range(self._revisions + 1):
            message = await self._model.ask(Role.METRIC, *messages, sample=self._sample)
            reply = parse_fitness_reply(message.reply)
            reward = CodeReward(source=reply.source, author=self._model.name)
            verdict = await self._judge(reward) if reply.source else Verdict()
            findings = (*_notes(message, reply), *reply.findings, *verdict.findings)
            if reply.words is not None and not _errors(findings):
                written = WrittenFitness(
                    sentence=sentence,
                    source=verdict.repaired or reply.source,
                    doc=reply.words.doc,
                    unit=reply.words.unit,
                    reduction=reply.words.reduction,
                    success_fitness=reply.words.success,
                    author=self._model.name,
                    reasoning=printable(reply.reasoning),
                )
                return written, verdict
            # the whole conversation, so that a model does not repeat itself and no request equals
            # an earlier one
            again = render("fitness_revise.md", findings=findings, source=reply.source)
            answer = ChatMessage("assistant", message.reply.strip() or "(no answer)")
            messages = (*messages, answer, ChatMessage("user", again))
        raise FitnessNotWrittenError(
            f"{self._model.name} wrote no fitness for {sentence!r} that the critic accepts, in"
            f" {self._revisions + 1} tries. The last one:"
            + "".join(f"\n  {_line(each)}" for each in _errors(findings)),
            "say in the sentence what can be measured, ask another --model or with another --seed,"
            " or write a task file with a fitness",
        )


def opening(description: TaskDescription, sentence: str) -> tuple[ChatMessage, ...]:
    variables = description.public_variables()
    values = {"sentence": sentence, "description": description, "variables": variables}
    task = render("fitness.md", **values)
    return ChatMessage("system", render("fitness_system.md")), ChatMessage("user", task)


def _notes(message: Message, reply: FitnessReply) -> list[Finding]:
    """A finding if the reply is incomplete because it ended early or holds no answer."""
    if ending_of(message) is FinishReason.STOP or (reply.source and reply.words is not None):
        return []
    return [finding("F706", why_no_answer(message)[0], hint="answer in the form asked for")]


def _errors(findings: Sequence[Finding]) -> list[Finding]:
    return [each for each in findings if each.severity == "error"]


def _line(found: Finding) -> str:
    place = f" line {found.line}" if found.line is not None else ""
    return f"{found.code}{place}: {printable(found.message)}"


# ── replies ───────────────────────────────────────────────────────────────────────────────────────


def parse_fitness_reply(text: str) -> FitnessReply:
    """Find function and words in a reply of any form."""
    values = objects(spoken(printable(text)).text)
    blocks = (each for each in values if isinstance(each, dict) and _EXPECTED.keys() & each.keys())
    block, reply, findings = next(blocks, None), parse_reply(text), list[Finding]()
    if not reply.source:
        said = _one_line(text)
        excerpt = f"; it begins: {said[:200]!r}" if said else ", it is empty"
        fault = f"the reply holds no function `compute_reward`{excerpt}"
        findings.append(finding("F701", fault, hint="write the function"))
    if block is None:
        fault = "the reply holds no JSON block with its words"
        findings.append(finding("F703", fault, hint=_FORM))
        return FitnessReply(reply.source, reply.reasoning, None, tuple(findings))
    words, faults = _words(block)
    return FitnessReply(reply.source, reply.reasoning, words, (*findings, *faults))


def _words(found: Mapping[str, Any]) -> tuple[FitnessWords | None, list[Finding]]:
    values: list[Any] = [found.get(key) for key in _EXPECTED]
    doc, unit, reduction, success = values
    fits = {
        "doc": isinstance(doc, str) and 0 < len(_one_line(doc)) <= LONGEST_DOC,
        "unit": isinstance(unit, str) and len(_one_line(unit)) <= LONGEST_UNIT,
        "reduction": reduction in _REDUCTIONS,
        "success": success is None or _number(success) is not None,
    }
    faults = [
        finding("F704", f"the JSON block has no {key!r}", hint=_FORM)
        for key in ("doc", "unit", "reduction")
        if key not in found
    ]
    for key, expected in _EXPECTED.items():
        if key in found and not fits[key]:
            shown = json.dumps(found[key], default=str)[:80]
            fault = f"{key!r} in the JSON block is {shown}, expected {expected}"
            faults.append(finding("F705", fault, hint=_FORM))
    if faults:
        return None, faults
    return FitnessWords(_one_line(doc), _one_line(unit) or "1", reduction, _number(success)), []


def _number(value: object) -> float | None:
    """A finite number; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:  # an integer of hundreds of digits
        return None


def _one_line(text: object) -> str:
    return " ".join(printable(str(text)).split())
