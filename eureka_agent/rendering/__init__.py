"""Pictures and videos of an environment's episodes."""
