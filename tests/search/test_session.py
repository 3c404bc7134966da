from __future__ import annotations

from eureka_agent.records import TaskDescription
from eureka_agent.search.session import effective_settings


def test_a_person_overrides_the_task_and_the_task_the_defaults(description: TaskDescription) -> None:
    described = description.model_copy(update={"training_overrides": {"horizon": 64, "learning_rate": 1e-4}})
    settings = effective_settings({"learning_rate": 5e-4, "seed": 3}, described)
    assert (settings.env_steps, settings.num_envs, settings.horizon) == (10_000, 16, 64)
    assert (settings.learning_rate, settings.seed) == (5e-4, 3)


def test_the_environment_is_the_one_that_was_found(description: TaskDescription) -> None:
    described = description.model_copy(update={"environment": "/somewhere/cart", "task": "centre"})
    settings = effective_settings({"env": "cart"}, described)
    assert (settings.env, settings.task) == ("/somewhere/cart", "centre")
