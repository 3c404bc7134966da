"""A person's feedback: what follows from choices and words."""
