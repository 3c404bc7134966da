"""Environments: the base classes, their simulators, loading and a person's own modules."""
