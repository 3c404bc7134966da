"""Reward functions from plain words: designed, verified, trained, explained."""

__version__ = "0.1.0"
