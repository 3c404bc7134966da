"""What may be asked of a run, for models that design, for people, and for other programs."""
