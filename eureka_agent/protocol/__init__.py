"""Messages between driver and workers: commands one way, events the other, with their bounds."""
