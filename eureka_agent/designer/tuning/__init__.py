"""The tuning designer: a numeric optimiser chooses the named constants of an existing reward."""
