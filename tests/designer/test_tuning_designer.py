"""The designer that chooses constants: proposals, revisions, and on real rewards."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import math
import random
from decimal import Decimal

import pytest
from reward_values import reward_function, states

from eureka_agent.critic.allow_list import check_allow_list
from eureka_agent.critic.contract import check_contract
from eureka_agent.critic.memory import KnownReward
from eureka_agent.critic.novelty import find_same_source
from eureka_agent.critic.parse import parse
from eureka_agent.designer.given import given_reward
from eureka_agent.designer.interface import (
    DesignRequest,
    FailureSummary,
    ParentSummary,
    TunedReward,
)
from eureka_agent.designer.offline.designer import OfflineDesigner
from eureka_agent.designer.offline.render import recover
from eureka_agent.designer.source_tools import parameter_names
from eureka_agent.designer.tuning.constants import family, tunable_constants, with_constants
from eureka_agent.designer.tuning.designer import TuningDesigner, can_tune
from eureka_agent.records import Cost, Finding, Operator, Proposal, TaskDescription, Verdict
from eureka_agent.resources import resource_folder

PARENT = '''import torch

CALM_TEMPERATURE = 4.0  # rad/s
EFFORT_WEIGHT = -0.05
DT = 0.02


def compute_reward(wind_velocity, actions):
    """Größer ist besser."""
    calm = torch.exp(-wind_velocity[:, 0].abs() * DT / CALM_TEMPERATURE)
    effort = EFFORT_WEIGHT * actions.square().sum(dim=-1)
    return calm + effort, {"calm": calm, "effort": effort}
'''
CONSTANTS = {"CALM_TEMPERATURE": 4.0, "EFFORT_WEIGHT": -0.05}


def request(task: TaskDescription, parent: str = PARENT, **fields: object) -> DesignRequest:
    plain = DesignRequest(
        description=task,
        sentence=task.sentence,
        operator=Operator.TUNE_WEIGHTS,
        parents=(ParentSummary("1-2", given_reward(parent), 1.5, None, ""),),
        failures=(),
        seed=0,
    )
    return dataclasses.replace(plain, **fields)  # type: ignore[arg-type]


def propose(asked: DesignRequest) -> Proposal:
    return asyncio.run(TuningDesigner().propose(asked))


def revise(
    asked: DesignRequest, rejected: Proposal, message: str = "NaN on recorded states"
) -> Proposal:
    verdict = Verdict(findings=(Finding(code="D305", severity="error", message=message),))
    return asyncio.run(TuningDesigner().revise(asked, rejected, verdict))


def trained(number: int, parent: str = PARENT) -> tuple[TunedReward, ...]:
    """The parent and rewards of its form; less effort is better here."""
    generator = random.Random(0)
    found = [TunedReward("1-2", given_reward(parent), 1.5)]
    for place in range(1, number):
        values = {
            name: value * math.exp(generator.gauss(0.0, 0.6))
            for name, value in tunable_constants(parent).items()
        }
        fitness = (
            1.5 + math.log(-0.05 / values["EFFORT_WEIGHT"])
            if "EFFORT_WEIGHT" in values
            else generator.random()
        )
        found.append(
            TunedReward(f"2-{place}", given_reward(with_constants(parent, values)), fitness)
        )
    return tuple(found)


def step(source: str) -> float:
    """The largest change from the parent, as a logarithm."""
    values = tunable_constants(source)
    return max(abs(math.log(values[name] / value)) for name, value in CONSTANTS.items())


@pytest.mark.parametrize("number", [0, 1, 8])
def test_a_proposal_has_the_parents_form_and_other_constants(
    boat: TaskDescription, number: int
) -> None:
    proposal = propose(request(boat, trained=trained(number) if number else ()))
    assert family(proposal.reward.source) == family(PARENT)
    values = tunable_constants(proposal.reward.source)
    assert values.keys() == CONSTANTS.keys()
    assert all(0.2 <= values[name] / value <= 5.0 for name, value in CONSTANTS.items())
    # nothing but the two numbers is another
    assert with_constants(proposal.reward.source, CONSTANTS) == PARENT
    assert "DT = 0.02\n" in proposal.reward.source
    assert (proposal.operator, proposal.parents, proposal.reward.author) == (
        Operator.TUNE_WEIGHTS,
        ("1-2",),
        "tuning",
    )
    assert proposal.cost == Cost(money=Decimal(0), prompt_tokens=0, completion_tokens=0)


@pytest.mark.parametrize("number", [1, 8])
def test_equal_requests_give_equal_proposals(boat: TaskDescription, number: int) -> None:
    asked = request(boat, trained=trained(number))
    first = propose(asked)
    assert propose(dataclasses.replace(asked, attempt="3-1")) == first
    assert propose(dataclasses.replace(asked, seed=1)).reward.source != first.reward.source
    assert revise(asked, first) == revise(asked, first)


async def test_proposals_that_are_asked_for_at_once_are_those_asked_for_in_turn(
    boat: TaskDescription,
) -> None:
    asked = [request(boat, trained=trained(8), seed=seed) for seed in range(6)]
    designer = TuningDesigner()
    together = await asyncio.gather(*(designer.propose(each) for each in asked))
    assert together == [await designer.propose(each) for each in asked]
    assert len({proposal.reward.source for proposal in together}) == 6


def test_what_is_known_is_not_proposed_again(boat: TaskDescription) -> None:
    """There is a single constant and a range full of neighbours. A proposal keeps 5 % from all of
    them; otherwise the same draw would come again."""
    parent = PARENT.replace("EFFORT_WEIGHT * actions", "-0.05 * actions").replace(
        "EFFORT_WEIGHT = -0.05\n", ""
    )
    asked = request(boat, parent, trained=(TunedReward("1-2", given_reward(parent), 1.5),))
    siblings: list[str] = []
    for _ in range(12):
        siblings.append(propose(dataclasses.replace(asked, siblings=tuple(siblings))).reward.source)
    values = sorted(tunable_constants(source)["CALM_TEMPERATURE"] for source in [parent, *siblings])
    assert all(after / before > 1.049 for before, after in itertools.pairwise(values))
    failures = tuple(
        FailureSummary(f"2-{place}", given_reward(source), "rejected", "")
        for place, source in enumerate(siblings)
    )
    for told in ({"failures": failures}, {"siblings": tuple(siblings)}):
        again = tunable_constants(propose(dataclasses.replace(asked, **told)).reward.source)[
            "CALM_TEMPERATURE"
        ]  # type: ignore[arg-type]
        assert all(abs(math.log(again / value)) > math.log(1.049) for value in values)


def test_other_forms_teach_nothing(boat: TaskDescription) -> None:
    others = tuple(
        TunedReward(
            f"3-{place}",
            given_reward(each.reward.source.replace("calm + effort,", "calm - effort,")),
            100.0 + place,
        )
        for place, each in enumerate(trained(8))
    )
    others += (
        TunedReward("4-0", given_reward(PARENT.replace("-0.05", "0.05")), 50.0),
        TunedReward("4-1", given_reward("def ("), 60.0),
    )
    one, all_of_them = request(boat, trained=trained(1)), request(boat, trained=trained(1) + others)
    assert propose(one) == propose(all_of_them)


def test_a_parent_that_is_not_among_the_trained_counts_as_a_trial(boat: TaskDescription) -> None:
    proposal = propose(request(boat, trained=trained(8)[1:]))
    assert "1-2: 1.5; CALM_TEMPERATURE 4, EFFORT_WEIGHT -0.05\n" in proposal.prompt
    assert proposal.prompt.count("\n2-") == 7
    unscored = request(boat, parents=(ParentSummary("1-2", given_reward(PARENT), None, None, ""),))
    assert "1-2:" not in propose(unscored).prompt
    assert propose(unscored).reward.source != PARENT


def test_fitness_that_is_no_number_is_left_out(boat: TaskDescription) -> None:
    broken = tuple(dataclasses.replace(each, fitness=math.nan) for each in trained(8)[1:])
    proposal = propose(request(boat, trained=trained(1) + broken))
    assert "With 1 training of this form known" in proposal.reasoning


def test_the_optimiser_goes_where_it_was_better(boat: TaskDescription) -> None:
    """Less effort was better in every one of sixteen trainings."""
    asked = request(boat, trained=trained(16))
    drawn = [
        tunable_constants(propose(dataclasses.replace(asked, seed=seed)).reward.source)
        for seed in range(20)
    ]
    below = [values["EFFORT_WEIGHT"] > CONSTANTS["EFFORT_WEIGHT"] for values in drawn]
    assert sum(below) >= 16


def test_the_reasoning_says_what_changed_and_why(boat: TaskDescription) -> None:
    proposal = propose(request(boat, trained=trained(1)))
    values = tunable_constants(proposal.reward.source)
    assert (
        proposal.reasoning
        == "Kept the form of 1-2 and changed 2 of its 2 constants: CALM_TEMPERATURE 4 →"
        f" {values['CALM_TEMPERATURE']:g}, EFFORT_WEIGHT -0.05 → {values['EFFORT_WEIGHT']:g}."
        " With 1 training of this form known, this is a random step around 1-2."
    )
    known = trained(8)
    best = max(known, key=lambda each: each.fitness)
    worst = min(each.fitness for each in known)
    assert propose(request(boat, trained=known)).reasoning.endswith(
        f"A Parzen estimator chose them by 8 trainings of this form, with fitness from {worst:.4g}"
        f" to {best.fitness:.4g} ({best.id})."
    )


@pytest.mark.parametrize("number", [1, 8])
def test_revisions_come_closer_to_the_parent(boat: TaskDescription, number: int) -> None:
    for seed in range(10):
        asked = request(boat, trained=trained(number), seed=seed)
        first = propose(asked)
        second = revise(asked, first)
        third = revise(asked, second)
        assert len({first.reward.source, second.reward.source, third.reward.source, PARENT}) == 4
        assert family(second.reward.source) == family(third.reward.source) == family(PARENT)
        assert step(second.reward.source) <= 0.5 * step(first.reward.source) + 1e-3
        assert step(third.reward.source) <= 0.5 * step(second.reward.source) + 1e-3
        assert second.operator is Operator.TUNE_WEIGHTS
        assert second.reasoning.startswith(
            "The critic found: NaN on recorded states. So this is another step"
        )


def test_a_revision_of_something_else_is_a_step_from_the_parent(boat: TaskDescription) -> None:
    rejected = propose(request(boat)).model_copy(
        update={"reward": given_reward("def compute_reward(x):\n    return x, {}\n")}
    )
    revised = revise(request(boat), rejected)
    assert family(revised.reward.source) == family(PARENT)
    assert 0.0 < step(revised.reward.source) <= 0.5 * math.log(5.0) + 1e-3


@pytest.mark.parametrize(
    "source",
    [
        "",
        "def (",
        "W = 0.5\n",
        "def compute_reward(x):\n    return 0.5 * x, {}\n",
        "N = 2\ndef compute_reward(x):\n    return N * x + 1.0, {}\n",
        "DT = 0.5\ndef compute_reward(x):\n    return x / (x + DT), {}\n",
    ],
)
def test_what_cannot_be_tuned_is_said_and_not_raised(source: str, boat: TaskDescription) -> None:
    assert not can_tune(source)
    proposal = propose(
        request(boat, source, trained=(TunedReward("1-2", given_reward(source), 1.0),))
    )
    assert proposal.reward.source == ""
    assert "The reward of 1-2 has no constants to tune" in proposal.reasoning
    assert proposal.operator is Operator.TUNE_WEIGHTS
    assert revise(request(boat, source), proposal).reward.source == ""


def test_no_parent_is_said_and_not_raised(boat: TaskDescription) -> None:
    assert propose(request(boat, parents=())).reasoning == "There is no reward to tune."


# ── real rewards ──────────────────────────────────────────────────────────────────────────────────


def composed(task: TaskDescription, seed: int) -> str:
    plain = DesignRequest(task, task.sentence, Operator.FRESH, (), (), seed)
    return asyncio.run(OfflineDesigner().propose(plain)).reward.source


@pytest.mark.parametrize("seed", range(6))
def test_rewards_of_the_offline_designer_are_tuned_and_stay_its_own(
    seed: int, arm: TaskDescription, boat: TaskDescription
) -> None:
    for task in (arm, boat):
        names = [each.name for each in task.variables]
        source = composed(task, seed)
        genome = recover(source, names)
        assert not genome.empty
        assert can_tune(source)
        # every number that it names is one to turn, but for zeros
        assert len(tunable_constants(source)) >= len(genome.terms) - 1
        proposal = propose(request(task, source))
        tree, findings = parse(proposal.reward.source)
        assert tree is not None
        assert [*findings, *check_allow_list(tree), *check_contract(tree, task)] == []
        assert (
            find_same_source(proposal.reward.source, [KnownReward("1-2", given_reward(source))])
            == []
        )
        evolved = recover(proposal.reward.source, names)
        assert [term.name for term in evolved.terms] == [term.name for term in genome.terms]
        assert evolved != genome
        # and it computes: another total on the same states
        read = {
            name: value
            for name, value in states(task, 0.7).items()
            if name in parameter_names(source)
        }
        before, after = (
            reward_function(each, task.variables)(read)[0]
            for each in (source, proposal.reward.source)
        )
        assert not before.equal(after)
        assert after.isfinite().all()


NAMED = {
    "ant": ("alive * 0.5 * torch", "alive * HEADING_WEIGHT * torch", "HEADING_WEIGHT = 0.5"),
    "cartpole": ("-0.01 * alive", "SLOW_WEIGHT * alive", "SLOW_WEIGHT = -0.01"),
    "hopper": ("-1e-3 * actions", "CONTROL_WEIGHT * actions", "CONTROL_WEIGHT = -1e-3"),
}


def test_the_built_in_rewards_have_no_named_constants_until_someone_names_them(
    boat: TaskDescription,
) -> None:
    folder = resource_folder("envs")
    rewards = sorted(folder.glob("*/rewards/*.py"))
    assert len(rewards) >= 8
    changed = 0
    for path in rewards:
        source = path.read_text()
        assert tunable_constants(source) == {}
        assert not can_tune(source)
        before, after, line = NAMED.get(path.parts[-3], ("", "", ""))
        if before and before in source:
            source = source.replace(before, after).replace(
                "\n\n\ndef compute_reward", f"\n\n{line}\n\n\ndef compute_reward"
            )
            name, _, number = line.partition(" = ")
            assert tunable_constants(source) == {name: float(number)}
            assert can_tune(source)
            tuned = propose(request(boat, source)).reward.source
            assert tuned.splitlines()[0] == source.splitlines()[0]
            tree, findings = parse(tuned)
            assert tree is not None
            assert [*findings, *check_allow_list(tree)] == []
            changed += 1
    assert changed == len(NAMED)
