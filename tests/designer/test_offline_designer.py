"""The offline designer on built-in environments and on invented ones, from words alone."""

from __future__ import annotations

import asyncio
import dataclasses
from functools import cache

import pytest
import torch
from invented_environments import BOAT, description, variable
from reward_values import evaluate, reward_function, states

from eureka_agent.designer.interface import DesignRequest, FailureSummary, ParentSummary
from eureka_agent.designer.offline.designer import OfflineDesigner
from eureka_agent.designer.offline.genome import Genome
from eureka_agent.designer.offline.render import recover
from eureka_agent.designer.source_tools import normalized, parameter_names
from eureka_agent.records import Finding, Operator, Proposal, TaskDescription, Verdict
from eureka_agent.simulation.catalogue import list_environments
from eureka_agent.simulation.loading import describe, load_environment

TASKS = [(entry.name, task) for entry in list_environments() for task in load_environment(entry.name).tasks]


@cache
def built_in(environment: str, task: str) -> TaskDescription:
    return describe(load_environment(environment), task)


def request(
    task: TaskDescription, operator: Operator = Operator.FRESH, sentence: str = "", **fields: object
) -> DesignRequest:
    plain = DesignRequest(
        description=task, sentence=sentence or task.sentence, operator=operator, parents=(), failures=(), seed=0
    )
    return dataclasses.replace(plain, **fields)  # type: ignore[arg-type]


def propose(asked: DesignRequest) -> Proposal:
    return asyncio.run(OfflineDesigner().propose(asked))


def generation(task: TaskDescription, samples: int, sentence: str = "") -> list[Proposal]:
    """Fresh proposals of one iteration, each told of those before it."""
    made: list[Proposal] = []
    for sample in range(samples):
        made.append(
            propose(request(task, sentence=sentence, seed=100 + sample, siblings=tuple(each.source for each in made)))
        )
    return made


def genome_of(proposal: Proposal, task: TaskDescription) -> Genome:
    return recover(proposal.source, [each.name for each in task.variables])


def code_of(proposal: Proposal) -> str:
    """The source without its comment block."""
    return proposal.source.split("# terms, as")[0]


def sources_are_sound(proposals: list[Proposal], task: TaskDescription) -> None:
    known = {prefix + each.name for each in task.public_variables() for prefix in ("", "previous_")}
    for proposal in proposals:
        assert set(parameter_names(proposal.source)) <= known
        function = reward_function(proposal.source, task.variables)
        for scale in (0.0, 1.0, 1e3, 1e6, 1e18):
            total, components = function(states(task, scale))
            assert total.shape == (8,)
            assert total.dtype is torch.float32
            assert bool(torch.isfinite(total).all()), f"not finite at scale {scale}:\n{proposal.source}"
            torch.testing.assert_close(torch.stack(list(components.values())).sum(dim=0), total, rtol=1e-4, atol=1e-4)
        assert not torch.equal(function(states(task, 1.0, seed=1))[0], function(states(task, 1.0, seed=2))[0])


@pytest.mark.parametrize(("environment", "task"), TASKS)
def test_proposals_for_built_in_tasks_are_sound_and_all_different(environment: str, task: str) -> None:
    what = built_in(environment, task)
    proposals = generation(what, 10)
    sources_are_sound(proposals, what)
    assert len({normalized(each.source) for each in proposals}) == 10


@pytest.mark.parametrize("operator", [each for each in Operator if each is not Operator.FRESH])
def test_offspring_are_sound_differ_from_their_parents_and_stay_recoverable(operator: Operator) -> None:
    what = built_in("hopper", "run")
    first, second = generation(what, 2)
    parents = (ParentSummary("0-0", first.source, 2.0, None, ""), ParentSummary("0-1", second.source, 1.0, None, ""))
    children = [propose(request(what, operator, parents=parents, seed=seed)) for seed in range(8)]
    sources_are_sound(children, what)
    for child in children:
        assert normalized(child.source) not in {normalized(first.source), normalized(second.source)}
        assert child.operator is operator
        assert child.parents == ("0-0", "0-1")
        assert genome_of(child, what).base is None
    assert len({normalized(child.source) for child in children}) > 4


def test_equal_requests_give_equal_proposals() -> None:
    what = built_in("ant", "run")
    for seed in (0, 7):
        assert propose(request(what, seed=seed, siblings=("x",))) == propose(request(what, seed=seed, siblings=("x",)))
    assert (
        propose(request(what, seed=0, siblings=("x",))).source != propose(request(what, seed=7, siblings=("x",))).source
    )


def test_siblings_and_failures_are_not_repeated(boat: TaskDescription) -> None:
    first = propose(request(boat))
    again = propose(request(boat, siblings=(first.source,)))
    assert normalized(again.source) != normalized(first.source)
    failed = FailureSummary("0-0", first.source, "failed", "turned NaN")
    assert normalized(propose(request(boat, failures=(failed,))).source) != normalized(first.source)


def test_it_opens_the_drawer_with_the_hand_at_the_handle(arm: TaskDescription) -> None:
    first = propose(request(arm))
    _, components = evaluate(first.source, arm, {"drawer_opening": torch.tensor([0.0, 0.4])})
    opening = components["opening"]
    assert opening[1] > opening[0]
    near = {
        "gripper_position": torch.tensor([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]]),
        "handle_position": torch.tensor([[1.0, 0.0, 0.0]] * 2),
    }
    total, _ = evaluate(first.source, arm, near)
    assert total[1] > total[0]
    assert "lamp_brightness" not in code_of(first)
    assert "'open'" in first.reasoning
    assert "drawer_opening" in first.reasoning


