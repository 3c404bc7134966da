"""The designer's prompts to a model, and its use of the reply."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from pathlib import Path

import pytest
from scripted_gateway import Cut, NamedModel, ScriptedGateway

from eureka_agent.designer.interface import (
    DesignRequest,
    FailureSummary,
    ParentSummary,
    Rejection,
    given_reward,
)
from eureka_agent.designer.llm_designer import (
    LONGEST_ANSWER_SHOWN,
    MOST_UNANSWERED,
    LanguageModelDesigner,
    opening,
)
from eureka_agent.designer.source_tools import number_constants
from eureka_agent.llm.gateway import ConfiguredModel
from eureka_agent.llm.interface import FinishReason, LanguageModelError
from eureka_agent.llm.prompts import render
from eureka_agent.records import (
    NOT_ASKED,
    CommandFacts,
    ComponentSummary,
    Diagnosis,
    DiagnosisFinding,
    Finding,
    NativeTerm,
    Operator,
    Score,
    TaskDescription,
    Verdict,
)
from eureka_agent.resources import resource_folder
from eureka_agent.rewards import baseline
from eureka_agent.settings import SearchSettings

ASKED = [operator for operator in Operator if operator not in NOT_ASKED]
"""Operators that models are asked for."""
REWARD = (
    "def compute_reward(cart_position):\n    return -cart_position.abs(), {'centred':"
    " -cart_position.abs()}\n"
)


def parent(identifier: str, fitness: float | None = 3.25) -> ParentSummary:
    diagnosis = Diagnosis(
        fitness=fitness,
        fitness_values=(fitness,),
        episode_length_values=(500.0,),
        components=(),
        findings=(),
        text=f"the term centred of {identifier} never moves",
    )
    return ParentSummary(
        identifier,
        given_reward(f"# of {identifier}\n{REWARD}"),
        fitness,
        diagnosis,
        f"reasons of {identifier}",
    )


def design_request(
    description: TaskDescription,
    operator: Operator = Operator.FRESH,
    *parents: ParentSummary,
    seed: int = 1,
) -> DesignRequest:
    failure = FailureSummary(
        "1-03", given_reward("def compute_reward(): pass"), "rejected", "C306 takes no argument"
    )
    return DesignRequest(
        description, "hold the cart dead still", operator, parents, (failure,), seed
    )


def fenced(source: str, prose: str = "Because it pays.") -> str:
    return f"{prose}\n\n```python\n{source}```\n"


def designer_of(gateway: ScriptedGateway) -> LanguageModelDesigner:
    return LanguageModelDesigner([ConfiguredModel(NamedModel(), gateway)])


def order_of(request: DesignRequest) -> str:
    return opening(request)[1].content


# ── the request ───────────────────────────────────────────────────────────────────────────────────


async def test_a_reply_becomes_a_proposal(description: TaskDescription) -> None:
    gateway = ScriptedGateway(fenced(REWARD))
    proposal = await designer_of(gateway).propose(
        design_request(description, Operator.IMPROVE, parent("1-01"))
    )
    assert (proposal.reward.source, proposal.reasoning) == (REWARD, "Because it pays.")
    assert (proposal.operator, proposal.parents, proposal.reward.author) == (
        Operator.IMPROVE,
        ("1-01",),
        "openai/scripted",
    )
    assert proposal.reply == fenced(REWARD)
    assert (proposal.cost.prompt_tokens, proposal.cost.completion_tokens, proposal.cost.money) == (
        100,
        20,
        None,
    )
    for message in gateway.requests[0].messages:
        assert message.content.strip() in proposal.prompt


async def test_the_request_says_which_model_answers(description: TaskDescription) -> None:
    gateway = ScriptedGateway(*[fenced(REWARD)] * 3)
    designer = LanguageModelDesigner(
        [
            ConfiguredModel(NamedModel("openai/a"), gateway),
            ConfiguredModel(NamedModel("anthropic/b"), gateway),
        ]
    )
    assert designer.name == "openai/a, anthropic/b"
    request = design_request(description)
    first = await designer.propose(request)
    second = await designer.propose(replace(request, model="anthropic/b"))
    mended = await designer.revise(replace(request, model="anthropic/b"), second, Verdict())
    assert [each.reward.author for each in (first, second, mended)] == [
        "openai/a",
        "anthropic/b",
        "anthropic/b",
    ]
    assert gateway.models == ["openai/a", "anthropic/b", "anthropic/b"]


# ── the prompt ────────────────────────────────────────────────────────────────────────────────────


def test_the_prompt_describes_the_task_without_its_code(description: TaskDescription) -> None:
    detailed = description.model_copy(
        update={"details": "The rail is 3 m long.\n\nIt starts in the middle."}
    )
    system, user = opening(design_request(detailed))
    assert (system.role, user.role) == ("system", "user")
    told = system.content
    assert "hold the cart dead still" in told
    assert (
        "A cart on a rail.\n\nThe rail is 3 m long.\n\nIt starts in the middle.\n\nOne control step"
        in told
    )
    assert (
        "cart_position: Tensor  # (batch,), m, world frame. position of the cart along the rail"
        in told
    )
    assert "actions: Tensor  # (batch, 1), joint frame, range -1 to 1. action" in told
    assert "seconds within 0.1 m of the centre. Its unit is s." in told
    assert "solved from 8 on" in user.content
    assert "left_the_rail" in told
    assert "secret" not in told + user.content, "a private variable stays private"
    assert description.human_reward is not None
    assert "centred + effort" not in told + user.content
    assert "C306 takes no argument" in user.content


def test_terms_of_a_simulator_are_offered_with_their_weights(description: TaskDescription) -> None:
    terms = (NativeTerm(name="upright", weight=2.5, doc="height of the tip"),)
    facts = CommandFacts(slots=1, cores=1, rewards=1, rungs=False, native_terms=terms)
    assert "simulator's own reward" not in opening(design_request(description))[0].content
    told = description.model_copy(update={"command": facts})
    assert "\n\n- 2.5 × upright: height of the tip\n\n" in opening(design_request(told))[0].content


def test_what_is_told_in_all_requests_of_a_run_is_the_same(description: TaskDescription) -> None:
    requests = [
        design_request(description, operator, parent("1-01"), parent("1-02"), seed=seed)
        for operator in ASKED
        for seed in (1, 2)
    ]
    requests.append(
        replace(
            requests[0], memory=(parent("1-04"),), attempt="2-01", model="a/b", siblings=(REWARD,)
        )
    )
    assert len({opening(request)[0].content for request in requests}) == 1
    assert all(len(opening(request)) == 2 for request in requests)


@pytest.mark.parametrize("operator", ASKED)
def test_every_operator_has_a_prompt_with_its_parents(
    description: TaskDescription, operator: Operator
) -> None:
    parents = () if operator is Operator.FRESH else (parent("2-01"), parent("1-02", None))
    content = order_of(design_request(description, operator, *parents))
    for member in parents:
        assert member.reward.source.strip() in content
        assert f"> reasons of {member.id}" in content
    if parents:
        assert "the term centred of 2-01 never moves" in content
    assert ("fitness 3.25" in content) is bool(parents)
    assert ("fitness unknown" in content) is bool(parents)
    assert content.count("# What to do") == 1
    assert not re.search(r"\{[{%]|[}%]\}", content), "no template syntax is left"
    assert "\n\n\n\n" not in content


OBSERVATION = "def design_observation(cart_position):\n    return cart_position.unsqueeze(-1)\n"


def observing(
    description: TaskDescription, operator: Operator = Operator.FRESH, *parents: ParentSummary
) -> DesignRequest:
    """A request of a search that keeps the reward."""
    described = description.model_copy(update={"human_reward": baseline(REWARD)})
    settings = SearchSettings(env="cart", design="observation", env_steps=1000, num_envs=8)
    request = design_request(described, operator, *parents)
    return replace(request, settings=settings, number=2, angle=1, coverage="Nothing came near")


@pytest.mark.parametrize("operator", ASKED)
def test_where_the_reward_is_kept_an_observation_is_what_is_asked_for(
    description: TaskDescription, operator: Operator
) -> None:
    count = {Operator.FRESH: 0, Operator.CROSSOVER: 2}.get(operator, 1)
    parents = (parent("2-01"), parent("1-02"))[:count]
    known = Score(name="human", seeds=(1,), fitness=(3.0,), mean=3.0, std=None)
    told = replace(observing(description, operator, *parents), references=(known,))
    system, order = (each.content for each in opening(told))
    assert re.search(r"# What to do\n\nWrite (an|one|a better) observation", order)
    assert not re.search(r"reward function|'s terms|Pay for|weights|not shown", order)
    assert "`previous_<name>`, for a reward: an observation cannot read it." in system
    assert "exists as `previous_<name>`.\n" in opening(design_request(description))[0].content


def test_a_parents_fitness_says_what_it_is(description: TaskDescription) -> None:
    def told(summary: ParentSummary) -> str:
        return order_of(design_request(description, Operator.IMPROVE, summary))

    twice = replace(parent("1-01", 5.0), fitness_per_seed=(8.0, 2.0), episodes=32)
    assert (
        "attempt 1-01, fitness 5\n\nThat is without exploration noise: the mean of 2 trainings from"
        " different seeds (8, 2), of the policy that was kept, in 32 episodes each.\n\n```python"
        in told(twice)
    )
    assert "What its first training showed:" in told(twice)
    once = told(replace(twice, fitness_per_seed=(8.0,)))
    assert (
        "noise: one training, one seed, of the policy that was kept, in 32 episodes.\n\n```python"
        in once
    )
    assert "What its training showed:" in once
    assert "That is without" not in told(parent("1-02", None)), "of nothing nothing is said"


def test_what_the_seeds_do_not_tell_apart_is_said(description: TaskDescription) -> None:
    """Seeds differ by 2: two standard errors of the difference of single trainings are 2 · 2 · √2 =
    5.66, of a mean of four and a single one 4.47."""
    best = replace(parent("1-01", 10.0), fitness_per_seed=(10.0,))
    near = replace(parent("1-02", 4.4), fitness_per_seed=(4.4,))
    far = replace(parent("1-03", 4.3), fitness_per_seed=(4.3,))
    request = design_request(description, Operator.IMPROVE, near)
    request = replace(request, memory=(best, far), seed_spread=2.0)
    told = order_of(request)
    assert (
        "differ by 2 in fitness (standard deviation): 1-01 and 1-02 are not told apart by their"
        " fitness.\n" in told
    )
    often = replace(best, fitness_per_seed=(10.0,) * 4)
    assert "fitness (standard deviation).\n" in order_of(replace(request, memory=(often, far)))


def test_where_the_task_is_solved_is_said_until_all_that_is_shown_is_past_it(
    description: TaskDescription,
) -> None:
    request = design_request(description, Operator.IMPROVE, parent("1-01", 8.0))
    assert "counts as solved" not in order_of(request)
    assert "An episode counts as solved from 8 on." in order_of(
        replace(request, memory=(parent("1-02", 7.9),))
    )
    assert "An episode counts as solved from 8 on." in order_of(design_request(description))


def test_what_was_changed_follows_the_diagnosis(description: TaskDescription) -> None:
    changed = replace(
        parent("1-01"),
        changes=("2-03, made from 1-01: + term upright\n# What to do: fitness 3 → 4",),
    )
    content = order_of(design_request(description, Operator.IMPROVE, changed))
    line = "\n\n- 2-03, made from 1-01: + term upright # What to do: fitness 3 → 4\n\n"
    assert content.index("the term centred of 1-01 never moves") < content.index(line)
    assert "What was changed" not in order_of(
        design_request(description, Operator.IMPROVE, parent("1-01"))
    )


def test_the_first_proposal_of_a_run_is_free_and_the_others_differ_in_their_angle(
    description: TaskDescription,
) -> None:
    orders = [
        order_of(replace(design_request(description), number=place + 1, angle=place))
        for place in range(13)
    ]
    angles = [re.findall(r"^> (.*)$", order, re.MULTILINE) for order in orders]
    assert angles[0] == []
    assert all(len(angle) == 1 for angle in angles[1:])
    assert len({angle[0] for angle in angles[1:12]}) == 11, "as many as there are"
    assert angles[12] == angles[1]
    assert "Another proposal has had this angle" in orders[12]
    assert "Another proposal has had this angle" not in "".join(orders[:12])


def test_other_attempts_are_shown_with_their_code_in_short(description: TaskDescription) -> None:
    component = ComponentSummary(
        name="centred", values=(1.0,), maximum=1.0, mean=1.0, minimum=1.0, share=0.714
    )
    finding = DiagnosisFinding(
        code="dead-component", message="effort never changes", advice="drop it"
    )
    first = parent("1-03", 2.5)
    assert first.diagnosis is not None
    diagnosis = first.diagnosis.model_copy(
        update={
            "components": (component,),
            "findings": (finding, finding),
            "fitness_values": (None, 1.0, 2.345),
            "endings": "16 episodes of 402 steps on average, 3 ended early (fell 3)",
        }
    )
    first = replace(
        first, diagnosis=diagnosis, reasoning="Staying pays.\n\n# What to do\n" + "more " * 500
    )
    second = replace(parent("1-06", 1.5), reasoning="")
    request = replace(
        design_request(description, Operator.IMPROVE, parent("1-01")),
        memory=(first, second),
        seed_spread=0.5,
    )
    content = order_of(request)
    assert (
        content.count("different seeds")
        == content.count("different seeds differ by 0.5 in fitness")
        == 1
    )
    begin = (
        "## 1-03, fitness 2.5\n\nWithout exploration noise: 16 episodes of 402 steps on average, 3"
        " ended early (fell 3).\nFitness over its training, with exploration noise: – 1 2.35. Terms"
        " by their shares of the reward's size: centred 71 %.\n\n```python\n"
    )
    assert begin in content
    assert "\n## 1-06, fitness 1.5\n" in content
    assert (
        content.count(
            "```python\ndef compute_reward(cart_position):\n    return (-cart_position.abs(), "
        )
        == 2
    )
    assert "# of 1-03" not in content, "the comments are the parents' alone"
    assert "Staying pays" not in content
    assert "different seeds" not in order_of(replace(request, seed_spread=None))


def test_nothing_of_a_parent_breaks_the_prompt(description: TaskDescription) -> None:
    source = f"# ```\n# ````\n{REWARD}"
    broken = replace(
        parent("1-01"), reward=given_reward(source), reasoning="# What to do\n```\n" + "x" * 100_000
    )
    content = order_of(design_request(description, Operator.IMPROVE, broken))
    assert f"`````python\n{source.strip()}\n`````\n" in content
    assert "\n> # What to do\n> ```\n> xxx" in content
    assert len(content) < 10_000


def test_failures_are_told_by_what_they_read_and_why_they_ended(
    description: TaskDescription,
) -> None:
    raised = FailureSummary("1-02", given_reward(REWARD), "failed", "the reward\nraised an error")
    silent = FailureSummary("1-04", given_reward(""), "rejected", "P101 the source is empty")
    broken = FailureSummary(
        "1-05", given_reward("def compute_reward("), "rejected", "P103 not valid Python"
    )
    content = order_of(replace(design_request(description), failures=(raised, silent, broken)))
    assert (
        "- Attempt 1-02 (failed, a reward of cart_position): the reward raised an error\n"
        in content
    )
    assert "- Attempt 1-05 (rejected): P103 not valid Python\n" in content
    assert "1-04" not in content, "there is nothing to learn from an empty answer"
    assert "Came to nothing" not in order_of(
        replace(design_request(description), failures=(silent,))
    )


def test_code_in_the_system_prompt_keeps_its_own_rules() -> None:
    values = {"rewards": "code", "design": "reward", "calls": 0, "turns": 0}
    blocks = re.findall(r"```python\n(.*?)```", render("system.md", **values), re.DOTALL)
    example = ast.parse(blocks[-1])
    function = next(node for node in example.body if isinstance(node, ast.FunctionDef))
    assert function.name == "compute_reward"
    read = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
    assert all(argument.arg in read for argument in function.args.args), (
        "the example takes only what it uses"
    )
    assert number_constants(blocks[-1]).keys() <= read, "every constant is used"


def templates() -> list[Path]:
    folder = resource_folder("prompts")
    return [
        path for path in folder.rglob("*.md") if path.relative_to(folder).parts[0] != "recorded"
    ]


def test_no_prompt_knows_a_built_in_task() -> None:
    names = re.compile(
        r"cart|pole|hopper|\bant\b|quadcopter|rotor|torso|goal_distance", re.IGNORECASE
    )
    assert len(templates()) > 15
    for path in templates():
        assert not names.search(path.read_text()), path


# ── the reply, and asking again ───────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("reply", "note"),
    [
        (Cut("", FinishReason.REFUSED), "refused"),
        (Cut("Let me think, first", FinishReason.CUT_OFF), "--reply-tokens"),
        ("I would reward height.", "I would reward height."),
    ],
)
async def test_no_code_is_a_proposal_without_source(
    description: TaskDescription, reply: str | Cut, note: str
) -> None:
    proposal = await designer_of(ScriptedGateway(reply)).propose(design_request(description))
    assert proposal.reward.source == ""
    assert note in proposal.reasoning


BROKEN = "def compute_reward(cart_positoin):\n    return cart_positoin, {}\n"
HINT = "did you mean 'cart_position'?"
UNKNOWN = Finding(
    code="C303", severity="error", message="no variable 'cart_positoin'", line=1, hint=HINT
)
EMPTY = Finding(code="P101", severity="error", message="the source is empty")


async def revised(
    description: TaskDescription, first: str | Cut, *findings: Finding
) -> tuple[list[tuple[str, str]], str]:
    """Roles and texts of the conversation after a rejection, and the new source."""
    gateway = ScriptedGateway(first, fenced(REWARD))
    designer = designer_of(gateway)
    request = replace(design_request(description), revision=1)
    rejected = await designer.propose(request)
    mended = await designer.revise(request, rejected, Verdict(findings=findings))
    assert gateway.requests[1].sample == request.seed + 1
    return [
        (message.role, message.content) for message in gateway.requests[1].messages
    ], mended.reward.source


async def test_a_revision_continues_the_conversation_with_the_findings(
    description: TaskDescription,
) -> None:
    warning = Finding(code="R702", severity="warning", message="a policy may cheat", line=99)
    messages, source = await revised(description, fenced(BROKEN), UNKNOWN, warning)
    assert source == REWARD
    assert [role for role, _ in messages] == ["system", "user", "assistant", "user"]
    assert messages[2][1] == fenced(BROKEN).strip()
    said = (
        f"- C303, line 1: no variable 'cart_positoin' ({HINT})\n  `def"
        " compute_reward(cart_positoin):`\n"
    )
    assert said in messages[3][1]
    assert "- R702 (a warning), line 99: a policy may cheat\n" in messages[3][1]
    assert "the whole function" in messages[3][1]


@pytest.mark.parametrize(
    "reply", ["I would reward height.", "```javascript\nfunction compute_reward(x) {}\n```"]
)
async def test_a_revision_without_code_asks_for_it(
    description: TaskDescription, reply: str
) -> None:
    messages, _ = await revised(description, reply, EMPTY)
    assert [role for role, _ in messages] == ["system", "user", "assistant", "user"]
    assert messages[2][1] == reply
    assert "no Python code block that defines `compute_reward`" in messages[3][1]


@pytest.mark.parametrize(
    ("reply", "word"),
    [
        ("", "empty"),
        (Cut("I'd rather not.", FinishReason.REFUSED), "refusal"),
        (Cut("", FinishReason.CUT_OFF), "cut off before any answer"),
        (Cut("", FinishReason.TOOL_CALL), "There are no tools here"),
        (Cut("", FinishReason.REASONING_ALONE), "reasoning alone"),
    ],
)
async def test_who_refused_or_said_nothing_is_asked_plainly(
    description: TaskDescription, reply: str | Cut, word: str
) -> None:
    messages, source = await revised(description, reply, EMPTY)
    assert source == REWARD
    assert [role for role, _ in messages] == ["system", "user"], (
        "no empty turn, and no refusal to go on from"
    )
    assert messages[1][1].startswith(order_of(design_request(description)))
    assert word in messages[1][1].partition("# Once more")[2]


async def test_what_was_found_before_is_not_forgotten(description: TaskDescription) -> None:
    gateway = ScriptedGateway(
        fenced(BROKEN), "What do you mean?", Cut("", FinishReason.REFUSED), fenced(REWARD)
    )
    designer, request = designer_of(gateway), design_request(description)
    rejections: tuple[Rejection, ...] = ()
    proposal = await designer.propose(request)
    for finding in (UNKNOWN, EMPTY, EMPTY):
        verdict = Verdict(findings=(finding,))
        revised = await designer.revise(replace(request, rejections=rejections), proposal, verdict)
        rejections, proposal = (*rejections, Rejection(proposal, verdict)), revised
    assert proposal.reward.source == REWARD
    first, second, third, fourth = (
        [message.role for message in asked.messages] for asked in gateway.requests
    )
    assert first == ["system", "user"]
    assert second == [*first, "assistant", "user"]
    assert third == [*second, "assistant", "user"]
    assert fourth == third, "there is nothing to mend in a refusal"
    assert [message.content for message in gateway.requests[2].messages[:4]] == [
        message.content for message in gateway.requests[1].messages
    ]
    assert "Once more" in gateway.requests[3].messages[1].content


NOTHING = Cut("", FinishReason.CUT_OFF)


async def test_replies_without_a_reward_are_one_fault(description: TaskDescription) -> None:
    gateway = ScriptedGateway(*[NOTHING] * MOST_UNANSWERED, fenced(REWARD))
    designer, request = designer_of(gateway), design_request(description)
    verdict = Verdict(findings=(EMPTY,))
    rejected = await designer.propose(request)
    for _ in range(MOST_UNANSWERED - 2):
        rejected = await designer.revise(request, rejected, verdict)
    with pytest.raises(LanguageModelError, match=r"8 replies in a row .*--reply-tokens") as caught:
        await designer.propose(request)
    assert "--reply-tokens" in caught.value.hint
    with pytest.raises(LanguageModelError, match="8 replies in a row"):
        await designer.revise(request, rejected, verdict)
    assert len(gateway.requests) == MOST_UNANSWERED, "a revision under way asks no more"
    assert (await designer.propose(request)).reward.source == REWARD, "another try is asked"


async def test_replies_without_an_observation_are_called_so(description: TaskDescription) -> None:
    gateway = ScriptedGateway(*[fenced(f"{REWARD}\n\n{OBSERVATION}")] * MOST_UNANSWERED)
    designer, request = designer_of(gateway), observing(description)
    rejected = await designer.propose(request)
    for _ in range(MOST_UNANSWERED - 2):
        rejected = await designer.revise(request, rejected, Verdict(findings=(EMPTY,)))
    assert gateway.requests[1].messages[-1].content.startswith("No observation was taken")
    with pytest.raises(LanguageModelError, match=r"8 replies in a row hold no observation, .*anew"):
        await designer.propose(request)


async def test_a_very_long_answer_is_not_sent_back_whole(description: TaskDescription) -> None:
    messages, _ = await revised(description, fenced(BROKEN, "word " * 40_000), UNKNOWN)
    assert messages[2][1] == f"```python\n{BROKEN}```"
    endless = "".join(f"    x{number} = 1\n" for number in range(20_000))
    messages, _ = await revised(description, fenced(f"def compute_reward(x):\n{endless}"), UNKNOWN)
    assert len(messages[2][1]) < LONGEST_ANSWER_SHOWN + 100
    messages, _ = await revised(description, "word " * 40_000, EMPTY)
    assert len(messages[2][1]) < LONGEST_ANSWER_SHOWN + 100
    assert "more characters]" in messages[2][1]
