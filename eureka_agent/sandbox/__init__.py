"""Walls between driver and worker, and the client that communicates through them."""
