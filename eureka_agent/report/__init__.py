"""What a person sees: the live view, `report.md`, tables, TensorBoard files."""
