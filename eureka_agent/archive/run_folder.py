"""A run: a folder that holds its settings, archive, artefacts and report; all that is needed to
resume, audit or share it."""

from __future__ import annotations

import fcntl
import hmac
import importlib.metadata
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import IO, Any

import yaml
from pydantic import ValidationError

from eureka_agent import __version__
from eureka_agent.archive.database import (
    FILE_NAME,
    Archive,
    rest_of_run,
    resume_command,
    storage_errors,
)
from eureka_agent.archive.files import write_text
from eureka_agent.archive.safe_files import check_numbers, inside, open_plain, read_plain
from eureka_agent.archive.signature import (
    NoSecretError,
    Signer,
    new_run_id,
    user_signer,
)
from eureka_agent.errors import RunFolderError, close_match, system_reason
from eureka_agent.invocation import FIRST_SEARCH, command
from eureka_agent.journal.entries import RunCreated
from eureka_agent.records import RunStatus, TaskDescription, WrittenFitness
from eureka_agent.settings import (
    RETIRED_SETTINGS,
    SearchSettings,
    parse_settings,
    read_settings_file,
    validation_fault,
)

RUNS_VARIABLE = "EUREKA_RUNS"
WHERE_RUNS_LIE = (
    "runs lie in the folder that the search was started in: go there, or name its runs folder with"
    f" {RUNS_VARIABLE}"
)
"""Environment variable that names the folder of all runs; default: `runs` in the current folder."""
SETTINGS_FILE = "settings.yaml"
ENVIRONMENT_FILE = "environment.json"
CHANGES_FILE = "changes.diff"
"""What the code that ran differed from its commit by."""
LOCK_FILE = ".lock"
_LOCK_CHARACTERS = 20
"""A process id."""


def runs_folder() -> Path:
    """Folder that new runs are made in. A variable that is empty counts as not set."""
    return Path(os.environ.get(RUNS_VARIABLE) or "runs")


def shown_runs_folder() -> str:
    """The full path of that folder, in quotes."""
    try:
        return repr(str(runs_folder().absolute()))
    except OSError:  # the working folder has gone
        return repr(str(runs_folder()))


class Run:
    """An open run folder."""

    def __init__(
        self, folder: Path, settings: SearchSettings, description: TaskDescription, archive: Archive
    ) -> None:
        self.folder = folder
        self.settings = settings
        self.description = description
        self.archive = archive
        self.why_unsigned = ""
        """Why a run that this process made or goes on with could not be signed."""

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def status(self) -> RunStatus:
        """Where the run stands; a run that was killed while it ran is a stopped one."""
        status = self.archive.facts.status
        return (
            RunStatus.STOPPED
            if status is RunStatus.RUNNING and not is_held(self.folder)
            else status
        )

    @property
    def sentence(self) -> str:
        """The task in plain words that this run works on."""
        return self.settings.sentence or self.description.sentence

    @property
    def written_fitness(self) -> WrittenFitness | None:
        """What a language model wrote for the run's sentence; None for a run by the task's own
        metric."""
        return self.archive.facts.began.written_fitness

    @property
    def fitness_origin(self) -> str:
        """Who wrote the fitness and how it was accepted, in words; empty for the task's own
        metric."""
        author = self.description.fitness_author
        accepted = self.archive.facts.began.fitness_accepted or "not accepted"
        return author and f"fitness written by {author}, {accepted}"

    @property
    def seconds(self) -> float:
        """Wall time spent on this run, over all its resumptions."""
        return self.archive.facts.seconds

    def is_own(self, *, attempts: bool = False) -> bool:
        """True when this user's program wrote what decides about code, walls and keys
        (`archive/signature.py`). `attempts`: and every attempt."""
        if self.archive.signature is None:
            return False
        run_id, signature = self.archive.signature
        try:
            signer = user_signer(make=False)
        except NoSecretError:
            return False
        if not hmac.compare_digest(self._signature(signer, run_id).encode(), signature.encode()):
            return False
        return not attempts or self.archive.sealed(partial(signer.attempt, run_id))

    def sign(self) -> str:
        """Sign what is there, and every attempt from now on. Returns why that cannot be, or ""."""
        try:
            signer = user_signer(make=True)
        except NoSecretError as error:
            return f"{error.message}; {error.hint}"
        run_id = new_run_id() if self.archive.signature is None else self.archive.signature[0]
        self.archive.seal_all(partial(signer.attempt, run_id))
        self.archive.set_signature(run_id, self._signature(signer, run_id))
        return ""

    def _signature(self, signer: Signer, run_id: str) -> str:
        began = self.archive.facts.began
        return signer.run(
            run_id, _read_settings(self.folder), _read_environment(self.folder), began
        )


