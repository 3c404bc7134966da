"""The designer that needs no language model."""
