"""A policy's evaluation in words."""

from __future__ import annotations

from eureka_agent.records import TaskDescription
from eureka_agent.search.scoring import evaluation_lines


def test_an_evaluation_names_unit_spread_and_threshold(description: TaskDescription) -> None:
    task = description.model_copy(
        update={
            "fitness_doc": (
                "seconds of an episode near the goal; hitting the ground ends the episode"
            ),
            "fitness_unit": "s",
            "success_fitness": 7.0,
            "max_episode_length": 500,
        }
    )
    summary = {
        "episodes": 256,
        "mean": 8.76,
        "std": 0.25,
        "unit": "s",
        "success_rate": 0.98,
        "mean_length": 499.6,
        "ended_by": {"time": 250, "hit_ground": 6},
    }
    assert evaluation_lines(summary, task, "") == {
        "fitness": (
            "8.76 ± 0.25 s over 256 episodes (± is the deviation between episodes, not between"
            " seeds)"
        ),
        "measures": "seconds of an episode near the goal; hitting the ground ends the episode",
        "solved": "98% of the episodes (fitness of 7.00 s or more)",
        "length": "500 of 500 steps on average; ended by: time 250, hit_ground 6",
    }
    alone = {**summary, "std": None, "episodes": 1, "unit": "1", "success_rate": None}
    lines = evaluation_lines(alone, task, "")
    assert lines["fitness"] == "8.76 over 1 episode"
    assert "solved" not in lines
