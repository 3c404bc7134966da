"""The loop: strategies, attempts, final trainings, sessions."""
