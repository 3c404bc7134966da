"""Requests to language models: made once, within a budget, answered by anybody's server."""
