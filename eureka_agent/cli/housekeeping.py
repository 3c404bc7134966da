"""`eureka runs --prune`: space on the disk."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from eureka_agent.cli.command import UsageError
from eureka_agent.cli.output import print_json, say
from eureka_agent.errors import EurekaError

if TYPE_CHECKING:
    from eureka_agent.search.pruning import PrunePlan

_AGE = re.compile(r"(\d{1,5})([dw])")
_DAYS = {"d": 1, "w": 7}


class NotConfirmedError(EurekaError):
    """A removal without a yes; nothing was removed."""

    exit_status = 1


def named_runs(words: Sequence[str]) -> list[Path]:
    """Run folders of these words: runs, and the runs in a folder, such as that of a batch. All runs
    without a word. Raises RunFolderError for a word without a run."""
    from eureka_agent.archive.files import FILE_NAME
    from eureka_agent.archive.run_folder import find_run, list_runs

    found: list[Path] = [] if words else list_runs()
    for word in words:
        folder = find_run(word)
        is_run = (folder / FILE_NAME).is_file()
        inner = [] if is_run else list_runs(folder) or list_runs(folder / "searches")
        found += inner or [folder]
    return list(dict.fromkeys(found))


def age(text: str) -> timedelta:
    """Time span of `30d` or `8w`. Raises UsageError."""
    if (given := _AGE.fullmatch(text)) is None:
        what = f"--older-than is {text!r}, expected a number of days or weeks"
        raise UsageError(what, "such as --older-than 30d, or 8w")
    return timedelta(days=int(given[1]) * _DAYS[given[2]])


def prune_runs(
    words: Sequence[str],
    *,
    whole: bool,
    older_than: timedelta | None,
    dry_run: bool,
    yes: bool,
    output_format: str,
) -> None:
    """Say what may go, ask once, and remove it."""
    from eureka_agent.archive.run_folder import runs_folder
    from eureka_agent.search.pruning import prune, prune_plan, remove_leftovers

    if whole and not words and older_than is None:
        raise UsageError(
            "--whole without a run would remove all of them", "name runs, or --older-than 30d"
        )
    plans: list[PrunePlan] = []
    for folder in named_runs(words):
        try:
            plans.append(prune_plan(folder, whole=whole))
        except EurekaError as error:
            say(f"skipped {folder.name}: {error.message}", err=True)
    plans = [each for each in plans if older_than is None or _is_older(each.last_time, older_than)]
    if output_format == "text":
        _print(plans)
    freed = sum(each.freed for each in plans)
    done = bool(freed) and not dry_run
    if done:
        if not yes:
            _ask(freed)
        plans = [prune(each) if each.freed else each for each in plans]
    if not dry_run:
        for parent in {runs_folder(), *(each.folder.parent for each in plans)}:
            remove_leftovers(parent)
    if output_format == "json":
        print_json({"removed": done, "bytes": _sum(plans), "runs": [_row(each) for each in plans]})
    elif done:
        from eureka_agent.wording import file_size

        for each in plans:
            if each.untouched and each.freed == 0:
                say(f"left alone: {each.folder.name}, {each.untouched}")
        say(f"removed {file_size(_sum(plans))}")


def _sum(plans: Sequence[PrunePlan]) -> int:
    return sum(each.freed for each in plans)


def _is_older(time: str, than: timedelta) -> bool:
    """True for a time that long ago; False for one that cannot be read."""
    try:
        return datetime.now(UTC) - datetime.fromisoformat(time) > than
    except (ValueError, TypeError):
        return False


def _print(plans: Sequence[PrunePlan]) -> None:
    from eureka_agent.wording import file_size, plural

    for each in plans:
        if each.untouched:
            say(f"left alone: {each.folder.name}, {each.untouched}")
        elif each.freed:
            kinds = (f"{kind} {file_size(size)}" for kind, size in each.by_kind().items())
            say(f"{each.folder.name}: {each.whole or ', '.join(kinds)}")
            say(f"  {file_size(each.freed)} of {file_size(each.size)}")
    touched = [each for each in plans if each.freed]
    if not touched:
        say("nothing to remove")
        return
    whole = sum(bool(each.whole) for each in touched)
    gone = f", {plural(whole, 'whole run')} among them" if whole else ""
    say(f"{file_size(_sum(touched))} in {plural(len(touched), 'run')}{gone}")


def _ask(freed: int) -> None:
    from eureka_agent.wording import file_size

    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise NotConfirmedError(
            f"there is no terminal to ask whether {file_size(freed)} may be removed",
            "give --yes, or look first with --dry-run",
        )
    if not click.confirm(f"Remove {file_size(freed)}?", default=False, err=True):
        raise NotConfirmedError("nothing was removed")


def _row(plan: PrunePlan) -> dict[str, Any]:
    return {
        "run": plan.folder.name,
        "folder": str(plan.folder),
        "bytes": plan.size,
        "freed": plan.freed,
        "kinds": plan.by_kind(),
        "files": len(plan.files),
        "whole": plan.whole or None,
        "untouched": plan.untouched or None,
    }
