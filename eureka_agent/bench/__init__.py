"""Benchmarks of searches: methods × tasks × seeds at equal env steps, and their statistics."""
