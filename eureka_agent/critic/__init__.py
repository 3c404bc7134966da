"""The critic: findings on a reward's source, before a second of training is spent on it."""
