"""The adapter's package on the path, and the process as it was after each test."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from job_folders import ADAPTERS, JobFolder, MakeFolder

sys.path.insert(0, str(ADAPTERS))


@pytest.fixture
def folder(tmp_path: Path) -> MakeFolder:
    """Maker of job folders."""

    def make(fitness: str, name: str = "job") -> JobFolder:
        return JobFolder(tmp_path / name, fitness)

    return make


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    hook, threads, state = sys.excepthook, torch.get_num_threads(), torch.get_rng_state()
    yield
    sys.excepthook = hook
    torch.set_num_threads(threads)
    torch.set_rng_state(state)
