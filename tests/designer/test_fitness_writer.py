"""The prompt for a model that writes a fitness, and how often it may mend one."""

from __future__ import annotations

import pytest
from scripted_gateway import Cut, NamedModel, ScriptedGateway

from eureka_agent.designer.fitness_writer import FitnessNotWrittenError, FitnessWriter
from eureka_agent.llm.gateway import ConfiguredModel
from eureka_agent.llm.interface import FinishReason, Role
from eureka_agent.records import Finding, TaskDescription, Verdict, WrittenFitness
from eureka_agent.rewards import RewardSpecification, baseline

SOURCE = (
    "def compute_reward(cart_position):\n    away = cart_position.abs().clamp(0.0, 1.0)\n    return"
    " away, {'away': away}\n"
)
WORDS = (
    '{"doc": "metres from the centre at the end", "unit": "m", "reduction": "last", "success":'
    " null}"
)
REPLY = f"The farther the better.\n\n```python\n{SOURCE}```\n```json\n{WORDS}\n```\n"
BROKEN = REPLY.replace("cart_position.abs", "cart_positoin.abs")
NAMED = Finding(
    code="C311",
    severity="error",
    message="'cart_positoin' is not defined",
    line=2,
    hint="did you mean it?",
)
SENTENCE = "drive the cart away from the centre"


async def judge(reward: RewardSpecification) -> Verdict:
    """Finds the misspelt name; warns of everything else."""
    warning = Finding(
        code="D314", severity="warning", message="component 'away' is 0 on all states"
    )
    return Verdict(
        findings=(NAMED,) if "positoin" in reward.source else (warning,), steps_run=("contract",)
    )


def writer(gateway: ScriptedGateway, *bounds: float | int, **options: int) -> FitnessWriter:
    model = ConfiguredModel(NamedModel("openai/tiny"), gateway, *bounds)  # type: ignore[arg-type]
    return FitnessWriter(model, judge, **options)


async def test_a_reply_becomes_a_fitness_with_its_author(description: TaskDescription) -> None:
    gateway = ScriptedGateway(REPLY)
    fitness, verdict = await writer(gateway, 0.5, 900, sample=3).write(description, SENTENCE)
    assert fitness == WrittenFitness(
        sentence=SENTENCE,
        source=SOURCE,
        doc="metres from the centre at the end",
        unit="m",
        reduction="last",
        author="openai/tiny",
        reasoning="The farther the better.",
    )
    assert [finding.code for finding in verdict.findings] == ["D314"]
    (request,) = gateway.requests
    assert (request.role, request.sample, request.temperature, request.max_tokens) == (
        Role.METRIC,
        3,
        0.5,
        900,
    )


async def test_the_prompt_has_the_sentence_and_the_environment_and_nothing_of_its_own_task(
    description: TaskDescription,
) -> None:
    own = {
        "sentence": "OWN-SENTENCE",
        "fitness_doc": "OWN-METRIC",
        "fitness_unit": "OWN-UNIT",
        "success_fitness": 77.125,
        "human_reward": baseline("# OWN-HUMAN"),
        "sparse_reward": baseline("# OWN-SPARSE"),
    }
    gateway = ScriptedGateway(REPLY)
    await writer(gateway).write(description.model_copy(update=own), SENTENCE)
    system, user = gateway.requests[0].messages
    assert (system.role, user.role) == ("system", "user")
    told = system.content + user.content
    assert SENTENCE in user.content
    assert (
        "cart_position: Tensor  # (batch,), m, world frame. position of the cart along the rail"
        in user.content
    )
    assert (
        "One control step is 0.02 s; an episode ends after at most 500 steps (10 s), earlier"
        " by:\n\n- left_the_rail\n" in user.content
    )
    for hidden in ("OWN-", "77.125", "secret"):
        assert hidden not in told
    assert "{{" not in told
    assert "{%" not in told


async def test_a_rejected_fitness_goes_back_with_all_that_is_wrong_with_it(
    description: TaskDescription,
) -> None:
    gateway = ScriptedGateway(BROKEN.replace('"last"', '"median"'), REPLY)
    fitness, _ = await writer(gateway).write(description, SENTENCE)
    assert fitness.source == SOURCE
    first, second = gateway.requests
    assert second.messages[:2] == first.messages
    assert [message.role for message in second.messages] == ["system", "user", "assistant", "user"]
    told = second.messages[3].content
    assert "- C311, line 2: 'cart_positoin' is not defined (did you mean it?)" in told
    assert "'reduction' in the JSON block is \"median\"" in told
    assert "  2      away = cart_positoin.abs().clamp(0.0, 1.0)" in told


async def test_it_goes_back_three_times_and_then_the_findings_are_told(
    description: TaskDescription,
) -> None:
    gateway = ScriptedGateway(BROKEN, "no code", "", BROKEN, REPLY)
    with pytest.raises(FitnessNotWrittenError) as caught:
        await writer(gateway).write(description, SENTENCE)
    assert len(gateway.requests) == 4
    assert caught.value.message.splitlines() == [
        (
            f"openai/tiny wrote no fitness for {SENTENCE!r} that the critic accepts, in 4 tries."
            " The last one:"
        ),
        "  C311 line 2: 'cart_positoin' is not defined",
    ]
    # an empty reply has no turn of its own
    assert all(
        message.content.strip() for request in gateway.requests for message in request.messages
    )


async def test_why_a_reply_is_not_whole_is_told(description: TaskDescription) -> None:
    gateway = ScriptedGateway(Cut("", FinishReason.REFUSED))
    with pytest.raises(FitnessNotWrittenError, match="F706: the model refused to answer") as caught:
        await writer(gateway, revisions=0).write(description, SENTENCE)
    assert "F701: the reply holds no function" in caught.value.message
    # a reply that is whole in what matters is taken, whatever ended it
    fitness, _ = await writer(ScriptedGateway(Cut(REPLY, FinishReason.CUT_OFF))).write(
        description, SENTENCE
    )
    assert fitness.source == SOURCE