def create_run(
    settings: SearchSettings,
    description: TaskDescription,
    command: list[str],
    began: RunCreated | None = None,
    parent: Path | None = None,
    seconds: float = 0.0,
) -> Run:
    """Make `runs/<time>_<env>_<task>/` with its settings, its environment and an archive.

    The archive's journal begins with `began`, to which command, settings and versions are added.
    `seconds`: wall time that the run has taken already.

    The archive comes last: a folder that has one is a whole run, and is signed then. Raises
    RunFolderError where it cannot be made.
    """
    parent = runs_folder() if parent is None else parent
    environment = re.sub(r"[^A-Za-z0-9.-]+", "-", Path(description.environment).name).strip("-")
    stem = f"{datetime.now():%Y%m%d-%H%M%S}_{environment}_{description.task}"
    try:
        parent.mkdir(parents=True, exist_ok=True)
        folder = _first_free(parent, stem)
    except OSError as error:
        raise RunFolderError(
            f"cannot make a run in {str(parent)!r}: {system_reason(error)}",
            f"free some space, mend its permissions, or name another folder with {RUNS_VARIABLE}",
        ) from None
    try:
        return _fill_run(folder, settings, description, command, began or RunCreated(), seconds)
    except BaseException as error:
        shutil.rmtree(folder, ignore_errors=True)
        if not isinstance(error, RunFolderError):
            raise
        reason = error.message.rpartition(": ")[2]
        raise RunFolderError(
            f"cannot make a run in {str(parent)!r}: {reason}",
            f"free some space, mend its permissions, or name another folder with {RUNS_VARIABLE}",
        ) from None


def _fill_run(
    folder: Path,
    settings: SearchSettings,
    description: TaskDescription,
    command: list[str],
    began: RunCreated,
    seconds: float,
) -> Run:
    """Write the files of a new run and open it."""
    commit, changes = git_state()
    dumped = settings.model_dump(mode="json")
    write_text(folder / ENVIRONMENT_FILE, description.model_dump_json(indent=2))
    write_text(folder / SETTINGS_FILE, yaml.safe_dump(dumped, sort_keys=False, allow_unicode=True))
    if changes:
        write_text(folder / CHANGES_FILE, changes)
    archive = Archive(folder)
    archive.clock = lambda: seconds
    archive.append(
        began.model_copy(
            update={
                "command": tuple(command),
                "settings": dumped,
                "versions": versions(),
                "git_commit": commit + ("+changes" if changes else "") if commit else None,
            }
        )
    )
    run = Run(folder, settings, description, archive)
    run.why_unsigned = run.sign()
    return run


def _first_free(parent: Path, stem: str) -> Path:
    number = 1
    while True:
        folder = parent / (stem if number == 1 else f"{stem}-{number}")
        try:
            folder.mkdir()
        except FileExistsError:
            number += 1
        else:
            return folder


def open_run(folder: Path, *, reading: bool = False) -> Run:
    """Open an existing run. `reading`: nothing in it is changed. Raises RunFolderError where the
    folder is not one."""
    for name in (SETTINGS_FILE, ENVIRONMENT_FILE, FILE_NAME):
        if not inside(folder, name).is_file():
            hint = rest_of_run(folder) if name == FILE_NAME else ""
            raise RunFolderError(
                f"{str(folder)!r} is not a run: it has no {name}"
                + (", in which its attempts and scores are kept" if hint else ""),
                hint or f"`{command('runs')}` lists the runs there are",
            )
    settings = _read_settings(folder)
    try:
        content = _read_environment(folder).decode()
        check_numbers(content)
        description = TaskDescription.model_validate_json(content)
    except (OSError, ValueError) as error:
        match error:
            case ValidationError():
                reason = validation_fault(error)
            case json.JSONDecodeError():
                reason = "it is not JSON"
            case OSError():
                reason = system_reason(error)
            case _:
                reason = " ".join(str(error).split())
        raise RunFolderError(
            f"{str(folder / ENVIRONMENT_FILE)!r} does not describe an environment: {reason}",
            "was it edited? restore it or start a new run",
        ) from None
    return Run(folder, settings, description, Archive(folder, reading=reading))


