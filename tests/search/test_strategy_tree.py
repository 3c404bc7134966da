from __future__ import annotations

import math
from collections import Counter

import pytest
from planned_attempts import invented_search, planned

from eureka_agent.ranking import ranked
from eureka_agent.records import Operator, Stage
from eureka_agent.search.strategies.interface import ProposalPlan
from eureka_agent.search.strategies.tree import CHILDREN, EXPLORATION, LONGEST_PATH, Tree, grow, uct

REASON, MUTATE, RETUNE = (
    Operator.REASON_OVER_PATH,
    Operator.MUTATE_STRUCTURE,
    Operator.RETUNE_WEIGHTS,
)
CROSS, DIFFERENT, FRESH = Operator.CROSSOVER, Operator.DIFFERENT, Operator.FRESH


def test_a_node_has_at_most_eight_children() -> None:
    assert sum(CHILDREN.values()) == 8


def test_uct_by_hand_spreads_a_generation_over_the_first_ones() -> None:
    """Eight roots of fitness 0 to 7, so of value 1/8 to 1, and C = 0.25. For each sample all visits
    and the two best scores.

    16: 1 + 0.25 √(ln 16 / 1) = 1.416 of 0-7, 1.291 of 0-6. 17: 1 + 0.25 √(ln 17 / 2) = 1.298
    against 1.296. 18: 1.245 against 0-6's 1.300, it is 0-6's turn. 19: 1.248, 0-5 1.179. 20: 1.216,
    1.183. 21: 1.195, 1.186. 22: 0-7 with six visits 1.179, 0-6 with two 1.1858, 0-5 with one
    1.1895. 23: 0-7 1.181, 0-6 1.188.
    """
    assert EXPLORATION == 0.25
    history = [planned(0, sample, float(sample)) for sample in range(8)]
    parents = [plan.parents[0] for plan in Tree().plan(1, history, 8)]
    assert parents == ["0-7", "0-7", "0-6", "0-7", "0-7", "0-7", "0-5", "0-6"]


def test_uct_by_hand_goes_down_to_the_best_and_leaves_a_node_whose_children_failed() -> None:
    """Values 1-0: 1, 0-0: 4/5, 0-1: 3/5, 0-2: 2/5, 0-3: 1/5; 1-1 and 1-2, which failed below 0-0
    and 0-1: 0.

    At the root, 11 visits: 0-0 is worth as much as 1-0 below it, (4/5 + 1 + 0)/3 being less: 1 +
    0.25 √(ln 11 / 3) = 1.224. 0-1 is worth (3/5 + 0)/2 = 0.3, with √(ln 11 / 2): 0.574. 0-2 2/5,
    with √(ln 11): 0.787. At 0-0, 4 visits: 1-0 1 + 0.25 √(ln 4) = 1.294, a further child 0.6 +
    0.170.
    """
    roots = [planned(0, sample, fitness) for sample, fitness in enumerate((8.0, 6.0, 4.0, 2.0))]
    children = [
        planned(1, 0, 20.0, REASON, ("0-0",)),
        planned(1, 1, None, MUTATE, ("0-0",), stage=Stage.REJECTED),
        planned(1, 2, None, MUTATE, ("0-1",), stage=Stage.FAILED),
    ]
    history = [*roots, *children]
    assert Tree().plan(2, history, 1) == [ProposalPlan(REASON, ("1-0", "0-0"))]
    nodes = grow(history, ranked(history))
    assert [nodes[name].visits for name in ("", "0-0", "0-1", "0-2", "0-3", "1-0")] == [
        7,
        3,
        2,
        1,
        1,
        1,
    ]
    assert nodes["0-0"].values == pytest.approx([0.8, 1.0, 0.0])
    assert uct(1.0, 3, 11) == pytest.approx(1 + 0.25 * math.sqrt(math.log(11) / 3))
    # without 1-0 the best root's children have failed, and the second best is as good as it looks
    failed = [planned(1, sample, None, MUTATE, ("0-0",)) for sample in range(2)]
    # (1 + 0 + 0)/3 with 3 of 10 visits: 0.552; 0-1 3/4 with one: 1.129; a fresh one (1 + 3/4 + 2/4
    # + 1/4)/4 with four: 0.815
    assert Tree().plan(2, [*roots, *failed], 1)[0].parents[0] == "0-1"


def test_failed_siblings_do_not_drown_a_good_child() -> None:
    """Values 1-0: 1, 0-1: 2/3, 0-0: 1/3. The way to 1-0 is worth 1, whatever else was made of 0-0:
    1 + 0.25 √(ln 9 / 6) against 2/3 + 0.25 √(ln 9)."""
    history = [planned(0, 0, 5.0), planned(0, 1, 8.0), planned(1, 0, 20.0, REASON, ("0-0",))]
    history += [planned(1, sample, None, RETUNE, ("0-0",)) for sample in range(1, 5)]
    assert Tree().plan(2, history, 1)[0].parents[0] == "1-0"


def test_a_node_that_has_all_its_children_is_left_and_what_it_lacks_is_what_it_gets() -> None:
    """0-0 is twice as good as 0-1, and far ahead in all of eight samples; but with one other node
    it can be crossed only once."""
    plans = Tree().plan(1, [planned(0, 0, 10.0), planned(0, 1, 5.0), planned(0, 2)], 8)
    assert [plan.parents[0] for plan in plans] == ["0-0"] * 7 + ["0-1"]
    assert [plan.operator for plan in plans[:7]] == [
        REASON,
        MUTATE,
        RETUNE,
        CROSS,
        DIFFERENT,
        MUTATE,
        RETUNE,
    ]
    assert plans[3].parents == ("0-0", "0-1")
    assert (
        plans[7].operator is REASON
    )  # asked for once, like two others, and the first of these in the table


