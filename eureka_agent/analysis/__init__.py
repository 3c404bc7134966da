"""From curves and trajectories to a diagnosis: what the designer is told of an attempt."""
