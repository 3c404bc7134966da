"""Wave a leg: a behaviour of Text2Reward (Xie et al. 2023), with a count of our own."""

from __future__ import annotations

from torch import Tensor

from eureka_agent.task import Task, TrainingBudget


def fitness(front_left_waves: Tensor, previous_front_left_waves: Tensor) -> Tensor:
    """Waves that were completed in this step."""
    return front_left_waves - previous_front_left_waves


task = Task(
    sentence="make the ant stand on three legs and wave with its front left leg",
    fitness=fitness,
    fitness_doc=(
        "waves of the front left foot in an episode of 8 s: up and down again, while the other"
        " three feet stay on the ground and the torso stays level; a torso on the ground or tipped"
        " over ends the episode"
    ),
    fitness_unit="waves",
    success_fitness=10.0,
    human_reward="rewards/wave_leg_human.py",
    sparse_reward="rewards/wave_leg_sparse.py",
    training=TrainingBudget(env_steps=300_000, num_envs=32),
)
