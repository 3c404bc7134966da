"""The designer that asks nobody: a numeric optimiser chooses the named constants of a reward that
is there."""
