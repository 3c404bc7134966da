"""Population PPO: many trainings at once on one simulator batch, and the rewards that they are
given."""
