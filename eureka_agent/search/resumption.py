"""Resumption of a run: checks, changed settings, and leftovers of a killed driver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from eureka_agent.archive.files import write_text
from eureka_agent.archive.run_folder import SETTINGS_FILE, Run
from eureka_agent.errors import SettingsError
from eureka_agent.invocation import command
from eureka_agent.journal.entries import SettingChanged
from eureka_agent.sandbox.client import environment_folder
from eureka_agent.settings import FREE_SETTINGS, THE_FLAGS, SearchSettings, parse_settings
from eureka_agent.wording import value_text


def is_own(run: Run, *, attempts: bool) -> bool:
    """True for the user's own run, unless its environment lies in the run folder."""
    environment = environment_folder(run.settings.env)
    if environment is not None and environment.is_relative_to(run.folder.resolve()):
        return False
    return run.is_own(attempts=attempts)


def check_resumable(run: Run) -> None:
    """Raise SettingsError if settings.yaml was edited so that results could not be compared."""
    began = _first_settings(run)
    for name, value in run.settings.model_dump(mode="json").items():
        if name not in FREE_SETTINGS and began[name] != value:
            raise SettingsError(
                f"the setting {name!r} of {run.name!r} was {value_text(began[name])} when the run"
                f" began and is {value_text(value)} now",
                f"put the old value back into {run.folder / 'settings.yaml'}, or start a new"
                " search",
            )


def _first_settings(run: Run) -> dict[str, Any]:
    """Settings that the run began with, checked: the archive may have been edited."""
    stored, origin = run.archive.state.began.settings, f"the archive of {run.name!r}"
    return parse_settings(SearchSettings, stored, origin).model_dump(mode="json")


def with_changes(run: Run, changes: Mapping[str, Any]) -> SearchSettings:
    """The run's settings with changes. Raises SettingsError for one that may not change."""
    values = {**run.settings.model_dump(mode="json"), **changes}
    changed = parse_settings(SearchSettings, values, THE_FLAGS)
    for name in changes:
        before, value = getattr(run.settings, name), getattr(changed, name)
        if name not in FREE_SETTINGS and before != value:
            raise SettingsError(
                f"--{name.replace('_', '-')} is {value_text(before)} in {run.name!r} and cannot"
                f" become {value_text(value)}: what was made so far rests on it",
                f"start a new search for it; `{command('resume --help')}` lists what may change",
            )
    return changed


def record_changes(run: Run) -> list[str]:
    """Record the settings that differ from the last ones; the changes in words."""
    last = _first_settings(run)
    last.update({change.name: change.now for _, change in run.archive.state.changes})
    settings = run.settings.model_dump(mode="json")
    changes = [
        SettingChanged(name=name, before=last.get(name), now=value)
        for name, value in settings.items()
        if last.get(name) != value
    ]
    for change in changes:
        run.archive.append(change)
    if changes:
        history = run.archive.state.changes
        header = "".join(f"# {time}: {change.text}\n" for time, change in history)
        text = yaml.safe_dump(settings, sort_keys=False, allow_unicode=True)
        run.sign(coming=parse_settings(SearchSettings, settings, THE_FLAGS))
        write_text(run.folder / SETTINGS_FILE, header + text)
    return [change.text for change in changes]
