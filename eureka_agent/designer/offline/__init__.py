"""The designer that needs no LLM: terms composed from variable docs and the task's words, evolved
by fitness."""