def test_it_closes_the_drawer_for_another_sentence(arm: TaskDescription) -> None:
    total, _ = evaluate(
        propose(request(arm, sentence="close the drawer")).source, arm, {"drawer_opening": torch.tensor([0.0, 0.4])}
    )
    assert total[0] > total[1]


def test_it_sails_to_the_buoy_upright(boat: TaskDescription) -> None:
    first = propose(request(boat))
    buoy = torch.tensor([[5.0, 0.0]] * 2)
    total, _ = evaluate(
        first.source, boat, {"buoy_position": buoy, "hull_position": torch.tensor([[0.0, 0.0], [5.0, 0.0]])}
    )
    assert total[1] > total[0]
    total, _ = evaluate(first.source, boat, {"roll_angle": torch.tensor([0.0, 1.5])})
    assert total[0] > total[1]


def test_survival_is_paid_where_failing_could_pay(boat: TaskDescription) -> None:
    # a speed may be negative, so an early end could be the better deal
    racing = propose(request(boat, sentence="sail forward as fast as possible"))
    total, _ = evaluate(racing.source, boat, {"terminated": torch.tensor([0.0, 1.0])})
    assert total[0] > total[1]


@pytest.mark.parametrize(
    ("sentence", "faster", "slower"),
    [
        ("sail forward as fast as possible", [2.0, 0.0, 0.0], [1.0, 0.0, 0.0]),
        ("sail backward", [-2.0, 0.0, 0.0], [2.0, 0.0, 0.0]),
        ("drift to the left", [0.0, 1.0, 0.0], [0.0, -1.0, 0.0]),
        ("move right", [0.0, -1.0, 0.0], [0.0, 1.0, 0.0]),
        ("sail forward at 2 m/s", [2.0, 0.0, 0.0], [4.0, 0.0, 0.0]),
    ],
)
def test_directions_and_speeds(sentence: str, faster: list[float], slower: list[float]) -> None:
    what = description(sentence, BOAT, 2)
    total, _ = evaluate(propose(request(what)).source, what, {"hull_velocity": torch.tensor([faster, slower])})
    assert total[0] > total[1]


def test_swing_up_is_paid_at_the_top_and_without_whirling() -> None:
    what = description(
        "swing the load up and keep it balanced",
        (
            variable("load_angle", (), "rad", "world", "angle of the load; 0 hangs down, pi is upright"),
            variable("load_angular_velocity", (), "rad/s", "world", "angular velocity of the load"),
        ),
        1,
    )
    first = propose(request(what))
    total, _ = evaluate(first.source, what, {"load_angle": torch.tensor([0.0, 1.5, 3.14])})
    assert total[2] > total[1] > total[0]
    total, _ = evaluate(
        first.source,
        what,
        {"load_angle": torch.tensor([3.14, 3.14]), "load_angular_velocity": torch.tensor([0.0, 10.0])},
    )
    assert total[0] > total[1]


def test_a_sentence_that_says_nothing_still_gives_rewards() -> None:
    what = description("tidy up the mess", (variable("mess_amount", (), "1", "-", "how much mess there is"),), 2)
    proposals = generation(what, 6)
    sources_are_sound(proposals, what)
    assert all("mess_amount" in code_of(each) for each in proposals[:1])
    unknown = description("xyzzy", (variable("observation", (4,), "1", "-", "entry of the observation"),), 2)
    sources_are_sound(generation(unknown, 6), unknown)


def test_private_variables_stay_hidden(arm: TaskDescription) -> None:
    for proposal in generation(arm, 8):
        assert "secret" not in proposal.source
        assert "secret" not in proposal.prompt


def test_a_reward_of_someone_else_is_built_upon(boat: TaskDescription) -> None:
    human = "def compute_reward(hull_velocity):\n    return hull_velocity[:, 0], {'speed': hull_velocity[:, 0]}\n"
    parent = ParentSummary("0-0", human, 1.0, None, "")
    for operator in (Operator.IMPROVE, Operator.MUTATE_STRUCTURE, Operator.RETUNE_WEIGHTS):
        child = propose(request(boat, operator, parents=(parent,), seed=3))
        sources_are_sound([child], boat)
        _, components = evaluate(child.source, boat, {"hull_velocity": torch.tensor([[2.0, 0.0, 0.0]])})
        assert components["speed"].item() == 2.0
        assert normalized(child.source) != normalized(human)


def test_a_rejected_term_is_left_out(boat: TaskDescription) -> None:
    rejected = propose(request(boat))
    place = next(
        number for number, line in enumerate(rejected.source.splitlines(), start=1) if line.startswith("    effort = ")
    )
    verdict = Verdict(findings=(Finding(code="D003", severity="error", message="takes too long", line=place),))
    revised = asyncio.run(OfflineDesigner().revise(request(boat), rejected, verdict))
    kept = {term.name for term in genome_of(rejected, boat).terms} - {"effort"}
    assert {term.name for term in genome_of(revised, boat).terms} == kept
    assert "takes too long" in revised.reasoning


def test_a_rejection_that_blames_no_term_gives_another_reward(boat: TaskDescription) -> None:
    rejected = propose(request(boat))
    verdict = Verdict(
        findings=(Finding(code="D009", severity="error", message="the reward is the same in every state"),)
    )
    revised = asyncio.run(OfflineDesigner().revise(request(boat), rejected, verdict))
    assert normalized(revised.source) != normalized(rejected.source)
    sources_are_sound([revised], boat)


def test_the_record_of_a_proposal_can_be_read(arm: TaskDescription) -> None:
    first = propose(request(arm))
    assert "open the drawer" in first.prompt
    assert "drawer_opening" in first.prompt
    assert first.source in first.reply
    assert first.cost.money == 0
    assert first.designer == "offline"
