"""Made-up outcomes of trainings."""

from __future__ import annotations

from eureka_agent.records import CheckpointRecord, Outcome


def make_outcome(fitness: float | None, env_steps: int = 10_000) -> Outcome:
    """Outcome of a training with one checkpoint."""
    checkpoint = CheckpointRecord(
        env_steps=env_steps,
        fitness=fitness,
        episode_length=500.0,
        episodes=4,
        reward=0.0,
        components={},
    )
    return Outcome(
        env_steps=env_steps,
        seconds=1.0,
        checkpoints=(checkpoint,),
        best_checkpoint=0,
        training_fitness=fitness,
        fitness=fitness,
    )
