"""Number and choice of the places that an optimiser gets in a generation, and what it tunes
there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
from planned_attempts import TUNABLE, invented_search, planned

from eureka_agent.designer.tuning.designer import worth_tuning
from eureka_agent.records import Attempt, Operator, Stage
from eureka_agent.search.assembly import strategy_of
from eureka_agent.search.strategies.best_of_n import BestOfN
from eureka_agent.search.strategies.credit import (
    CHANGING,
    Record,
    WithTuning,
    places_earned,
    places_to_give,
    record_of,
)
from eureka_agent.search.strategies.greedy import Greedy
from eureka_agent.search.strategies.interface import ProposalPlan, Strategy
from eureka_agent.search.strategies.islands import Islands
from eureka_agent.search.strategies.tree import Tree
from eureka_agent.settings import SearchSettings

TUNE = Operator.TUNE_WEIGHTS
BARE = "def compute_reward(position):\n    return 2.0 * position, {}\n"
"""A reward without a named constant."""
PARENT = planned(0, 0, 10.0)


def children(
    operator: Operator, wins: int, losses: int, iteration: int = 1, first: int = 0
) -> list[Attempt]:
    """Children of `PARENT`."""
    return [
        planned(iteration, first + place, 11.0 if place < wins else 9.0, operator, ("0-0",))
        for place in range(wins + losses)
    ]


def tuned(plans: Sequence[ProposalPlan]) -> list[tuple[int, str]]:
    """Place and parent of each plan that tunes weights."""
    return [(place, plan.parents[0]) for place, plan in enumerate(plans) if plan.operator is TUNE]


# ── success ───────────────────────────────────────────────────────────────────────────────────────


def test_success_is_to_be_better_than_all_that_it_was_made_from() -> None:
    history = [
        planned(0, 0, 10.0),
        planned(0, 1, 5.0),
        planned(1, 0, 10.5, Operator.IMPROVE, ("0-0",)),  # won
        planned(1, 1, 10.0, Operator.IMPROVE, ("0-0",)),  # equal: not better
        planned(1, 2, 7.0, Operator.CROSSOVER, ("0-1", "0-0")),  # better than one of two
        planned(1, 3, 7.0, Operator.MUTATE_STRUCTURE, ("0-1",)),  # won
        planned(1, 4, 99.0, Operator.DIFFERENT, ("0-0",)),  # changes nothing that is there
        planned(1, 5, 99.0),
        planned(1, 6, 12.0, TUNE, ("0-0",)),
    ]
    assert record_of(CHANGING, history) == Record(wins=2, losses=2)
    assert record_of((TUNE,), history) == Record(wins=1, losses=0)


def test_what_came_to_no_fitness_has_lost_and_a_mended_proposal_counts_once() -> None:
    history = [
        PARENT,
        planned(1, 0, None, Operator.IMPROVE, ("0-0",), stage=Stage.STOPPED),
        planned(1, 1, None, Operator.IMPROVE, ("0-0",), stage=Stage.FAILED),
        planned(1, 2, None, Operator.IMPROVE, ("0-0",), stage=Stage.REJECTED),
        planned(1, 3, None, Operator.IMPROVE, ("0-0",), stage=Stage.TRAINED),
        planned(1, 4, None, Operator.IMPROVE, ("0-0",), stage=Stage.REJECTED),
        planned(1, 4, 12.0, Operator.IMPROVE, ("0-0",), revision=1),
    ]
    assert record_of(CHANGING, history) == Record(wins=1, losses=4)


def test_nothing_is_said_of_a_child_whose_parent_failed_in_the_end() -> None:
    history = [
        planned(0, 0, None, stage=Stage.FAILED),
        planned(1, 0, 3.0, Operator.IMPROVE, ("0-0",)),
    ]
    assert record_of(CHANGING, history) == Record(0, 0)


def test_the_rate_is_the_mean_of_a_beta_distribution() -> None:
    assert Record(0, 0).rate == 0.5
    assert Record(3, 1).rate == pytest.approx(4 / 6)


# ── how many ──────────────────────────────────────────────────────────────────────────────────────


def test_the_first_generation_is_not_tuned_and_the_second_in_one_place() -> None:
    assert places_earned(0, [PARENT], 8) == 0
    assert [places_earned(iteration, [PARENT], 8) for iteration in (1, 2, 3)] == [1, 1, 1]
    assert [places_earned(1, [PARENT], samples) for samples in (1, 2, 3)] == [0, 1, 1]


def test_places_follow_the_share_of_success() -> None:
    designed = children(Operator.IMPROVE, wins=2, losses=6)  # 3/10
    # 1 of 4: 2/6; its share 0.333/0.633 = 0.526 of 8 is 4.2: half
    assert places_earned(2, [PARENT, *designed, *children(TUNE, 1, 3, first=8)], 8) == 4
    # 0 of 4: 1/6; 0.167/0.467 = 0.357, 2.9
    assert places_earned(2, [PARENT, *designed, *children(TUNE, 0, 4, first=8)], 8) == 3
    # 0 of 10: 1/12; 0.083/0.383 = 0.217, 1.7
    assert places_earned(2, [PARENT, *designed, *children(TUNE, 0, 10, first=8)], 8) == 2
    # 6 of 6: 7/8; 0.745 of 8 is 6, but half is the most
    assert places_earned(2, [PARENT, *designed, *children(TUNE, 6, 0, first=8)], 8) == 4
    assert places_earned(2, [PARENT, *designed, *children(TUNE, 6, 0, first=8)], 5) == 2


def test_a_single_lucky_child_does_not_decide_a_generation() -> None:
    designed = children(Operator.IMPROVE, wins=0, losses=7)
    assert places_earned(2, [PARENT, *designed, *children(TUNE, 1, 0, first=7)], 16) == 2
    assert places_earned(2, [PARENT, *designed, *children(TUNE, 2, 1, first=7)], 16) == 4
    assert places_earned(2, [PARENT, *designed, *children(TUNE, 20, 0, first=7)], 16) == 8


def test_what_never_succeeds_is_still_tried_in_every_other_generation() -> None:
    designed = children(Operator.IMPROVE, wins=30, losses=0)
    history = [PARENT, *designed, *children(TUNE, 0, 20, first=30)]
    # 1/22 against 31/32: a share of 0.045, of four places none
    assert [places_earned(iteration, history, 4) for iteration in range(2, 8)] == [0, 1, 0, 1, 0, 1]


# ── which ones ────────────────────────────────────────────────────────────────────────────────────


def test_places_that_would_retune_weights_go_first_then_whatever_there_is_most_of() -> None:
    plans = Greedy().plan(1, [PARENT, planned(0, 1, 5.0)], 8)
    # improve 0 4, retune 1 5, mutate 2 6, cross 3, different 7
    assert places_to_give(plans) == [1, 5, 4, 6, 0, 2, 3]
    assert (
        places_to_give([ProposalPlan(Operator.FRESH), ProposalPlan(Operator.DIFFERENT, ("0-0",))])
        == []
    )


def test_greedy_tunes_the_best_in_place_of_a_retuning() -> None:
    history = [PARENT, planned(0, 1, 20.0), planned(0, 2, 5.0)]
    without, plans = Greedy().plan(1, history, 8), WithTuning(Greedy()).plan(1, history, 8)
    assert tuned(plans) == [(1, "0-1")]
    assert [plan for place, plan in enumerate(plans) if place != 1] == without[:1] + without[2:]


def test_each_island_tunes_its_own_best() -> None:
    history = [planned(0, sample, fitness) for sample, fitness in enumerate((1.0, 8.0, 3.0, 6.0))]
    history += [planned(1, sample, 9.0 + sample, TUNE, ("0-1",)) for sample in range(4)]
    # islands 0-0 0-2 1-0 1-2 and 0-1 0-3 1-1 1-3: the best are 1-2 and 1-3
    assert {
        (place % 2, parent) for place, parent in tuned(WithTuning(Islands()).plan(2, history, 4))
    } == {
        (0, "1-2"),
        (1, "1-3"),
    }


def test_a_best_reward_without_constants_is_not_tuned() -> None:
    history = [planned(0, 0, 10.0, source=TUNABLE), planned(0, 1, 20.0, source=BARE)]
    assert tuned(WithTuning(Greedy()).plan(1, history, 8)) == []
    assert WithTuning(Greedy()).to_tune(0, history, 8) is None
    assert tuned(
        WithTuning(Greedy(), tunable=lambda source, trained: True).plan(1, history, 8)
    ) == [(1, "0-1")]
    # on the other island there is one with constants
    islands = WithTuning(Islands()).plan(1, [*history, planned(0, 2, 1.0), planned(0, 3, 1.0)], 4)
    assert {parent for _, parent in tuned(islands)} == {"0-0"}


def test_the_model_retunes_until_five_trainings_of_the_form_are_known() -> None:
    """With fewer, the optimiser is a random step. Rewards of another form, or without a fitness, do
    not count."""
    others = [planned(0, 4 + sample, 1.0, source=BARE) for sample in range(3)]
    unfinished = [planned(0, 7, None, stage=Stage.STOPPED)]
    form = (
        "WIDTH = {}.5\n\ndef compute_reward(position):\n    return (WIDTH - position).clamp(0.0,"
        " 1.0), {{}}\n"
    )
    four = [planned(0, sample, 10.0 - sample, source=form.format(sample)) for sample in range(4)]
    strategy = WithTuning(Greedy(), worth_tuning)
    history = [*four, *others, *unfinished]
    assert strategy.plan(1, history, 8) == Greedy().plan(1, history, 8)
    assert tuned(strategy.plan(1, [*history, planned(0, 8, 5.0, source=form.format(8))], 8)) == [
        (1, "0-0")
    ]


@pytest.mark.parametrize("model", ["offline", "openai/x"])
def test_a_search_is_tuned_where_it_was_asked_for(model: str) -> None:
    settings = SearchSettings(env="cartpole", model=(model,))
    assert type(strategy_of(settings)) is (BestOfN if model == "offline" else Greedy)
    asked = settings.model_copy(update={"tuning": True})
    assert type(strategy_of(asked)) is WithTuning


def test_best_of_n_is_never_tuned() -> None:
    history = [PARENT, *children(TUNE, 8, 0)]
    assert WithTuning(BestOfN()).plan(3, history, 8) == [ProposalPlan(Operator.FRESH)] * 8


def test_a_generation_after_failures_alone_is_fresh_and_not_tuned() -> None:
    assert (
        WithTuning(Greedy()).plan(1, [planned(0, 0), planned(0, 1)], 4)
        == [ProposalPlan(Operator.FRESH)] * 4
    )


@pytest.mark.parametrize(
    "strategy", [Greedy(), Islands(), Tree()], ids=["greedy", "islands", "tree"]
)
@pytest.mark.parametrize("samples", [1, 2, 5, 8])
def test_tuning_takes_part_and_never_more_than_half(strategy: Strategy, samples: int) -> None:
    for seed in range(3):
        history = invented_search(WithTuning(strategy), seed, iterations=10, samples=samples)
        rounds = Counter(
            (each.iteration, each.sample // samples) for each in history if each.revision == 0
        )
        tunings = Counter(
            (each.iteration, each.sample // samples)
            for each in history
            if each.proposal.operator is TUNE and each.revision == 0
        )
        assert all(count <= samples // 2 for count in tunings.values())
        assert all(iteration > 0 for iteration, _ in tunings)
        if samples > 1:
            idle = [
                iteration
                for iteration, attempt_round in rounds
                if not tunings[iteration, attempt_round]
            ]
            assert not any({iteration, iteration + 1} <= set(idle) for iteration in range(1, 9))
