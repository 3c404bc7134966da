"""The writer of a fitness: it asks a language model until the critic accepts one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from eureka_agent.designer.fitness_reply import FitnessReply, parse_fitness_reply
from eureka_agent.errors import EurekaError
from eureka_agent.llm.gateway import ConfiguredModel
from eureka_agent.llm.interface import ChatMessage, FinishReason, Role
from eureka_agent.llm.prompts import render
from eureka_agent.llm.spoken import ending_of, why_no_answer
from eureka_agent.records import Finding, Message, TaskDescription, Verdict, WrittenFitness
from eureka_agent.rewards import CodeReward, RewardSpecification
from eureka_agent.text import printable

REVISIONS = 3


class FitnessNotWrittenError(EurekaError):
    """A failure of a model to write a fitness that the critic accepts."""


class FitnessWriter:
    """Writes a fitness with a language model, from `prompts/fitness*.md`, and has the critic judge
    it like a reward."""

    def __init__(
        self,
        model: ConfiguredModel,
        judge: Callable[[RewardSpecification], Awaitable[Verdict]],
        revisions: int = REVISIONS,
        *,
        sample: int = 0,
    ) -> None:
        """`judge` is the critic; `revisions` bounds the revisions of a rejected fitness; another
        `sample` gives another reply."""
        self._model = model
        self._judge = judge
        self._revisions = revisions
        self._sample = sample

    async def write(
        self, description: TaskDescription, sentence: str
    ) -> tuple[WrittenFitness, Verdict]:
        """A fitness for the sentence that the critic accepts, with its verdict. The model does not
        see the task's own metric.

        Raises FitnessNotWrittenError with the last findings, and the errors of the gateway.
        """
        messages = opening(description, sentence)
        findings: Sequence[Finding] = ()
        for _ in range(self._revisions + 1):
            message = await self._model.ask(Role.METRIC, *messages, sample=self._sample)
            reply = parse_fitness_reply(message.reply)
            reward = CodeReward(source=reply.source, author=self._model.name)
            verdict = await self._judge(reward) if reply.source else Verdict()
            findings = (*_notes(message, reply), *reply.findings, *verdict.findings)
            if reply.words is not None and not _errors(findings):
                return self._written(reply, verdict.repaired or reply.source, sentence), verdict
            # the whole conversation, so that a model does not repeat itself and no request equals
            # an earlier one
            messages = (
                *messages,
                ChatMessage("assistant", message.reply.strip() or "(no answer)"),
                ChatMessage(
                    "user", render("fitness_revise.md", findings=findings, source=reply.source)
                ),
            )
        tries = self._revisions + 1
        raise FitnessNotWrittenError(
            f"{self._model.name} wrote no fitness for {sentence!r} that the critic accepts, in"
            f" {tries} tries. The last one:"
            + "".join(f"\n  {_line(finding)}" for finding in _errors(findings)),
            "say in the sentence what can be measured, ask another --model or with another --seed,"
            " or write a task file with a fitness",
        )

    def _written(self, reply: FitnessReply, source: str, sentence: str) -> WrittenFitness:
        assert reply.words is not None  # there is no finding on them
        return WrittenFitness(
            sentence=sentence,
            source=source,
            doc=reply.words.doc,
            unit=reply.words.unit,
            reduction=reply.words.reduction,
            success_fitness=reply.words.success,
            author=self._model.name,
            reasoning=printable(reply.reasoning),
        )


def opening(description: TaskDescription, sentence: str) -> tuple[ChatMessage, ...]:
    """The messages that ask for a fitness."""
    task = render(
        "fitness.md",
        sentence=sentence,
        description=description,
        variables=description.public_variables(),
    )
    return ChatMessage("system", render("fitness_system.md")), ChatMessage("user", task)


def _notes(message: Message, reply: FitnessReply) -> list[Finding]:
    """A finding if the reply is incomplete because it ended early or holds no answer."""
    if ending_of(message) is FinishReason.STOP or (reply.source and reply.words is not None):
        return []
    note, _ = why_no_answer(message)
    return [
        Finding(code="F706", severity="error", message=note, hint="answer in the form asked for")
    ]


def _errors(findings: Sequence[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.severity == "error"]


def _line(finding: Finding) -> str:
    place = f" line {finding.line}" if finding.line is not None else ""
    return f"{finding.code}{place}: {printable(finding.message)}"
