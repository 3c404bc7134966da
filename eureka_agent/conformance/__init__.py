"""Conformance: whether an environment keeps the contract, checked as a training would use it."""
