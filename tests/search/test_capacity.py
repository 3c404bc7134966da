from __future__ import annotations

from eureka_agent.search.capacity import plan_capacity
from eureka_agent.settings import SearchSettings


def test_a_default_search_on_two_cores_fills_its_slots() -> None:
    # a phase holds 8 candidates + 6 baselines / 2 iterations = 11 trainings, the finals 9: 11 on 2 workers are 6 each
    capacity = plan_capacity(SearchSettings(iterations=2, samples=8, finalists=3, final_seeds=3), cores=2)
    assert (capacity.workers, capacity.slots) == (2, 6)
    assert capacity.baseline_slots == 12 - 8


def test_a_single_training_takes_one_worker_with_one_slot() -> None:
    capacity = plan_capacity(SearchSettings(iterations=1, samples=1, finalists=0), cores=8)
    assert (capacity.workers, capacity.slots) == (1, 1)


def test_slots_and_workers_set_by_hand_are_kept() -> None:
    capacity = plan_capacity(SearchSettings(iterations=1, samples=64, slots=4, workers=3), cores=2)
    assert (capacity.workers, capacity.slots) == (3, 4)
    assert capacity.baseline_slots == 1