def test_children_that_are_there_are_not_made_again() -> None:
    made = [REASON, MUTATE, MUTATE, RETUNE, RETUNE, DIFFERENT]
    children = [
        planned(1, sample, None, operator, ("0-0",)) for sample, operator in enumerate(made)
    ]
    plans = Tree().plan(2, [planned(0, 0, 10.0), *children], 4)
    assert (
        plans == [ProposalPlan(FRESH)] * 4
    )  # no other attempt to cross it with: it has all that it can have
    nodes = [planned(0, 0, 10.0), planned(0, 1, 1.0), *[planned(0, 2 + each) for each in range(6)]]
    plans = Tree().plan(2, [*nodes, *children], 30)
    assert [plan for plan in plans if plan.parents[:1] == ("0-0",)] == [
        ProposalPlan(CROSS, ("0-0", "0-1"))
    ]


@pytest.mark.parametrize("samples", [3, 8])
def test_no_node_ever_has_more_than_eight_children(samples: int) -> None:
    for seed in range(3):
        history = invented_search(Tree(), seed, iterations=12, samples=samples)
        made_from = Counter(
            (attempt.proposal.parents[0], attempt.proposal.operator)
            for attempt in history
            if attempt.proposal.parents and attempt.revision == 0
        )
        assert made_from
        assert all(times <= CHILDREN[operator] for (_, operator), times in made_from.items())


def test_the_path_goes_from_the_node_to_its_oldest_ancestor_nearest_first() -> None:
    chain = [planned(0, 0, 1.0)]
    chain += [planned(step, 0, 1.0 + step, MUTATE, (f"{step - 1}-0",)) for step in range(1, 4)]
    first = Tree().plan(4, chain, 1)[0]
    assert first == ProposalPlan(REASON, ("3-0", "2-0", "1-0", "0-0"))
    longer = [*chain, planned(4, 0, 9.0, RETUNE, ("3-0",))]
    assert Tree().plan(5, longer, 1)[0].parents == ("4-0", "3-0", "2-0", "1-0")[:LONGEST_PATH]


def test_a_node_is_crossed_with_the_best_that_is_no_relative_of_it() -> None:
    history = [
        planned(0, 0, 10.0),
        planned(0, 1, 3.0),
        planned(0, 2, 2.0),
        planned(1, 0, 20.0, REASON, ("0-0",)),
        planned(1, 1, 4.0, MUTATE, ("0-1",)),
    ]
    crossed = {plan.parents for plan in Tree().plan(2, history, 40) if plan.operator is CROSS}
    assert ("1-0", "1-1") in crossed  # the best that does not come from 0-0
    assert ("1-0", "0-1") in crossed  # then the next one
    assert ("0-0", "1-1") in crossed  # not its own child, which is better
    assert not any({"1-0", "0-0"} == set(pair) for pair in crossed)
    assert not any({"1-1", "0-1"} == set(pair) for pair in crossed)
    already = planned(2, 0, None, CROSS, ("1-0", "1-1"))
    again = [
        plan.parents for plan in Tree().plan(3, [*history, already], 40) if plan.operator is CROSS
    ]
    assert ("1-0", "1-1") not in again
    assert ("1-0", "0-1") in again


def test_a_parent_that_failed_after_its_children_were_made_hands_them_to_the_one_above() -> None:
    history = [
        planned(0, 0, 5.0),
        planned(1, 0, None, MUTATE, ("0-0",), stage=Stage.FAILED),
        planned(2, 0, 8.0, RETUNE, ("1-0",)),
        planned(2, 1, None, RETUNE, ("1-0",)),
    ]
    nodes = grow(history, ranked(history))
    assert [child.attempt and child.attempt.id for child in nodes["0-0"].children] == ["2-0"]
    assert nodes["0-0"].tries == 4  # itself, 1-0, 2-0 and 2-1
    assert nodes["0-0"].made == {MUTATE: 1}  # the others were not made from it
    assert nodes["2-0"].line() == [history[2], history[0]]
    assert Tree().plan(3, history, 1) == [ProposalPlan(REASON, ("2-0", "0-0"))]


def test_a_revised_proposal_is_one_child() -> None:
    rejected = planned(1, 0, None, MUTATE, ("0-0",), stage=Stage.REJECTED)
    mended = planned(1, 0, 9.0, MUTATE, ("0-0",), revision=1)
    history = [planned(0, 0, 5.0), rejected, mended]
    node = grow(history, ranked(history))["0-0"]
    assert node.made == {MUTATE: 1}
    assert node.tries == 2
    assert node.visits == 2


def test_failures_of_an_earlier_round_of_the_generation_count_as_visits() -> None:
    history = [planned(0, 0, 10.0), planned(0, 1, 9.0)]
    first_round = Tree().plan(1, history, 2)
    failed = [
        planned(1, sample, None, plan.operator, plan.parents)
        for sample, plan in enumerate(first_round)
    ]
    second_round = Tree().plan(1, [*history, *failed], 2)
    assert {(plan.operator, plan.parents) for plan in second_round}.isdisjoint(
        (plan.operator, plan.parents) for plan in first_round
    )


def test_new_roots_are_tried_again_where_all_below_is_worse() -> None:
    """Everything that was made from the one attempt came to nothing, so a fresh one looks
    better."""
    failed = [
        planned(1, sample, None, operator, ("0-0",))
        for sample, operator in enumerate((REASON, MUTATE, RETUNE))
    ]
    # 0-0: (1 + 0 + 0 + 0)/4, and a fresh one was worth 1
    assert Tree().plan(2, [planned(0, 0, 10.0), *failed], 1) == [ProposalPlan(FRESH)]
