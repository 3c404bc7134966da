"""What the designer tells a model, what it makes of the reply, and that it never asks twice."""

from __future__ import annotations

import ast
import re
from dataclasses import replace

import jinja2
import pytest

from eureka_agent.designer.interface import DesignRequest, FailureSummary, ParentSummary
from eureka_agent.designer.llm_designer import LanguageModelDesigner, opening, render
from eureka_agent.llm.interface import Completion, CompletionRequest, FinishReason
from eureka_agent.records import Diagnosis, Finding, Message, Operator, TaskDescription, VariableSpec, Verdict

REWARD = "def compute_reward(cart_position):\n    return -cart_position.abs(), {'centred': -cart_position.abs()}\n"


class QueuedModel:
    """Answers with the replies in its queue and remembers what it was asked."""

    name = "openai/queued"

    def __init__(self, *replies: str | Completion) -> None:
        self.replies = list(replies)
        self.requests: list[CompletionRequest] = []

    async def complete(self, request: CompletionRequest) -> Completion:
        self.requests.append(request)
        reply = self.replies.pop(0)
        return reply if isinstance(reply, Completion) else completion(reply)


class MemoryStore:
    """Messages in a dictionary."""

    def __init__(self) -> None:
        self.messages: dict[str, Message] = {}

    def find(self, key: str) -> Message | None:
        return self.messages.get(key)

    def put(self, key: str, message: Message) -> None:
        self.messages[key] = message


def completion(text: str, reason: FinishReason = FinishReason.STOP) -> Completion:
    return Completion(text=text, finish_reason=reason, prompt_tokens=100, completion_tokens=20, money=None, seconds=1.5)


def parent(identifier: str, fitness: float | None = 3.25) -> ParentSummary:
    diagnosis = Diagnosis(
        fitness=fitness,
        fitness_values=(fitness,),
        episode_length_values=(500.0,),
        components=(),
        findings=(),
        text=f"the term centred of {identifier} never moves",
    )
    return ParentSummary(identifier, f"# of {identifier}\n{REWARD}", fitness, diagnosis, f"reasons of {identifier}")


def design_request(
    description: TaskDescription, operator: Operator = Operator.FRESH, *parents: ParentSummary, seed: int = 1
) -> DesignRequest:
    failure = FailureSummary("1-03", "def compute_reward(): pass", "rejected", "C306 takes no argument")
    return DesignRequest(description, "hold the cart dead still", operator, parents, (failure,), seed)


def fenced(source: str, prose: str = "Because it pays.") -> str:
    return f"{prose}\n\n```python\n{source}```\n"


async def test_a_reply_becomes_a_proposal(description: TaskDescription) -> None:
    model = QueuedModel(fenced(REWARD))
    designer = LanguageModelDesigner(model, MemoryStore())
    proposal = await designer.propose(design_request(description, Operator.IMPROVE, parent("1-01")))
    assert (proposal.source, proposal.reasoning) == (REWARD, "Because it pays.")
    assert (proposal.operator, proposal.parents, proposal.designer) == (Operator.IMPROVE, ("1-01",), "openai/queued")
    assert proposal.reply == fenced(REWARD)
    assert (proposal.cost.prompt_tokens, proposal.cost.completion_tokens, proposal.cost.money) == (100, 20, None)
    for message in model.requests[0].messages:
        assert message.content.strip() in proposal.prompt


def test_the_prompt_describes_the_task_without_its_code(description: TaskDescription) -> None:
    system, user = opening(design_request(description))
    assert (system.role, user.role) == ("system", "user")
    assert "hold the cart dead still" in user.content
    assert "cart_position: Tensor  # (batch,), m, world frame. position of the cart along the rail" in user.content
    assert "actions: Tensor  # (batch, 1), joint frame, -1 to 1. action" in user.content
    assert "seconds within 0.1 m of the centre. Its unit is s." in user.content
    assert "solved from 8 on" in user.content
    assert "left_the_rail" in user.content
    assert "secret" not in user.content, "a private variable stays private"
    assert description.human_reward is not None
    assert description.human_reward not in user.content
    assert "C306 takes no argument" in user.content


@pytest.mark.parametrize("operator", list(Operator))
def test_every_operator_has_a_prompt_with_its_parents(description: TaskDescription, operator: Operator) -> None:
    parents = () if operator is Operator.FRESH else (parent("1-01"), parent("1-02", None))
    content = opening(design_request(description, operator, *parents))[1].content
    for member in parents:
        assert member.source in content
        assert f"the term centred of {member.id} never moves" in content
        assert f"reasons of {member.id}" in content
    assert ("fitness 3.25" in content) is bool(parents)
    assert ("fitness unknown" in content) is bool(parents)
    assert "# What to do" in content
    assert not re.search(r"\{[{%]|[}%]\}", content), "no template syntax is left"


def test_the_prompt_tells_how_far_a_parents_trainings_differ(description: TaskDescription) -> None:
    twice = replace(parent("1-01", 5.0), fitness_per_seed=(8.0, 2.0))
    content = opening(design_request(description, Operator.IMPROVE, twice))[1].content
    assert "attempt 1-01, fitness 5, the mean of 2 trainings from different seeds (8, 2)\n\n```python" in content
    assert "What its first training showed:" in content
    once = opening(design_request(description, Operator.IMPROVE, replace(twice, fitness_per_seed=(8.0,))))[1].content
    assert "attempt 1-01, fitness 5\n\n```python" in once
    early = opening(design_request(description, Operator.IMPROVE, replace(twice, progress=0.7)))[1].content
    assert "attempt 1-01, fitness 5 after 70 % of its training, the mean of 2 trainings" in early
    assert "What its training showed:" in once


