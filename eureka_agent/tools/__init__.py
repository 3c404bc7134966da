"""Questions that a run answers, for models that design, for people, and for other programs."""
