"""The journal of a run: typed records of all that is decided and all that happens."""
