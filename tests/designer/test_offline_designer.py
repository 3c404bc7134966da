"""The offline designer on built-in environments and on invented ones, from words alone."""

from __future__ import annotations

import asyncio
import dataclasses
import random
from functools import cache

import pytest
import torch
from invented_environments import BOAT, description, variable
from reward_values import evaluate, reward_function, states

from eureka_agent.critic.memory import normalized
from eureka_agent.designer.interface import DesignRequest, FailureSummary, ParentSummary
from eureka_agent.designer.offline.compose import Dice
from eureka_agent.designer.offline.designer import OfflineDesigner, retune
from eureka_agent.designer.offline.terms import Genome, genome_of, pays, recover, term
from eureka_agent.designer.source_tools import parameter_names
from eureka_agent.records import NOT_ASKED, Finding, Operator, Proposal, TaskDescription, Verdict
from eureka_agent.simulation.catalogue import list_environments
from eureka_agent.simulation.loading import describe, load_environment

TASKS = [
    (entry.name, task)
    for entry in list_environments()
    for task in load_environment(entry.name).tasks
]


@cache
def built_in(environment: str, task: str) -> TaskDescription:
    return describe(load_environment(environment), task)


def request(
    task: TaskDescription, operator: Operator = Operator.FRESH, sentence: str = "", **fields: object
) -> DesignRequest:
    plain = DesignRequest(
        description=task,
        sentence=sentence or task.sentence,
        operator=operator,
        parents=(),
        failures=(),
        seed=0,
    )
    return dataclasses.replace(plain, **fields)  # type: ignore[arg-type]


def propose(asked: DesignRequest) -> Proposal:
    return asyncio.run(OfflineDesigner().propose(asked))


def generation(task: TaskDescription, samples: int, sentence: str = "") -> list[Proposal]:
    """Fresh proposals of one iteration, each told of those before it."""
    made: list[Proposal] = []
    for sample in range(samples):
        made.append(
            propose(
                request(
                    task,
                    sentence=sentence,
                    seed=100 + sample,
                    siblings=tuple(each.reward.source for each in made),
                )
            )
        )
    return made


def genome_in(proposal: Proposal, task: TaskDescription) -> Genome:
    return recover(proposal.reward.source, [each.name for each in task.variables])


def code_of(proposal: Proposal) -> str:
    """The source without its comment block."""
    return proposal.reward.source.split("# terms, as")[0]


def sources_are_sound(proposals: list[Proposal], task: TaskDescription) -> None:
    known = {prefix + each.name for each in task.public_variables() for prefix in ("", "previous_")}
    for proposal in proposals:
        assert set(parameter_names(proposal.reward.source)) <= known
        function = reward_function(proposal.reward.source, task.variables)
        for scale in (0.0, 1.0, 1e3, 1e6, 1e18):
            total, components = function(states(task, scale))
            assert total.shape == (8,)
            assert total.dtype is torch.float32
            assert bool(torch.isfinite(total).all()), (
                f"not finite at scale {scale}:\n{proposal.reward.source}"
            )
            torch.testing.assert_close(
                torch.stack(list(components.values())).sum(dim=0), total, rtol=1e-4, atol=1e-4
            )
        assert not torch.equal(
            function(states(task, 1.0, seed=1))[0], function(states(task, 1.0, seed=2))[0]
        )


@pytest.mark.parametrize(("environment", "task"), TASKS)
def test_proposals_for_built_in_tasks_are_sound_and_all_different(
    environment: str, task: str
) -> None:
    what = built_in(environment, task)
    proposals = generation(what, 10)
    sources_are_sound(proposals, what)
    assert len({normalized(each.reward.source) for each in proposals}) == 10


@pytest.mark.parametrize(
    "operator", [each for each in Operator if each not in (Operator.FRESH, *NOT_ASKED)]
)
def test_offspring_are_sound_differ_from_their_parents_and_stay_recoverable(
    operator: Operator,
) -> None:
    what = built_in("hopper", "run")
    first, second = generation(what, 2)
    parents = (
        ParentSummary("0-0", first.reward, 2.0, None, ""),
        ParentSummary("0-1", second.reward, 1.0, None, ""),
    )
    children = [propose(request(what, operator, parents=parents, seed=seed)) for seed in range(8)]
    sources_are_sound(children, what)
    for child in children:
        assert normalized(child.reward.source) not in {
            normalized(first.reward.source),
            normalized(second.reward.source),
        }
        assert child.operator is operator
        assert child.parents == ("0-0", "0-1")
        assert pays(genome_in(child, what))
    assert len({normalized(child.reward.source) for child in children}) > 4


