"""Diagnoses from curves and trajectories, for the designer."""
