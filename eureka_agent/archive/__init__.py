"""Memory of a run: the SQLite archive, the run folder, its artefacts, the cache of baselines."""
