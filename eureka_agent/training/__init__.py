"""Population PPO: many trainings on one simulator batch, and calls of their rewards."""
