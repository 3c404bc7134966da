"""The designer that asks language models, one request per proposal."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from eureka_agent.designer.interface import (
    DesignRequest,
    DesignTools,
    ParentSummary,
    Rejection,
    ToolResult,
)
from eureka_agent.designer.observations import (
    design_of,
    kept_reward,
    subject_of,
    with_observation,
)
from eureka_agent.designer.reply import Reply, parse_reply
from eureka_agent.designer.source_tools import ENTRY_POINT, compact, parameter_names
from eureka_agent.llm.gateway import ConfiguredModel
from eureka_agent.llm.interface import ChatMessage, FinishReason, LanguageModelError, Role
from eureka_agent.llm.prompts import fenced, render, system_message
from eureka_agent.llm.spoken import ending_of, spoken, why_no_answer
from eureka_agent.records import NOT_ASKED, Message, Proposal, Verdict, total_cost
from eureka_agent.rewards import MOST_OBSERVATIONS, OBSERVATION_FUNCTION, CodeReward
from eureka_agent.text import clipped, printable

MOST_UNANSWERED = 8
"""Most replies in a row without a reward. Then it is one fault, and the search ends."""
PATIENCE_AFTER_AN_ANSWER = 4
"""Times as many once a reply has held one."""
STANDARD_ERRORS = 2.0
"""Least difference of means that counts, in standard errors: 95 % of equal ones differ by less."""
MOST_TURNS = 2
"""Turns of a proposal in which tools may be called."""
MOST_CALLS = 8
"""Calls of tools for a proposal."""
MOST_TOLD = 20_000
"""Characters of answers of tools, after which no further call is answered."""
_ENTRIES = {"reward": ENTRY_POINT, "observation": OBSERVATION_FUNCTION}
_BOTH = "In this search `design_observation` is part of all of that."
"""Meaning of an order where more than the reward is designed."""
LONGEST_ANSWER_SHOWN = 20_000
"""Most characters of a rejected answer in the next request; else its source or its beginning."""


class LanguageModelDesigner:
    """Writes reward functions with language models, from the templates in `prompts/`."""

    concurrent = True

    def __init__(self, models: Sequence[ConfiguredModel], tools: DesignTools | None = None) -> None:
        """At least one model; a request names the one to answer. `tools`: may be called before a
        proposal; None: there are none."""
        self.name = ", ".join(model.name for model in models)
        self._models = {model.name: model for model in models}
        self._first = models[0].name
        self._tools = tools
        self._answered = False
        self._unanswered = 0
        self._given_up: LanguageModelError | None = None

    async def propose(self, request: DesignRequest) -> Proposal:
        """A new proposal. Its source is empty if the reply held no code. Raises LanguageModelError
        also after too many replies without a reward."""
        if self._given_up is not None:  # somebody wants another try
            self._given_up, self._unanswered = None, 0
        return await self._ask(request)

    async def revise(
        self, request: DesignRequest, rejected: Proposal, verdict: Verdict
    ) -> Proposal:
        """A revision, from the same conversation with each rejected answer and the critic's
        findings on it. A model that refused or said nothing is asked once more, with a word about
        that."""
        if self._given_up is not None:
            raise self._given_up
        request = replace(request, rejections=(*request.rejections, Rejection(rejected, verdict)))
        return await self._ask(request)

    async def _ask(self, request: DesignRequest) -> Proposal:
        model = self._models[request.model or self._first]
        # a first generation has nothing to look at; what one has asked, the next are told
        looks = self._tools is not None and request.parents and not request.asked
        specs = self._tools.specs if self._tools is not None and looks else ()
        start = (*opening(request, bool(specs)), *_rejected_answers(request))
        conversation = _Conversation(request, self._tools if specs else None, start)
        costs = []
        while True:
            message = await model.ask(
                Role.DESIGNER,
                *conversation.messages,
                sample=request.seed + request.revision,
                attempt=request.attempt,
                tools=specs,
            )
            costs.append(message.cost)
            if not await conversation.goes_on(message):
                break
        proposal = _proposal(request, message.model_copy(update={"cost": total_cost(costs)}))
        self._count(proposal, subject_of(request))
        return proposal

    def _count(self, proposal: Proposal, subject: str) -> None:
        """Count a reply without a reward. Raises LanguageModelError after too many in a row."""
        if proposal.reward.source:
            self._answered, self._unanswered = True, 0
            return
        self._unanswered += 1
        if self._unanswered >= MOST_UNANSWERED * (PATIENCE_AFTER_AN_ANSWER**self._answered):
            self._given_up = LanguageModelError(
                f"{proposal.reward.author}: {self._unanswered} replies in a row hold no {subject},"
                f" the last one because {proposal.problem}",
                proposal.problem_hint or "ask another --model",
            )
            raise self._given_up


class _Conversation:
    """The turns of one proposal: calls of tools and their answers, up to the bounds."""

    def __init__(
        self, request: DesignRequest, tools: DesignTools | None, messages: tuple[ChatMessage, ...]
    ) -> None:
        self.messages = messages
        self._request, self._tools = request, tools
        self._turns = self._calls = self._told = 0

    async def goes_on(self, message: Message) -> bool:
        """Answer the calls of a reply. False for a reply without any, or after the last turn."""
        tools = self._tools
        if tools is None or not message.calls or self._turns >= MOST_TURNS:
            return False
        self._turns += 1
        calls = message.calls[: MOST_CALLS - self._calls]
        self._calls += len(calls)
        results = []
        for place, call in enumerate(calls):
            asked = f"{message.request}\n{message.reply}\n{place} {call.name} {call.arguments}"
            key = hashlib.sha256(asked.encode()).hexdigest()
            if self._told >= MOST_TOLD:
                results.append(ToolResult("No answer: enough was told for one proposal."))
                continue
            results.append(await tools.answer(self._request.attempt, key, call))
            self._told += len(results[-1].text)
        texts = [each.text for each in results]
        texts += ["No answer: this was one call too many."] * (len(message.calls) - len(calls))
        if self._is_over():
            subject = subject_of(self._request)
            texts[-1] += f"\n\nThat was the last call: answer with the {subject} now."
        pictures = tuple(image for each in results for image in each.images)
        self.messages = (
            *self.messages,
            ChatMessage("assistant", message.reply, calls=message.calls),
            *(
                ChatMessage("tool", text, answers=call.id, tool=call.name)
                for call, text in zip(message.calls, texts, strict=True)
            ),
            *(
                [ChatMessage("user", "The pictures that were asked for:", pictures)]
                * bool(pictures)
            ),
        )
        return True

    def _is_over(self) -> bool:
        return self._turns >= MOST_TURNS or self._calls >= MOST_CALLS or self._told >= MOST_TOLD


def opening(request: DesignRequest, tools: bool = False) -> tuple[ChatMessage, ChatMessage]:
    """The messages that ask for a proposal: the part that is equal for a run, then its own.
    `tools`: some may be called, so that tables of episodes are left out."""
    if request.operator in NOT_ASKED:
        raise ValueError(f"no model is asked for {request.operator.value!r}")
    design, subject = design_of(request), subject_of(request)
    order = render(
        f"operators/{subject if subject == 'observation' else request.operator.value}.md",
        subject=subject,
        operator=request.operator.value,
        parents=request.parents,
        memory=request.memory,
        failures=request.failures,
        reads={
            it.id: parameter_names(it.reward.source, _ENTRIES[subject]) for it in request.failures
        },
        siblings=[compact(each) for each in request.siblings],
        number=request.number,
        angle=request.angle,
        falls=any(each.diagnosis.early_ends for each in request.parents if each.diagnosis),
        tools=tools or bool(request.asked),
        asked=request.asked,
        wished=bool(request.told.wishes),
        codes={other.id: compact(other.reward.source) for other in request.memory},
    )
    if design == "both":
        order = f"{order}\n{_BOTH}\n"
    if known := _known_scores(request):
        order = f"{known}\n{order}"
    if request.coverage:
        order = (
            f"{render('parts/coverage.md', coverage=request.coverage, subject=subject)}\n{order}"
        )
    if request.told.judged:
        order = f"{render('parts/judged.md', judged=request.told.judged)}\n{order}"
    if request.told:
        order = f"{render('parts/feedback.md', told=request.told)}\n{order}"
    if request.rejections and not _said_something(request.rejections[-1].proposal):
        ending = ending_of(request.rejections[-1].proposal).value
        order = f"{order}\n{render('again.md', ending=ending, subject=subject)}"
    system = system_message(
        "system.md",
        request.description,
        request.sentence,
        request.settings,
        rewards="code" if request.settings is None else request.settings.rewards,
        design=design,
        most=MOST_OBSERVATIONS,
        kept=kept_reward(request.description) if design == "observation" else "",
        calls=MOST_CALLS if tools else 0,
        turns=MOST_TURNS,
    )
    return system, ChatMessage("user", order)


def _known_scores(request: DesignRequest) -> str:
    """Scores for comparison: baselines, the spread between seeds, and the fitness of a solved task
    unless all shown attempts have passed it."""
    shown = [each for each in (*request.parents, *request.memory) if each.fitness is not None]
    solved = request.description.success_fitness
    is_past = (
        bool(shown)
        and solved is not None
        and all(each.fitness >= solved for each in shown if each.fitness is not None)
    )
    if not request.references and not request.seed_spread and (solved is None or is_past):
        return ""
    return render(
        "parts/references.md",
        subject=subject_of(request),
        references=request.references,
        seed_spread=request.seed_spread,
        alike=_not_told_apart(shown, request.seed_spread or 0.0),
        solved=None if is_past else solved,
    )


def _not_told_apart(attempts: Sequence[ParentSummary], spread: float) -> list[str]:
    """Ids of the best attempt and those within two standard errors of it; empty if alone."""
    order = sorted(attempts, key=lambda each: -(each.fitness or 0.0))
    alike = [
        each.id
        for each in order
        if (order[0].fitness or 0.0) - (each.fitness or 0.0)
        < STANDARD_ERRORS
        * spread
        * math.sqrt(sum(1 / max(1, len(one.fitness_per_seed)) for one in (order[0], each)))
    ]
    return list(dict.fromkeys(alike)) if len(set(alike)) > 1 else []


def _rejected_answers(request: DesignRequest) -> Iterator[ChatMessage]:
    """Rejected answers and their findings in turn, without refusals and empty answers."""
    for rejection in request.rejections:
        rejected = rejection.proposal
        if _said_something(rejected):
            findings = render(
                "revise.md",
                subject=subject_of(request),
                findings=rejection.verdict.findings,
                source=rejected.reward.source,
                lines=rejected.reward.source.split("\n"),
                cut_off=rejected.finish_reason == FinishReason.CUT_OFF,
                problem="" if rejected.reward.source else rejected.problem,
            )
            yield ChatMessage("assistant", _answer(rejected))
            yield ChatMessage("user", findings)


def _said_something(rejected: Proposal) -> bool:
    refused = rejected.finish_reason == FinishReason.REFUSED
    return bool(rejected.reward.source.strip()) or (not refused and bool(_answer(rejected)))


def _proposal(request: DesignRequest, message: Message) -> Proposal:
    cut_off = message.finish_reason == FinishReason.CUT_OFF
    reply = _read(request, message.reply, cut_off)
    note = "The reply was cut off at the bound on tokens." if cut_off else ""
    problem, hint = "", ""
    if not reply.source:
        problem, hint = _why_no_reward(message, reply.problem, subject_of(request))
        note = f"{problem}."
    elif cut_off:
        problem = "the reply was cut off at the bound on tokens (--reply-tokens)"
    return Proposal(
        reward=CodeReward(source=reply.source, author=message.model),
        reasoning="\n\n".join(part for part in (reply.reasoning, note) if part),
        operator=request.operator,
        parents=tuple(parent.id for parent in request.parents),
        prompt=message.request,
        # `reply.md` may be shown in a terminal; the message has the raw reply
        reply=printable(message.reply),
        finish_reason=message.finish_reason,
        problem=problem,
        problem_hint=hint,
        cost=message.cost,
    )


def _read(request: DesignRequest, text: str, cut_off: bool) -> Reply:
    """The reward of a reply; where observations alone are designed, the kept reward with it."""
    if design_of(request) != "observation":
        return parse_reply(text, cut_off=cut_off)
    reply = parse_reply(text, cut_off=cut_off, entry=OBSERVATION_FUNCTION)
    if not reply.source:
        return reply
    source, problem = with_observation(kept_reward(request.description), reply.source)
    return replace(reply, source="" if problem else source, problem=problem)


def _why_no_reward(message: Message, problem: str, subject: str) -> tuple[str, str]:
    """The reason why no reward or observation is taken from a reply, and what could help."""
    if problem and ending_of(message) in (FinishReason.STOP, FinishReason.OTHER):
        return problem, ""
    return why_no_answer(message, f"`{_ENTRIES[subject]}`")


def _answer(rejected: Proposal) -> str:
    """The model's answer as it is shown to it again; of a given reward the source."""
    answer = spoken(printable(rejected.reply)).text.strip()
    code = rejected.reward.source
    source = fenced(code, "python") if code.strip() else ""
    if len(answer) > LONGEST_ANSWER_SHOWN and 0 < len(source) <= LONGEST_ANSWER_SHOWN:
        return source
    return clipped(answer or source, LONGEST_ANSWER_SHOWN)
