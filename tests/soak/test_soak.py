"""The soak test, for some minutes. `make soak` runs an hour of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from proofs import table
from soak import soak


@pytest.mark.slow
def test_a_batch_under_faults_loses_and_repeats_nothing(tmp_path: Path) -> None:
    found, happened, one = soak(tmp_path, minutes=1.0, seed=0)
    said = table(found, happened, one.lives)
    print(said)
    assert happened.counts["kill_driver"] >= 1, said
    assert happened.counts["kill_worker"] >= 1, said
    assert happened.counts["set_clock"] >= 1, said
    assert all(proof.holds for proof in found), f"{said}\n{one.log()[-4000:]}"
    assert "Traceback" not in one.log(), one.log()[-4000:]
