"""Requests to models in the batches of OpenAI and Anthropic, at half the price."""
