"""Batches: many searches from one file, on one machine, in one folder."""
