"""Intents of a batch: `batch.json` in its folder says what was asked of it, and what it decided.

Nothing that a search has found stands in it: that is in the search's run folder. A change is
stored before anything acts on it. The file is not trusted: it is plain, short, and checked.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from eureka_agent import __version__
from eureka_agent.archive.database import MOST_SECONDS
from eureka_agent.archive.files import locked, write_file
from eureka_agent.archive.run_folder import BATCH_FILE
from eureka_agent.archive.safe_files import load_json, read_plain
from eureka_agent.errors import RunFolderError, system_reason
from eureka_agent.invocation import command
from eureka_agent.settings import validation_fault
from eureka_agent.text import LONGEST_TEXT, printable

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
"""Form of a search's name, which is the name of its folder."""
FORM = 1
"""Form of the file; a batch with another one is refused."""
REQUESTS = ("pause", "resume", "cancel", "retune", "stop")
"""Kinds of events by which a person asks for something."""
_MOST_EVENTS = 100
_MOST_BYTES = 16 << 20
_CHANGES_LOCK = ".changes.lock"
"""Lock that a process holds while it changes the file."""

_Text = Annotated[str, AfterValidator(lambda text: printable(text[:LONGEST_TEXT]))]
_Name = Annotated[str, Field(pattern=rf"^{NAME.pattern}$")]


class BatchEvent(BaseModel):
    """One thing that happened, for people."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    number: int = Field(ge=0)
    time: float = Field(ge=0, le=MOST_SECONDS)
    """Seconds since 1970."""
    kind: _Text
    search: _Text | None = None
    text: _Text = ""


class SearchIntent(BaseModel):
    """What is asked of one search, and what was decided on it in this call of the command."""

    model_config = ConfigDict(extra="forbid", validate_assignment=True)

    settings: dict[str, Any]
    """Settings by name, as the batch file gives them."""
    retuned: dict[str, Any] = {}
    """Settings that a person has changed since."""
    in_file: bool = True
    cancelled: bool = False
    paused: bool = False
    under_way: bool = False
    failed: bool = False
    """True after its last try."""
    tries: int = Field(0, ge=0)
    message: _Text = ""


class Intents(BaseModel):
    model_config = ConfigDict(extra="forbid", validate_assignment=True)

    form: int = FORM
    version: _Text = __version__
    limits: dict[str, Any] = {}
    """Settings of the batch, as they are now."""
    paused: bool = False
    stopping: _Text = ""
    """Reason why the batch ends as soon as nothing is under way; empty while it goes on."""
    unheard: bool = False
    """True while a request waits for the process that works on the batch."""
    trainings: int = Field(0, ge=0)
    """Trainings under way, as that process has told last."""
    searches: dict[_Name, SearchIntent] = {}
    """All searches: first those of the batch file, in its order."""
    events: list[BatchEvent] = []
    """The last events, oldest first."""


class IntentsFile:
    """The intents in the folder of a batch, which several processes change."""

    def __init__(self, folder: Path, *, make: bool = False) -> None:
        """Read them. `make`: begin without any where there is no file. Raises RunFolderError for
        another folder or another version's batch."""
        self.folder, self._path = folder, folder / BATCH_FILE
        self.now = Intents()
        self.observer: Callable[[BatchEvent], None] = lambda event: None
        self._stamp: tuple[int, int, int] | None = None
        if not make or self._path.exists():
            self.read()

    def read(self) -> None:
        """Take over what other processes have changed."""
        try:
            if (stamp := self._stamped()) == self._stamp:
                return
            content = load_json(read_plain(self._path, _MOST_BYTES))
            if isinstance(content, dict) and content.get("form", FORM) != FORM:
                raise ValueError(
                    f"it has the form {content['form']} of version {content.get('version')}, and"
                    f" version {__version__} of this program reads form {FORM}"
                )
            now = Intents.model_validate(content)
        except FileNotFoundError:
            raise RunFolderError(
                f"{str(self.folder)!r} is not a batch: it has no {BATCH_FILE}",
                f"`{command('batches')}` lists the batches there are",
            ) from None
        except (OSError, ValueError) as error:
            fault = validation_fault(error) if isinstance(error, ValidationError) else str(error)
            fault = system_reason(error) if isinstance(error, OSError) else fault
            raise RunFolderError(
                f"{str(self._path)!r} cannot be read as a batch: {printable(fault)[:300]}",
                "do not trust a folder that is not yours; start the batch in another --folder",
            ) from None
        seen, self.now, self._stamp = self._last, now, stamp
        for event in now.events:
            if event.number > seen:
                self.observer(event)

    def _stamped(self) -> tuple[int, int, int]:
        found = self._path.lstat()
        return found.st_ino, found.st_mtime_ns, found.st_size

    def record(self, kind: str, text: str = "", search: str | None = None, **changes: Any) -> None:
        """Store changes of a search's `SearchIntent`, or of the batch's `Intents`, with an event
        where it has a kind. Raises DiskFullError where there is no room: then they hold in this
        process."""
        with locked(self.folder, "batch", "try again", _CHANGES_LOCK):
            if self._stamp is not None:
                self.read()
            changed = self.now if search is None else self.now.searches[search]
            for name, value in changes.items():
                setattr(changed, name, value)
            self.now.unheard = self.now.unheard or kind in REQUESTS
            event = BatchEvent(
                number=self._last + 1, time=time.time(), kind=kind, search=search, text=text
            )
            if kind:
                self.now.events = [*self.now.events, event][-_MOST_EVENTS:]
            try:
                write_file(self._path, self._write)
                self._stamp = self._stamped()
            finally:
                if kind:
                    self.observer(event)

    @property
    def _last(self) -> int:
        return max((event.number for event in self.now.events), default=0)

    def _write(self, draft: Path) -> None:
        with draft.open("w", encoding="utf-8") as file:
            os.fchmod(file.fileno(), 0o600)  # whoever can write to it steers the batch
            file.write(json.dumps(self.now.model_dump()))
            file.flush()
            os.fsync(file.fileno())
