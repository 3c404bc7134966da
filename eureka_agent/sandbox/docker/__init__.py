"""The Docker wall: an image with the worker's packages, and an isolated container per worker."""
