"""Filters of system calls for both sides, with the standard library only."""
