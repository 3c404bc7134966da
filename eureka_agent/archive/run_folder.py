"""A run: a folder with settings, archive, artefacts and report."""

from __future__ import annotations

import hmac
import importlib.metadata
import itertools
import os
import platform
import re
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path

import yaml
from pydantic import ValidationError

from eureka_agent import __version__
from eureka_agent.archive.database import Archive
from eureka_agent.archive.files import FILE_NAME, is_full, is_held, rest_of_run, write_text
from eureka_agent.archive.safe_files import check_numbers, inside, read_plain
from eureka_agent.archive.signature import NoSecretError, Signer, user_signer
from eureka_agent.errors import (
    DiskFullError,
    RunFolderError,
    close_match,
    did_you_mean,
    system_reason,
)
from eureka_agent.invocation import FIRST_SEARCH, command
from eureka_agent.journal.entries import RunCreated
from eureka_agent.records import RunStatus, TaskDescription, WrittenFitness
from eureka_agent.settings import SearchSettings, judge_of, parse_settings, validation_fault
from eureka_agent.settings_files import read_settings_file

RUNS_VARIABLE = "EUREKA_RUNS"
"""Environment variable that names the folder of all runs; default: `runs` in the current folder."""
RUNS_FOLDER_HINT = (
    "runs lie in the folder that the search was started in: go there, or name its runs folder with"
    f" {RUNS_VARIABLE}"
)
SETTINGS_FILE = "settings.yaml"
ENVIRONMENT_FILE = "environment.json"
CHANGES_FILE = "changes.diff"
"""Uncommitted changes of the code that ran."""
DRAFT_FOLDER = ".new"
"""Folder of an archive that is not yet complete."""


def runs_folder() -> Path:
    """Folder of new runs."""
    return Path(os.environ.get(RUNS_VARIABLE) or "runs")


def shown_runs_folder() -> str:
    """Full path of that folder, in quotes."""
    try:
        return repr(str(runs_folder().absolute()))
    except OSError:  # the working folder is gone
        return repr(str(runs_folder()))


BATCH_FILE = "batch.json"
"""Intents of a batch, in the folder of its runs."""


def cache_parent(run: Path) -> Path:
    """Folder of the cache that a run shares with others: the runs folder, also for the runs of a
    batch in it."""
    parent = run.parent
    return parent.parent if (parent / BATCH_FILE).is_file() else parent


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
        """Reason why this process could not sign the run."""

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def status(self) -> RunStatus:
        """Status of the run; STOPPED for a killed one."""
        status = self.archive.facts.status
        if status is RunStatus.RUNNING and not is_held(self.folder):
            return RunStatus.STOPPED
        return status

    @property
    def sentence(self) -> str:
        """The run's task in plain words."""
        return self.settings.sentence or self.description.sentence

    @property
    def written_fitness(self) -> WrittenFitness | None:
        """Fitness that a language model wrote; None for the task's own metric."""
        return self.archive.facts.began.written_fitness

    @property
    def fitness_origin(self) -> str:
        """Author and acceptance of a written fitness, in words; empty for the task's own metric."""
        author = self.description.fitness_author
        if self.settings.fitness == "chosen":
            return "no metric is calculated, your choices rank the attempts"
        if judge := judge_of(self.settings):
            return f"no metric is calculated, strengths are judged by {judge} from pictures"
        accepted = self.archive.facts.began.fitness_accepted or "not accepted"
        return author and f"fitness written by {author}, {accepted}"

    @property
    def seconds(self) -> float:
        """Wall time over all processes."""
        return self.archive.facts.seconds

    def is_own(self, *, attempts: bool = False) -> bool:
        """True where this user's program wrote the settings, the environment and, with `attempts`,
        every attempt (`archive/signature.py`)."""
        if self.archive.signature is None:
            return False
        run_id, signature = self.archive.signature
        try:
            signer = user_signer(make=False)
        except NoSecretError:
            return False
        expected = self._signature(signer, run_id, _read_settings(self.folder)).encode()
        if not any(hmac.compare_digest(expected, each.encode()) for each in signature.split()):
            return False
        return not attempts or self.archive.sealed(partial(signer.attempt, run_id))

    def sign(self, coming: SearchSettings | None = None) -> str:
        """Sign the run and all new entries. `coming`: settings about to be written, with which the
        run is this user's, too. Returns the reason why that is impossible, or ""."""
        try:
            signer = user_signer(make=True)
        except NoSecretError as error:
            return f"{error.message}; {error.hint}"
        run_id, _ = self.archive.signature or (secrets.token_hex(16), "")
        self.archive.seal_all(partial(signer.attempt, run_id))
        signed = (_read_settings(self.folder), coming)
        signatures = (self._signature(signer, run_id, each) for each in signed if each is not None)
        self.archive.set_signature(run_id, " ".join(signatures))
        return ""

    def _signature(self, signer: Signer, run_id: str, settings: SearchSettings) -> str:
        environment = read_plain(self.folder / ENVIRONMENT_FILE)
        return signer.run(run_id, settings, environment, self.archive.facts.began)