def test_prompts_differ_between_operators(description: TaskDescription) -> None:
    contents = {opening(design_request(description, operator, parent("1-01")))[1].content for operator in Operator}
    assert len(contents) == len(Operator)


def test_braces_in_a_task_are_not_a_template(description: TaskDescription) -> None:
    request = design_request(description.model_copy(update={"doc": "a {{ doc }} with {% braces %}"}))
    assert "a {{ doc }} with {% braces %}" in opening(request)[1].content


def test_code_in_the_system_prompt_keeps_its_own_rules() -> None:
    blocks = re.findall(r"```python\n(.*?)```", render("system.md"), re.DOTALL)
    example = ast.parse(blocks[-1])
    function = next(node for node in example.body if isinstance(node, ast.FunctionDef))
    assert function.name == "compute_reward"
    read = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
    assert all(argument.arg in read for argument in function.args.args), "the example takes only what it uses"


def test_a_value_that_a_template_misses_is_an_error() -> None:
    with pytest.raises(jinja2.UndefinedError):
        render("task.md")


async def test_a_resumed_run_never_asks_twice(description: TaskDescription) -> None:
    store = MemoryStore()
    request = design_request(description)
    first = await LanguageModelDesigner(QueuedModel(fenced(REWARD)), store).propose(request)
    silent = QueuedModel()
    assert await LanguageModelDesigner(silent, store).propose(request) == first
    assert silent.requests == []


async def test_samples_of_one_prompt_are_different_requests(description: TaskDescription) -> None:
    model = QueuedModel(fenced(REWARD), fenced(REWARD, "Another reason."))
    designer = LanguageModelDesigner(model, MemoryStore())
    proposals = [await designer.propose(design_request(description, seed=seed)) for seed in (1, 2)]
    assert [proposal.reasoning for proposal in proposals] == ["Because it pays.", "Another reason."]


async def test_the_reply_is_stored_before_it_is_used(description: TaskDescription) -> None:
    store = MemoryStore()
    await LanguageModelDesigner(QueuedModel("no code at all"), store).propose(design_request(description))
    (message,) = store.messages.values()
    assert (message.role, message.model, message.reply) == ("designer", "openai/queued", "no code at all")


@pytest.mark.parametrize(
    ("reply", "note"),
    [
        (completion("", FinishReason.REFUSED), "refused"),
        (completion("Let me think, first", FinishReason.CUT_OFF), "cut off"),
        (completion("I would reward height."), "I would reward height."),
    ],
)
async def test_no_code_is_a_proposal_without_source(description: TaskDescription, reply: Completion, note: str) -> None:
    proposal = await LanguageModelDesigner(QueuedModel(reply), MemoryStore()).propose(design_request(description))
    assert proposal.source == ""
    assert note in proposal.reasoning


async def test_a_revision_continues_the_conversation_with_the_findings(description: TaskDescription) -> None:
    broken = "def compute_reward(cart_positoin):\n    return cart_positoin, {}\n"
    model = QueuedModel(fenced(broken), fenced(REWARD))
    designer = LanguageModelDesigner(model, MemoryStore())
    request = design_request(description)
    rejected = await designer.propose(request)
    hint = "did you mean 'cart_position'?"
    finding = Finding(code="C303", severity="error", message="no variable 'cart_positoin'", line=1, hint=hint)
    revised = await designer.revise(request, rejected, Verdict(findings=(finding,)))
    assert revised.source == REWARD
    messages = model.requests[1].messages
    assert [message.role for message in messages] == ["system", "user", "assistant", "user"]
    assert messages[2].content == rejected.reply.strip()
    assert f"- C303, line 1: no variable 'cart_positoin' ({hint})" in messages[3].content
    assert "  1  def compute_reward(cart_positoin):" in messages[3].content


async def test_a_revision_of_nothing_asks_for_code(description: TaskDescription) -> None:
    model = QueuedModel("", fenced(REWARD))
    designer = LanguageModelDesigner(model, MemoryStore())
    request = design_request(description)
    rejected = await designer.propose(request)
    finding = Finding(code="P101", severity="error", message="the source is empty")
    await designer.revise(request, rejected, Verdict(findings=(finding,)))
    assert all(message.content.strip() for message in model.requests[1].messages)
    assert "no code block" in model.requests[1].messages[3].content


def test_every_variable_shape_is_written_as_python_does(description: TaskDescription) -> None:
    variables = tuple(
        VariableSpec(name=name, shape=shape, unit="1", frame="-", doc="d")
        for name, shape in (("a", ()), ("b", (3,)), ("c", (4, 3)))
    )
    content = opening(design_request(description.model_copy(update={"variables": variables})))[1].content
    for line in ("a: Tensor  # (batch,). d", "b: Tensor  # (batch, 3). d", "c: Tensor  # (batch, 4, 3). d"):
        assert line in content
