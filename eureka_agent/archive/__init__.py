"""What a run remembers: the SQLite archive, the run folder, its artefacts, the cache of
baselines."""