def create_run(
    settings: SearchSettings,
    description: TaskDescription,
    command: list[str],
    began: RunCreated | None = None,
    parent: Path | None = None,
    seconds: float = 0.0,
    folder: Path | None = None,
) -> Run:
    """Make `runs/<time>_<env>_<task>/` with its settings, its environment and an archive.

    `began`: the journal's first entry, to which command, settings and versions are added;
    `seconds`: wall time that the run has taken already; `folder`: one to make in place of
    `<time>_<env>_<task>`. The archive comes last, signed, so a folder with one is a complete run of
    this user however its process ends. Raises RunFolderError where it cannot be made.
    """
    parent = folder.parent if folder is not None else parent or runs_folder()
    environment = re.sub(r"[^A-Za-z0-9.-]+", "-", Path(description.environment).name).strip("-")
    task = re.sub(r"[^\w.-]+", "-", description.task)
    stem = f"{datetime.now():%Y%m%d-%H%M%S}_{environment}_{task}"
    made = None
    try:
        parent.mkdir(parents=True, exist_ok=True)
        made = _new_folder(parent / stem if folder is None else folder, again=folder is None)
        return _fill_run(made, settings, description, command, began or RunCreated(), seconds)
    except BaseException as error:
        if made is not None:
            shutil.rmtree(made, ignore_errors=True)
        if isinstance(error, RunFolderError):
            full, reason = isinstance(error, DiskFullError), error.message.rpartition(": ")[2]
        elif isinstance(error, OSError):
            full, reason = is_full(error, parent), system_reason(error)
        else:
            raise
        raise (DiskFullError if full else RunFolderError)(
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
    draft = folder / DRAFT_FOLDER
    draft.mkdir()
    first = began.model_copy(
        update={
            "command": tuple(command),
            "settings": dumped,
            "versions": versions(),
            "git_commit": commit + ("+changes" if changes else "") if commit else None,
        }
    )
    with closing(Archive(draft)) as archive:
        archive.clock = lambda: seconds
        archive.append(first)
        Run(folder, settings, description, archive).sign()
    os.replace(draft / FILE_NAME, folder / FILE_NAME)
    draft.rmdir()
    run = Run(folder, settings, description, Archive(folder))
    run.why_unsigned = run.sign()
    return run


def _new_folder(folder: Path, *, again: bool) -> Path:
    """A folder of this name; `again`: with a number behind it where there is one already."""
    first, numbers = folder, itertools.count(2)
    while True:
        try:
            folder.mkdir()
        except FileExistsError:
            if not again:
                raise
            folder = first.with_name(f"{first.name}-{next(numbers)}")
        else:
            return folder


def open_run(folder: Path, *, reading: bool = False) -> Run:
    """Open an existing run. `reading`: change nothing. Raises RunFolderError for another folder."""
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
        content = read_plain(folder / ENVIRONMENT_FILE).decode()
        check_numbers(content)
        description = TaskDescription.model_validate_json(content)
    except (OSError, ValueError) as error:  # pydantic's too
        if isinstance(error, ValidationError):
            reason = validation_fault(error)
        else:
            reason = system_reason(error) if isinstance(error, OSError) else str(error)
        raise RunFolderError(
            f"{str(folder / ENVIRONMENT_FILE)!r} does not describe an environment: {reason}",
            "was it edited? restore it or start a new run",
        ) from None
    return Run(folder, settings, description, Archive(folder, reading=reading))


def _read_settings(folder: Path) -> SearchSettings:
    path = folder / SETTINGS_FILE
    return parse_settings(SearchSettings, read_settings_file(path, read_plain), str(path))


@contextmanager
def reading(word: str) -> Iterator[Run]:
    """The run of a path, a name, the beginning of one, or `latest`, open for reading."""
    run = open_run(find_run(word), reading=True)
    with closing(run.archive):
        yield run


def unknown_attempt(run: Run, attempt: str, others: Sequence[str] = ()) -> RunFolderError:
    """Error of an attempt that a run does not have. `others`: what could be named instead."""
    known = [*(each.id for each in run.archive.attempts_in_brief()), *others]
    fault = f"the run {run.name!r} has no attempt {attempt!r}"
    return RunFolderError(fault, did_you_mean(attempt, known))


def find_run(word: str) -> Path:
    """Run folder by a path, a name, the unique beginning of a name, or `latest`."""
    path, inside_batch = Path(word), runs_folder() / word
    if path.is_dir():
        return path
    if "/" in word and inside_batch.is_dir():  # `<batch>/<search>`
        return inside_batch
    names = [folder.name for folder in list_runs()]
    if word == "latest" and names:
        return runs_folder() / names[-1]
    matching = [name for name in names if name == word] or [
        name for name in names if name.startswith(word)
    ]
    if len(matching) == 1:
        return runs_folder() / matching[0]
    plain = word.isprintable() and not ("/" in word or word.startswith(".")) and len(word) < 256
    if not matching and plain and (runs_folder() / word).is_dir():
        return runs_folder() / word  # `open_run` says what it lacks
    if matching:
        hint = f"name one of: {', '.join(matching)}"
        raise RunFolderError(f"{word!r} is the beginning of {len(matching)} runs", hint)
    if not names:
        raise RunFolderError(
            f"no run {word!r}: there is none in {shown_runs_folder()} yet",
            f"{RUNS_FOLDER_HINT}; start one: {command(FIRST_SEARCH)}",
        )
    close = close_match(word, names)
    hint = f"did you mean {close!r}?" if close else f"`{command('runs')}` lists the runs there are"
    if re.fullmatch(r"\d+-\d+(-r\d+)?", word):
        hint = f"an attempt is named behind its run: {command(f'show latest {word}')}"
    raise RunFolderError(f"no run {word!r} in {shown_runs_folder()}", hint)


def list_runs(parent: Path | None = None) -> list[Path]:
    """All run folders, oldest first."""
    parent = runs_folder() if parent is None else parent
    found = (path.parent for path in parent.glob(f"*/{FILE_NAME}"))
    return sorted(folder for folder in found if not folder.name.startswith("."))


def list_batches() -> list[Path]:
    """Folders of all batches in the runs folder."""
    return sorted(path.parent for path in runs_folder().glob(f"*/{BATCH_FILE}"))


def versions() -> dict[str, str]:
    """Versions of the packages that determine a result."""
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
    """Commit of the package's checkout, if any, and the diff of its tracked files."""
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
    """Command line of this process."""
    return ["eureka", *sys.argv[1:]]
