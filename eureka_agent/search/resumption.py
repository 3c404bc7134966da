"""What a killed driver leaves behind, and whether a run may go on with what it finds."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from eureka_agent.archive.run_folder import Run
from eureka_agent.errors import SettingsError
from eureka_agent.settings import FREE_SETTINGS, SearchSettings, parse_settings

_PREFIX = "eureka-driver-"


def check_resumable(run: Run) -> None:
    """Raise SettingsError where settings.yaml was edited in a way that would mix results which cannot be compared."""
    stored = run.archive.fact("settings", {})
    # as it is read today: an older version may have written a value in another form
    began = parse_settings(SearchSettings, stored, f"the archive of {run.name!r}").model_dump(mode="json")
    for name, value in run.settings.model_dump(mode="json").items():
        if name not in FREE_SETTINGS and began[name] != value:
            raise SettingsError(
                f"the setting {name!r} of {run.name!r} was {began[name]!r} when the run began and is {value!r} now",
                f"put the old value back into {run.folder / 'settings.yaml'}, or start a new search",
            )


@contextmanager
def driver_scratch() -> Iterator[Path]:
    """A temporary folder of this process; those of drivers that were killed are removed first."""
    parent = Path(tempfile.gettempdir())
    for folder in parent.glob(f"{_PREFIX}*"):
        owner = folder.name.removeprefix(_PREFIX).partition("-")[0]
        if owner.isdigit() and not _alive(int(owner)):
            shutil.rmtree(folder, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=f"{_PREFIX}{os.getpid()}-") as scratch:
        yield Path(scratch)


def _alive(process: int) -> bool:
    with suppress(ProcessLookupError):
        try:
            os.kill(process, 0)
        except PermissionError:  # somebody else's process
            return True
        return True
    return False