def _read_settings(folder: Path) -> SearchSettings:
    path = folder / SETTINGS_FILE
    return run_settings(read_settings_file(path, read_plain), str(path))


def run_settings(values: Mapping[str, Any], origin: str) -> SearchSettings:
    """Settings as a run has them, which an earlier version may have written. Raises SettingsError;
    `origin` names their place in it."""
    known = {
        name: value
        for name, value in values.items()
        if name not in RETIRED_SETTINGS and (name, value) != ("tuning", None)  # left open once
    }
    return parse_settings(SearchSettings, known, origin)


def _read_environment(folder: Path) -> bytes:
    return read_plain(folder / ENVIRONMENT_FILE)


def find_run(word: str) -> Path:
    """The run folder that a person means: a path, a name, the unique beginning of a name, or
    `latest`."""
    path = Path(word)
    if path.is_dir():
        return path
    names = [folder.name for folder in list_runs()]
    if word == "latest" and names:
        return runs_folder() / names[-1]
    matching = [name for name in names if name == word] or [
        name for name in names if name.startswith(word)
    ]
    if len(matching) == 1:
        return runs_folder() / matching[0]
    if not matching and _is_name(word) and (runs_folder() / word).is_dir():
        return runs_folder() / word  # whoever opens it says what it lacks
    if matching:
        raise RunFolderError(
            f"{word!r} is the beginning of {len(matching)} runs",
            f"name one of: {', '.join(matching)}",
        )
    if not names:
        raise RunFolderError(
            f"no run {word!r}: there is none in {shown_runs_folder()} yet",
            f"{WHERE_RUNS_LIE}; start one: {command(FIRST_SEARCH)}",
        )
    close = close_match(word, names)
    hint = f"did you mean {close!r}?" if close else f"`{command('runs')}` lists the runs there are"
    if re.fullmatch(r"\d+-\d+(-r\d+)?", word):
        hint = f"an attempt is named behind its run: {command(f'show latest {word}')}"
    raise RunFolderError(f"no run {word!r} in {shown_runs_folder()}", hint)


def _is_name(word: str) -> bool:
    return word.isprintable() and "/" not in word and not word.startswith(".") and len(word) < 256


def list_runs(parent: Path | None = None) -> list[Path]:
    """All run folders, oldest first."""
    parent = runs_folder() if parent is None else parent
    found = (path.parent for path in parent.glob(f"*/{FILE_NAME}"))
    return sorted(folder for folder in found if not folder.name.startswith("."))


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the run for this process. The system lets go of it when the process ends, however it
    ends."""
    with storage_errors(folder):
        handle = os.fdopen(
            open_plain(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_APPEND), "a+"
        )
    try:
        if not _locks(handle):
            handle.seek(0)
            raise RunFolderError(
                f"the run {folder.name!r} is being worked on by process"
                f" {handle.read(_LOCK_CHARACTERS).strip() or 'unknown'}",
                f"wait for it, or stop it and `{resume_command(folder)}`",
            )
        handle.truncate(0)
        handle.write(str(os.getpid()))
        handle.flush()
        yield
    finally:
        handle.close()


def _locks(handle: IO[str]) -> bool:
    """Take the lock; for a second a look of `is_held` may be in the way."""
    deadline = time.monotonic() + 1.0
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
        else:
            return True


def is_held(folder: Path) -> bool:
    """Some process works on the run."""
    try:
        with os.fdopen(open_plain(folder / LOCK_FILE)) as handle:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def versions() -> dict[str, str]:
    """Versions that a result depends on."""
    found = {
        "eureka_agent": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
    }
    for package in ("torch", "mujoco", "mujoco-warp", "warp-lang", "gymnasium", "numpy"):
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def git_state() -> tuple[str | None, str]:
    """Commit of the checkout that the package runs from, and the diff of its tracked files; None
    and nothing outside a checkout."""
    checkout = Path(__file__).resolve().parents[2]
    if not (checkout / ".git").exists():
        return None, ""
    try:
        return _git(checkout, "rev-parse", "HEAD").strip(), _git(checkout, "diff", "HEAD")
    except (OSError, UnicodeDecodeError, subprocess.SubprocessError):
        return None, ""


def _git(checkout: Path, *arguments: str) -> str:
    command = ["git", "-C", str(checkout), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout


def command_line() -> list[str]:
    """The command that this process was started with, as a person would type it."""
    return ["eureka", *sys.argv[1:]]
