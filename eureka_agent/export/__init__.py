"""A run's reward and policy as files that work without this package."""
