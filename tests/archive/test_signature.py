"""The secret that runs are signed with."""

from __future__ import annotations

from pathlib import Path

import pytest

from eureka_agent.archive.signature import NoSecretError, secret_path, user_signer


@pytest.mark.parametrize("mode", [0o640, 0o620, 0o604, 0o602, 0o610])
def test_a_secret_that_others_can_reach_signs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    signed = user_signer(make=True).sign("run")
    assert user_signer(make=False).sign("run") == signed
    secret_path().chmod(mode)
    with pytest.raises(NoSecretError, match="is open to others"):
        user_signer(make=True)
