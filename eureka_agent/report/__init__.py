"""Output for a person: the live view, `report.md`, tables, TensorBoard files."""
