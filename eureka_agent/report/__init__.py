"""Output for a person: the live view, `report.md`, `report.html`, tables, TensorBoard files."""
