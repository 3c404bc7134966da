"""The driver's side of the wall: how workers are started, spoken to, watched and replaced."""
