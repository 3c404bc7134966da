"""The designer that asks a language model, one request a proposal, and keeps every reply before it is used."""

from __future__ import annotations

from functools import cache
from typing import Any

import jinja2

from eureka_agent.designer.interface import DesignRequest
from eureka_agent.designer.reply import parse_reply
from eureka_agent.llm.interface import (
    ChatMessage,
    CompletionRequest,
    FinishReason,
    LanguageModel,
    MessageStore,
    message_key,
    transcript,
)
from eureka_agent.records import Cost, Message, Proposal, VariableSpec, Verdict
from eureka_agent.resources import resource_folder

ROLE = "designer"
REPLY_NOTES = {
    FinishReason.CUT_OFF: "The reply was cut off at the bound on tokens.",
    FinishReason.REFUSED: "The model refused to answer.",
}


class LanguageModelDesigner:
    """Writes reward functions with a language model, from the templates in `prompts/`."""

    concurrent = True

    def __init__(self, model: LanguageModel, store: MessageStore) -> None:
        """`store` is asked before the model is, so nothing is paid twice."""
        self.name = model.name
        self._model = model
        self._store = store

    async def propose(self, request: DesignRequest) -> Proposal:
        """A new proposal; its source is empty where the reply held no code."""
        return await self._ask(request, opening(request))

    async def revise(self, request: DesignRequest, rejected: Proposal, verdict: Verdict) -> Proposal:
        """The proposal again: the same conversation, the model's last reply, then the critic's findings."""
        findings = render("revise.md", findings=verdict.findings, source=rejected.source)
        reply = rejected.reply.strip() or rejected.source.strip() or "(no answer)"
        return await self._ask(
            request, (*opening(request), ChatMessage("assistant", reply), ChatMessage("user", findings))
        )

    async def _ask(self, request: DesignRequest, messages: tuple[ChatMessage, ...]) -> Proposal:
        completion_request = CompletionRequest(messages=messages)
        key = message_key(self.name, completion_request, request.seed)
        message = self._store.find(key)
        if message is None:
            completion = await self._model.complete(completion_request)
            cost = Cost(
                money=completion.money,
                prompt_tokens=completion.prompt_tokens,
                completion_tokens=completion.completion_tokens,
                seconds=completion.seconds,
            )
            message = Message(
                role=ROLE,
                model=self.name,
                request=transcript(messages),
                reply=completion.text,
                finish_reason=completion.finish_reason.value,
                cost=cost,
            )
            self._store.put(key, message)
        return self._proposal(request, message)

    def _proposal(self, request: DesignRequest, message: Message) -> Proposal:
        reply = parse_reply(message.reply)
        note = REPLY_NOTES.get(FinishReason(message.finish_reason), "")
        return Proposal(
            source=reply.source,
            reasoning="\n\n".join(part for part in (reply.reasoning, note) if part),
            operator=request.operator,
            parents=tuple(parent.id for parent in request.parents),
            designer=self.name,
            prompt=message.request,
            reply=message.reply,
            cost=message.cost,
        )


def opening(request: DesignRequest) -> tuple[ChatMessage, ...]:
    """The conversation that asks for a proposal."""
    task = render(
        "task.md",
        sentence=request.sentence,
        description=request.description,
        variables=request.description.public_variables(),
    )
    order = render(
        f"operators/{request.operator.value}.md",
        parents=request.parents,
        failures=request.failures,
        siblings=request.siblings,
    )
    return ChatMessage("system", render("system.md")), ChatMessage("user", f"{task}\n{order}")


def render(template: str, **values: Any) -> str:
    """A template of `prompts/` with its values filled in; a value that it misses is an error."""
    return _templates().get_template(template).render(**values).strip() + "\n"


@cache
def _templates() -> jinja2.Environment:
    templates = jinja2.Environment(  # plain text for a model, never HTML
        loader=jinja2.FileSystemLoader(resource_folder("prompts")),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters["facts"] = facts
    templates.filters["batch_shape"] = batch_shape
    return templates


def facts(variable: VariableSpec) -> str:
    """Unit, frame and range of a variable as they follow its shape: `, m/s, world frame, -1 to 1`."""
    parts = []
    if variable.unit not in ("", "1"):
        parts.append(variable.unit)
    if variable.frame not in ("", "-"):
        parts.append(f"{variable.frame} frame")
    if variable.range is not None:
        parts.append(f"{variable.range[0]:g} to {variable.range[1]:g}")
    return "".join(f", {part}" for part in parts)


def batch_shape(variable: VariableSpec) -> str:
    """`(batch,)`, `(batch, 3)`: the shape in which a reward gets the variable."""
    return f"(batch, {', '.join(str(size) for size in variable.shape)})" if variable.shape else "(batch,)"
