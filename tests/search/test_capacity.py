from __future__ import annotations

from eureka_agent.search.capacity import plan_capacity
from eureka_agent.settings import SearchSettings


def test_a_default_search_on_two_cores_fills_its_slots() -> None:
    # a generation of 8 with the 10 baselines beside it: 18 on two workers
    capacity = plan_capacity(
        SearchSettings(iterations=2, samples=8, finalists=3, final_seeds=5), places=2
    )
    assert (capacity.workers, capacity.slots) == (2, 9)
    # in a steady search the repeats of the 4 best may train beside 8 candidates, fewer than the
    # baselines
    steady = SearchSettings(
        iterations=2, samples=8, final_seeds=1, schedule="steady", strategy="greedy"
    )
    assert plan_capacity(steady, places=2).slots == 6


def test_with_few_baselines_finals_need_most() -> None:
    waiting = SearchSettings(iterations=2, samples=8, finalists=3, final_seeds=3)
    # a generation has 8 candidates, and the 6 baselines beside it; the finals are 9
    capacity = plan_capacity(waiting, places=2)
    assert (capacity.workers, capacity.slots) == (2, 7)
    # with fewer seeds of the baselines the finals need most
    capacity = plan_capacity(
        waiting.model_copy(update={"baseline_seeds": 1, "samples": 4}), places=2
    )
    assert (capacity.workers, capacity.slots) == (2, 5)


def test_a_single_training_takes_one_worker_with_one_slot() -> None:
    capacity = plan_capacity(SearchSettings(iterations=1, samples=1, finalists=0), places=8)
    assert (capacity.workers, capacity.slots) == (1, 1)


def test_slots_and_workers_set_by_hand_are_kept() -> None:
    capacity = plan_capacity(SearchSettings(iterations=1, samples=64, slots=4, workers=3), places=2)
    assert (capacity.workers, capacity.slots) == (3, 4)
