"""Walls between driver and worker, and the client that speaks through them."""
