"""Population PPO on the built-in environments: bit for bit independent, and it learns."""

from __future__ import annotations

import pytest
from training_environments import assert_equal, points, policy_of, run

from eureka_agent.settings import TrainingSettings
from eureka_agent.simulation.loading import load_environment
from eureka_agent.training.evaluation import evaluate_policy
from eureka_agent.training.policy import Policy
from eureka_agent.training.reward import RewardFunction
from eureka_agent.training.trainer import Trainer, TrainerEvent


def trained(
    environment: str, task_name: str, seeds: dict[str, int], slots: int, **settings: object
) -> dict[str, list[TrainerEvent]]:
    """Events by name: `human-…` with the human reward, anything else with the sparse one."""
    loaded = load_environment(environment)
    _, task = loaded.task(task_name)
    values = TrainingSettings.model_validate({**task.training.overrides, **settings})
    trainer = Trainer(lambda rows: loaded.make(task, rows), task, values, slots)
    for name, seed in seeds.items():
        source = loaded.reward_source(task, "human" if name.startswith("human") else "sparse")
        assert source is not None
        variables = loaded.environment_class.all_variables()
        trainer.submit(name, RewardFunction.from_source(source, variables, True), seed)
    return run(trainer)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("environment", "task", "num_envs"),
    [
        ("cartpole", "swingup", 10),
        ("ant", "run", 16),
    ],
)
def test_alone_among_fifteen_and_in_a_refilled_slot(
    environment: str, task: str, num_envs: int
) -> None:
    settings = {"env_steps": 3 * 32 * num_envs, "num_envs": num_envs, "checkpoints": 1}
    alone = trained(environment, task, {"human-reference": 7}, 1, **settings)["human-reference"]
    others = {f"sparse-{index}": index for index in range(10)} | {"human-reference": 7}
    others |= {f"human-{index}": index for index in range(5)}
    for slots in (16, 3):
        assert_equal(
            trained(environment, task, others, slots, **settings)["human-reference"], alone
        )


@pytest.mark.slow
def test_the_human_reward_balances_the_pole_within_its_budget() -> None:
    loaded = load_environment("cartpole")
    _, task = loaded.task("balance")
    seeds = {f"human-{seed}": seed for seed in range(4)}
    results = trained(
        "cartpole",
        "balance",
        seeds,
        4,
        env_steps=task.training.env_steps,
        num_envs=task.training.num_envs,
    )
    scores = []
    for events in results.values():
        policy = Policy(policy_of(events), "tanh", {})
        evaluation, _ = evaluate_policy(
            loaded.make(task, 16), task, policy, 16, record=False, seed=99
        )
        scores.append(evaluation.fitness_mean())
    # an episode lasts 10 s, and a pole left alone falls within about one
    assert sum(scores) / len(scores) > 8.0
    first = [points(events)[5].fitness for events in results.values()]
    assert all(fitness is None or fitness < 3.0 for fitness in first)
