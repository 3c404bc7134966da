"""A model that calls tools before it proposes: the conversation and its bounds."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from scripted_gateway import NamedModel, ScriptedGateway

from eureka_agent.designer.interface import (
    DesignRequest,
    ParentSummary,
    ToolResult,
    given_reward,
)
from eureka_agent.designer.llm_designer import (
    MOST_CALLS,
    MOST_TOLD,
    MOST_TURNS,
    LanguageModelDesigner,
)
from eureka_agent.llm.gateway import ConfiguredModel
from eureka_agent.llm.interface import CompletionRequest, ImagePart, LanguageModel, ToolSpec
from eureka_agent.records import (
    Cost,
    Finding,
    Message,
    Operator,
    TaskDescription,
    ToolCall,
    Verdict,
)

REWARD = "def compute_reward(cart_position):\n    return -cart_position.abs(), {}\n"
ANSWER = f"It pays.\n\n```python\n{REWARD}```\n"
LOOK = ToolSpec("look", "Looks.", {"type": "object", "properties": {}})


class Calling(ScriptedGateway):
    """A gateway that answers with so many calls at each turn, then with a reward."""

    def __init__(self, *calls: int) -> None:
        super().__init__(*["let me see"] * len(calls), ANSWER)
        self._calls = list(calls)

    async def ask(self, model: LanguageModel, request: CompletionRequest) -> Message:
        message = await super().ask(model, request)
        number = self._calls.pop(0) if self._calls else 0
        calls = (
            ToolCall(id=f"{it}", name="look", arguments=f'{{"n": {it}}}') for it in range(number)
        )
        cost = Cost(prompt_tokens=10, completion_tokens=2, seconds=1.0)
        return message.model_copy(update={"calls": tuple(calls), "cost": cost})


@dataclass
class Answering:
    """Tools that tell their calls."""

    text: str = "seen"
    images: tuple[ImagePart, ...] = ()
    specs: tuple[ToolSpec, ...] = (LOOK,)
    keys: list[str] = field(default_factory=list)

    async def answer(self, attempt: str, key: str, call: ToolCall) -> ToolResult:
        assert attempt == "2-03"
        self.keys.append(key)
        return ToolResult(f"{self.text} {call.arguments}", self.images)


PARENT = ParentSummary("1-03", given_reward(REWARD), 1.5, None, "because")


def asked(description: TaskDescription) -> DesignRequest:
    return DesignRequest(
        description, "hold it still", Operator.IMPROVE, (PARENT,), (), seed=1, attempt="2-03"
    )


def designer_of(gateway: ScriptedGateway, tools: Answering) -> LanguageModelDesigner:
    return LanguageModelDesigner([ConfiguredModel(NamedModel(), gateway)], tools)


async def test_calls_are_answered_before_the_reward(description: TaskDescription) -> None:
    gateway, tools = Calling(2, 1), Answering()
    proposal = await designer_of(gateway, tools).propose(asked(description))
    assert proposal.reward.source == REWARD
    assert len(gateway.requests) == 3
    roles = [each.role for each in gateway.requests[-1].messages]
    assert roles == ["system", "user", "assistant", "tool", "tool", "assistant", "tool"]
    told = [each.content for each in gateway.requests[-1].messages if each.role == "tool"]
    last = 'seen {"n": 0}\n\nThat was the last call: answer with the reward now.'
    assert told == ['seen {"n": 0}', 'seen {"n": 1}', last]
    assert all(each.tools == (LOOK,) for each in gateway.requests)
    # the first messages are the same in each turn, so that a provider's cache has them
    assert gateway.requests[0].messages == gateway.requests[-1].messages[:2]
    # what the proposal cost is all of it, and its record the whole conversation
    assert (proposal.cost.prompt_tokens, proposal.cost.completion_tokens) == (30, 6)
    assert 'seen {"n": 1}' in proposal.prompt
    assert len(set(tools.keys)) == 3


async def test_turns_calls_and_answers_have_bounds(description: TaskDescription) -> None:
    gateway, tools = Calling(*[MOST_CALLS - 1] * 9), Answering()
    proposal = await designer_of(gateway, tools).propose(asked(description))
    assert proposal.reward.source == ""
    assert len(tools.keys) == MOST_CALLS
    assert len(gateway.requests) == MOST_TURNS + 1
    last = gateway.requests[-1].messages[-1].content
    assert "one call too many" in last
    assert last.endswith("That was the last call: answer with the reward now.")
    gateway, tools = Calling(2, 1), Answering("x" * MOST_TOLD)
    await designer_of(gateway, tools).propose(asked(description))
    assert len(tools.keys) == 1


async def test_pictures_come_after_all_answers(description: TaskDescription) -> None:
    gateway, tools = Calling(2), Answering(images=(ImagePart(b"jpeg", "a cart"),))
    await designer_of(gateway, tools).propose(asked(description))
    *_, first, second, pictures = gateway.requests[-1].messages
    assert (first.role, second.role, pictures.role) == ("tool", "tool", "user")
    assert len(pictures.images) == 2


async def test_a_revision_goes_on_without_the_calls(description: TaskDescription) -> None:
    gateway, tools = Calling(1), Answering()
    designer = designer_of(gateway, tools)
    first = await designer.propose(asked(description))
    gateway.replies.append(ANSWER)
    rejected = Verdict(findings=(Finding(code="C306", severity="error", message="no argument"),))
    await designer.revise(asked(description), first, rejected)
    roles = [each.role for each in gateway.requests[-1].messages]
    assert roles == ["system", "user", "assistant", "user"]


async def test_without_tools_none_are_offered_nor_described(description: TaskDescription) -> None:
    gateway = Calling(1)
    await LanguageModelDesigner([ConfiguredModel(NamedModel(), gateway)]).propose(
        asked(description)
    )
    (request,) = gateway.requests
    assert request.tools == ()
    assert "Looking first" not in request.messages[0].content


async def test_a_first_generation_has_nothing_to_look_at(description: TaskDescription) -> None:
    gateway, tools = Calling(1), Answering()
    request = replace(asked(description), operator=Operator.FRESH, parents=())
    await designer_of(gateway, tools).propose(request)
    assert gateway.requests[0].tools == ()
    assert "Looking first" not in gateway.requests[0].messages[0].content


async def test_answers_to_others_are_told(description: TaskDescription) -> None:
    gateway = Calling()
    request = replace(asked(description), asked=("speed, attempt 1-03\n  mean 3",))
    await designer_of(gateway, Answering()).propose(request)
    assert "Asked already" in gateway.requests[0].messages[1].content
    assert "```\nspeed, attempt 1-03\n  mean 3\n```" in gateway.requests[0].messages[1].content