def test_equal_requests_give_equal_proposals() -> None:
    what = built_in("ant", "run")
    for seed in (0, 7):
        assert propose(request(what, seed=seed, siblings=("x",))) == propose(
            request(what, seed=seed, siblings=("x",))
        )
    first, second = (propose(request(what, seed=each, siblings=("x",))) for each in (0, 7))
    assert first.reward.source != second.reward.source


def test_siblings_and_failures_are_not_repeated(boat: TaskDescription) -> None:
    first = propose(request(boat))
    failed = FailureSummary("0-0", first.reward, "failed", "turned NaN")
    siblings = request(boat, siblings=(first.reward.source,))
    for again in (siblings, request(boat, failures=(failed,))):
        assert normalized(propose(again).reward.source) != normalized(first.reward.source)


def test_it_opens_the_drawer(arm: TaskDescription) -> None:
    first = propose(request(arm))
    _, components = evaluate(first.reward.source, arm, {"drawer_opening": torch.tensor([0.0, 0.4])})
    opening = components["opening"]
    assert opening[1] > opening[0]
    closing = propose(request(arm, sentence="close the drawer")).reward.source
    total, _ = evaluate(closing, arm, {"drawer_opening": torch.tensor([0.0, 0.4])})
    assert total[0] > total[1]
    assert "lamp_brightness" not in code_of(first)
    assert "drawer_opening" in first.reasoning


def test_it_sails_to_the_buoy_upright(boat: TaskDescription) -> None:
    source = propose(request(boat)).reward.source
    buoy, places = torch.tensor([[5.0, 0.0]] * 2), torch.tensor([[0.0, 0.0], [5.0, 0.0]])
    total, _ = evaluate(source, boat, {"buoy_position": buoy, "hull_position": places})
    assert total[1] > total[0]
    total, _ = evaluate(source, boat, {"roll_angle": torch.tensor([0.0, 1.5])})
    assert total[0] > total[1]


def test_survival_is_paid_where_failing_could_pay(boat: TaskDescription) -> None:
    # a speed may be negative, so an early end could be the better deal
    racing = propose(request(boat, sentence="sail forward as fast as possible"))
    total, _ = evaluate(racing.reward.source, boat, {"terminated": torch.tensor([0.0, 1.0])})
    assert total[0] > total[1]


@pytest.mark.parametrize(
    ("sentence", "faster", "slower"),
    [
        ("sail forward as fast as possible", [2.0, 0.0, 0.0], [1.0, 0.0, 0.0]),
        ("sail backward", [-2.0, 0.0, 0.0], [2.0, 0.0, 0.0]),
        ("sail forward at 2 m/s", [2.0, 0.0, 0.0], [4.0, 0.0, 0.0]),
    ],
)
def test_directions_and_speeds(sentence: str, faster: list[float], slower: list[float]) -> None:
    what = description(sentence, BOAT, 2)
    total, _ = evaluate(
        propose(request(what)).reward.source,
        what,
        {"hull_velocity": torch.tensor([faster, slower])},
    )
    assert total[0] > total[1]


@pytest.mark.parametrize(
    ("sentence", "rate"), [("turn clockwise", "-yaw_rate"), ("flip", "pitch_rate")]
)
def test_turning_is_about_the_vertical_unless_the_words_name_a_flip(
    sentence: str, rate: str
) -> None:
    rates = ("pitch_rate", "roll_rate", "yaw_rate")
    what = description(
        sentence, tuple(variable(each, (), "rad/s", "body", "of the drone") for each in rates), 1
    )
    first = propose(request(what))
    assert [rate for rate in rates if rate in code_of(first)] == [rate.removeprefix("-")]
    sign = -1.0 if rate.startswith("-") else 1.0
    speed = {rate.removeprefix("-"): torch.tensor([sign, -sign])}
    total, _ = evaluate(first.reward.source, what, speed)
    assert total[0] > total[1]


def test_a_place_is_kept_at_0_unasked_only_where_that_is_the_middle_of_its_range() -> None:
    angle = variable("pole_angle", (), "rad", "world", "angle of the pole; 0 is upright")
    for bounds, kept in (((-2.0, 2.0), True), ((0.0, 4.0), False), (None, False)):
        cart = variable("cart_position", (), "m", "world", "place of the cart on its rail", bounds)
        proposals = generation(description("balance the pole upright", (angle, cart), 1), 8)
        assert any('"centred"' in each.reward.source for each in proposals) is kept, bounds


def test_of_choices_none_is_an_effort() -> None:
    """No index costs more than another, and none is nearer to the one before."""
    sentence = "keep the pole upright smoothly, with as little effort as possible"
    task = describe(load_environment("gymnasium:CartPole-v1"))
    proposals = generation(task, 8, sentence)
    parent = ParentSummary("1-01", proposals[0].reward, 1.0, None, "")
    for operator in (Operator.IMPROVE, Operator.MUTATE_STRUCTURE):
        proposals.append(propose(request(task, operator, sentence, parents=(parent,))))
    assert not any("actions" in parameter_names(each.reward.source) for each in proposals)
    sources_are_sound(proposals, task)
    # and where nothing else can be read, what is left is how an episode ends
    only = description("xyzzy", (), 1, causes=("done",)).model_copy(update={"action_choices": (3,)})
    sources_are_sound(generation(only, 2), only)
    effort = generation(description("save effort", (), 2), 1)[0]
    assert "actions" in parameter_names(effort.reward.source), "of quantities it is one"


