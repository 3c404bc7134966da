"""Seeds derived from names, so that nothing depends on the order in which things happen."""

from __future__ import annotations

import hashlib


def derive_seed(*parts: object) -> int:
    """A seed in [0, 2^31) that depends on all parts and nothing else."""
    digest = hashlib.sha256("\0".join(str(part) for part in parts).encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1


def final_seeds(count: int) -> tuple[int, ...]:
    """Seeds of final trainings and baselines: the same in every run, never used by a search."""
    return tuple(derive_seed("final", index) for index in range(count))
