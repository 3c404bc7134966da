"""Signatures of runs with a secret of this user, which distinguish somebody else's run folder.

The signature covers the code that runs, the wall around it and the servers that get keys:
- all settings but those that may be edited before `eureka resume` and only limit a search; after
  its flags change others, the run is signed anew;
- `environment.json` with the environment's fingerprint and the baselines' source;
- a person's own reward and a written fitness, both in the archive;
- each entry on an attempt, by a seal in its row that is checked before a run is resumed: a rejected
  reward must not come back as accepted.

It does not cover data that is only read or not trusted anyway: scores, curves, replies, policies,
saved states. Nor does it cover the environment's files, which lie in the user's own folders (a run
with its environment in the run folder never counts as the user's own), nor missing rows, nor the
name and place of the folder, so a run may be moved or copied.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import json
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

from eureka_agent.archive.safe_files import open_plain
from eureka_agent.errors import EurekaError, system_reason
from eureka_agent.journal.entries import RunCreated
from eureka_agent.resources import STATE_VARIABLE, state_folder
from eureka_agent.settings import FREE_SETTINGS, REACHING, SearchSettings

SECRET_BYTES = 32
SIGNED = ("given_source", "written_fitness", "settings")
"""Signed fields of the journal's first entry."""
_UNSIGNED = FREE_SETTINGS - REACHING - {"api", "novelty", "retry_rounds"}


class NoSecretError(EurekaError):
    """This user has no secret, and none can be created."""


class Signer:
    """Signs with a user's secret."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def sign(self, *parts: str) -> str:
        """HMAC-SHA-256 over the parts, in hexadecimal digits."""
        return hmac.new(self._secret, json.dumps(parts).encode(), hashlib.sha256).hexdigest()

    def run(
        self, run_id: str, settings: SearchSettings, environment: bytes, began: RunCreated
    ) -> str:
        """Signature of a run by its settings, its `environment.json` and its first entry."""
        named = settings.model_dump(mode="json", exclude_unset=True, exclude=set(_UNSIGNED))
        covered = began.model_dump(mode="json", include=set(SIGNED))
        described = hashlib.sha256(environment).hexdigest()
        return self.sign("run", run_id, json.dumps([named, covered], sort_keys=True), described)

    def attempt(self, run_id: str, record: str) -> str:
        """Seal of an entry in a run's journal."""
        return self.sign("attempt", run_id, record)


def secret_path() -> Path:
    """File of the secret. Raises RuntimeError for a user without a home."""
    return state_folder() / "secret"


def user_signer(*, make: bool) -> Signer:
    """Signer of this user. `make`: create a missing secret. Raises NoSecretError."""
    try:
        path = secret_path()
        with suppress(FileNotFoundError):
            return Signer(_read(path))
        if not make:
            raise NoSecretError(f"there is no {str(path)!r}")
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)  # two processes may create it at once
            with suppress(FileNotFoundError):
                return Signer(_read(path))
            _write(path, secrets.token_bytes(SECRET_BYTES))
        finally:
            os.close(folder)
        return Signer(_read(path))
    except (OSError, RuntimeError) as error:
        reason = system_reason(error) if isinstance(error, OSError) else str(error)
        if isinstance(error, OSError) and error.filename is not None:
            reason = f"{error.filename!r}: {reason}"
        raise NoSecretError(
            f"no secret to sign runs with can be kept, {reason}",
            f"set HOME or {STATE_VARIABLE} to a folder that you may write to",
        ) from None


def why_no_secret() -> str:
    """Reason why this user can have no secret, and so no run of their own; "" otherwise."""
    try:
        user_signer(make=True)
    except NoSecretError as error:
        return f"{error.message}; {error.hint}"
    return ""


def _read(path: Path) -> bytes:
    with os.fdopen(open_plain(path), "rb") as file:
        status = os.fstat(file.fileno())
        if status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) & 0o077:
            raise OSError(
                None, f"{str(path)!r} is open to others; remove it, and a new one is made"
            )
        secret = file.read(SECRET_BYTES + 1)
    if len(secret) != SECRET_BYTES:
        raise OSError(None, f"{str(path)!r} is damaged; remove it, and a new one is made")
    return secret


def _write(path: Path, secret: bytes) -> None:
    draft = path.with_name(".secret.draft")
    draft.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(draft, flags, 0o600), "wb") as file:
        file.write(secret)
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, path)
