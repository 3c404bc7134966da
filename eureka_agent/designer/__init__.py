"""Designers write proposals: reward functions with their reasoning."""
