"""The program behind the wall, which runs generated code. The driver imports nothing of it."""
