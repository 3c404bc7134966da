"""Signatures of runs: this user's program signs each with a secret of this user's, so that a folder
from somebody else is known as such.

Covered is what decides about the code that runs, about the wall around it and about where keys go:
- every setting but those that may be edited before `eureka resume` and only say how far, how fast
  and how long it goes (limits on money among them); the flags of `eureka resume` change some more,
  after which the run is signed anew;
- `environment.json`, which has the fingerprint of the environment and the source of the baselines;
- a person's own reward and a written fitness, both in the archive;
- each entry of the journal that tells of an attempt, by a seal in its row, which is asked for
  before a run is resumed: a reward that the critic turned down must not come back as accepted.

Not covered is what is only read, or believed no more than a model is: scores, curves, replies of
models, policies, saved states of trainings. Nor are the environment's own files: they lie where the
settings say, in the user's own place. (One that lies in the run folder came with it: such a run is
never taken for the user's own.) A row that is missing is not noticed either.

The name and place of the folder are not covered, so a run may be moved; a copy of it, with its
signature, says no more than the run itself.
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
from eureka_agent.settings import FREE_SETTINGS, SearchSettings

SECRET_BYTES = 32
SIGNED = ("given_source", "written_fitness", "settings")
"""Fields of the journal's first entry that the signature covers."""
_UNSIGNED = FREE_SETTINGS - {
    "api",
    "base_url",
    "sandbox",
    "gate",
    "novelty",
    "racing",
    "retry_rounds",
}


class NoSecretError(EurekaError):
    """This user has no secret, and none can be made."""


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
        """Signature of a run. `settings`: as its file has them; `environment`: content of its
        `environment.json`; `began`: the journal's first entry."""
        named = {
            name: value
            for name, value in settings.model_dump(mode="json", exclude_unset=True).items()
            if name not in _UNSIGNED
        }
        covered = began.model_dump(mode="json", include=set(SIGNED))
        described = hashlib.sha256(environment).hexdigest()
        return self.sign("run", run_id, json.dumps([named, covered], sort_keys=True), described)

    def attempt(self, run_id: str, record: str) -> str:
        """Seal of an entry of a run's journal."""
        return self.sign("attempt", run_id, record)


def new_run_id() -> str:
    """A name for a run that no other has, wherever its folder goes."""
    return secrets.token_hex(16)


def secret_path() -> Path:
    """`$XDG_STATE_HOME/eureka_agent/secret`, or `~/.local/state/eureka_agent/secret`. Raises
    RuntimeError for a user without a home."""
    return state_folder() / "secret"


def user_signer(*, make: bool) -> Signer:
    """The signer of this user. `make`: makes the secret where there is none. Raises
    NoSecretError."""
    try:
        path = secret_path()
        with suppress(FileNotFoundError):
            return Signer(_read(path))
        if not make:
            raise NoSecretError(f"there is no {str(path)!r}")
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)  # two first uses at once agree
            with suppress(FileNotFoundError):
                return Signer(_read(path))
            _write(path, secrets.token_bytes(SECRET_BYTES))
        finally:
            os.close(folder)
        return Signer(_read(path))
    except (OSError, RuntimeError) as error:
        reason = system_reason(error) if isinstance(error, OSError) else str(error)
        place = (
            f"{error.filename!r}: "
            if isinstance(error, OSError) and error.filename is not None
            else ""
        )
        raise NoSecretError(
            f"no secret to sign runs with can be kept, {place}{reason}",
            f"set HOME or {STATE_VARIABLE} to a folder that you may write to",
        ) from None


def why_no_secret() -> str:
    """Why this user can have no secret, so that no run is known as the user's own; "" where there
    is one or it can be made."""
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
    descriptor = os.open(
        draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
    )
    try:
        os.write(descriptor, secret)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    os.replace(draft, path)
