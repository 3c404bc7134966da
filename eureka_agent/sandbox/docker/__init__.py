"""The Docker wall: an image with the worker's packages, and a container without network, rights or
files for every worker."""
