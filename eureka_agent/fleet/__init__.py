"""The fleet of workers: trainings, evaluations and dry runs on the machine's devices."""