def test_variables_that_no_word_names_are_used_by_their_kind(lander: TaskDescription) -> None:
    proposals = generation(lander, 8)
    read = [set(parameter_names(each.reward.source)) for each in proposals]
    for name in ("lander_position", "lander_velocity", "leg_contacts"):
        assert sum(name in names for names in read) >= 3, name
    down = {
        "lander_position": torch.tensor([[0.0, 0.0], [0.0, 0.0], [3.0, 5.0]]),
        "lander_velocity": torch.tensor([[0.0, 0.0], [0.0, -4.0], [0.0, 0.0]]),
        "leg_contacts": torch.tensor([[1.0, 1.0], [1.0, 1.0], [0.0, 0.0]]),
    }
    total, _ = evaluate(proposals[0].reward.source, lander, down)
    assert total[0] > total[1]  # rest on the pad before a hard hit
    assert total[0] > total[2]  # and before hovering far away


def test_a_changed_structure_is_one_term_more_or_one_less() -> None:
    what = built_in("hopper", "run")
    parent = propose(request(what))
    before = genome_in(parent, what)
    parents = (ParentSummary("0-0", parent.reward, 1.0, None, ""),)
    kinds = set()
    for seed in range(24):
        child = propose(request(what, Operator.MUTATE_STRUCTURE, parents=parents, seed=seed))
        after = genome_in(child, what)
        assert "forward" in after  # what the words ask for is never dropped
        more, less = after.keys() - before.keys(), before.keys() - after.keys()
        assert all(before[name] == after[name] for name in before.keys() & after.keys())
        kinds.add((len(more), len(less)))
    assert kinds == {(1, 0), (0, 1)}


def test_weights_are_retuned_up_and_down() -> None:
    genome = genome_of([term("alive", "alive", 1.0)])
    tuned = [
        retune(genome, Dice(random.Random(seed))).genome["alive"].numbers["weight"]
        for seed in range(20)
    ]
    # by chance all twenty go the same way in two of a million cases; the seeds are fixed
    assert min(tuned) < 1.0 < max(tuned)


def test_a_term_that_the_critic_names_is_left_out(boat: TaskDescription) -> None:
    rejected = propose(request(boat))
    message = "the component 'effort' takes too long"
    verdict = Verdict(findings=(Finding(code="D307", severity="error", message=message),))
    revised = asyncio.run(OfflineDesigner().revise(request(boat), rejected, verdict))
    kept = set(genome_in(rejected, boat)) - {"effort"}
    assert set(genome_in(revised, boat)) == kept
    assert "takes too long" in revised.reasoning


def test_a_rejection_that_blames_no_term_gives_another_reward(boat: TaskDescription) -> None:
    rejected = propose(request(boat))
    message = "the reward is the same in every state"
    verdict = Verdict(findings=(Finding(code="D009", severity="error", message=message),))
    revised = asyncio.run(OfflineDesigner().revise(request(boat), rejected, verdict))
    assert normalized(revised.reward.source) != normalized(rejected.reward.source)
    sources_are_sound([revised], boat)
    drafts = tuple(generation(boat, 3)[1:])
    asked = request(boat, drafts=drafts)
    revised = asyncio.run(OfflineDesigner().revise(asked, rejected, verdict))
    assert revised.reward == drafts[0].reward
    assert "the same in every state" in revised.reasoning


def test_a_success_is_paid_and_only_failures_cost(lander: TaskDescription) -> None:
    doc = "1 where the episode ends here by success (landed), else 0"
    succeeded = variable("succeeded", (), "1", "-", doc, (0.0, 1.0))
    causes = {"termination_causes": ("crashed", "landed"), "success_causes": ("landed",)}
    landing = lander.model_copy(update={**causes, "variables": (*lander.variables, succeeded)})
    proposals = generation(landing, 8)
    for proposal in proposals:
        assert "succeeded" in parameter_names(proposal.reward.source)
        # it would make floating worth more than landing
        assert '"alive"' not in proposal.reward.source
    charged = [proposal for proposal in proposals if '"failure"' in proposal.reward.source]
    assert charged
    for proposal in proposals:
        _, parts = evaluate(
            proposal.reward.source, landing, {"succeeded": torch.tensor([0.0, 1.0])}
        )
        assert float(parts["success"][1] - parts["success"][0]) > 20.0
