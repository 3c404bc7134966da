"""`eureka export`'s folder: which attempt, where to, and all its files or a clear error before the
first of them."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eureka_agent.archive.artefacts import BEST, POLICY, REWARD, attempt_folder
from eureka_agent.archive.files import write_file
from eureka_agent.archive.run_folder import Run
from eureka_agent.archive.safe_files import inside, open_plain
from eureka_agent.errors import RunFolderError, did_you_mean, system_reason
from eureka_agent.export.contents import HELPERS_FILE, MARKER, README, Exported, text_files
from eureka_agent.export.policy_description import as_json, policy_description
from eureka_agent.invocation import command, install_extra
from eureka_agent.records import Attempt
from eureka_agent.report.run_report import RunReport
from eureka_agent.wording import words

EXPORT = "export"
_MARKED_LINE = 10_000
"""Characters in which the marker is looked for."""
ONNX, TORCHSCRIPT = "policy.onnx", "policy.pt"


@dataclass(frozen=True)
class WrittenExport:
    """What an export has written."""

    attempt: str
    folder: Path
    files: tuple[Path, ...]
    missing: dict[str, str]
    """Files that could not be made, and why."""


def default_folder(run: Path, attempt: str | None) -> Path:
    """`export/` in the run, for the best; `export/<attempt>/` for an attempt that was named."""
    return inside(run, EXPORT) if attempt is None else inside(run, EXPORT, attempt)


def write_export(run: Run, report: RunReport, attempt: str | None, folder: Path) -> WrittenExport:
    """Write the best attempt of `run`, or the one named, to `folder`.

    Raises RunFolderError where there is no such attempt or no policy of it, or where `folder`
    cannot be written or holds something else.
    """
    exported, policy = _chosen(run, report, attempt)
    _check_folder(folder)
    described = _described(exported, policy)
    policies, missing = _policies(policy, as_json(described))
    texts = text_files(exported, described, onnx=ONNX not in missing)
    # the README first: by it a folder half written is known as an export
    files = {name: text.encode() for name, text in texts.items()} | policies
    made = not folder.exists()
    try:
        for name in (*missing, *{HELPERS_FILE}.difference(texts)):
            _delete(folder / name)
        for name, content in files.items():
            _write(folder / name, content)
    except BaseException:
        if made:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    return WrittenExport(
        exported.attempt.id, folder, tuple(folder / name for name in files), missing
    )


def _chosen(run: Run, report: RunReport, attempt: str | None) -> tuple[Exported, Path]:
    """What to export, and its policy's file."""
    if attempt is not None:
        return _chosen_attempt(run, report, attempt)
    policy, reward = inside(run.folder, BEST, POLICY), inside(run.folder, BEST, REWARD)
    if report.best is None or not policy.is_file() or not reward.is_file():
        raise RunFolderError(
            f"{run.name!r} has no best policy yet",
            f"`{command(shlex.join(['show', str(run.folder)]))}` lists its attempts: name one of"
            " them",
        )
    return Exported(report=report, attempt=report.best, score=report.best_score), policy


def _chosen_attempt(run: Run, report: RunReport, name: str) -> tuple[Exported, Path]:
    chosen = next((entry for entry in report.attempts if entry.id == name), None)
    if chosen is None:
        raise RunFolderError(
            f"the run {run.name!r} has no attempt {name!r}",
            did_you_mean(name, [entry.id for entry in report.attempts]),
        )
    policy = inside(attempt_folder(run.folder, name), POLICY)
    if not policy.is_file():
        raise RunFolderError(
            f"the attempt {name!r} has no policy: it is {_state(chosen)}",
            f"`{command(shlex.join(['show', str(run.folder)]))}` lists what was trained",
        )
    return Exported(report=report, attempt=chosen, score=None), policy


def _state(attempt: Attempt) -> str:
    """`rejected (A201: …)`."""
    reason = f" ({attempt.reason})" if attempt.reason else ""
    return words(attempt.stage.value) + reason


def _described(exported: Exported, policy: Path) -> dict[str, Any]:
    from eureka_agent.export.policy_files import statistics

    names = {
        "run": exported.report.run_name,
        "attempt": exported.attempt.id,
        "task": exported.report.sentence,
    }
    return policy_description(exported.description, statistics(policy), names)


def _policies(policy: Path, description: str) -> tuple[dict[str, bytes], dict[str, str]]:
    """The policy's files by name, and why one is missing."""
    from eureka_agent.export.policy_files import (
        DESCRIPTION,
        missing_onnx_packages,
        onnx_model,
        torchscript,
    )

    files, missing = (
        {TORCHSCRIPT: torchscript(policy, description), DESCRIPTION: description.encode()},
        {},
    )
    lacking = missing_onnx_packages()
    if lacking:
        missing[ONNX] = (
            f"it needs {' and '.join(lacking)}: {install_extra('export')}, then export again"
        )
    else:
        files[ONNX] = onnx_model(policy, description)
    return files, missing


def _check_folder(folder: Path) -> None:
    """Raise RunFolderError where the folder is a file, cannot be read, or holds what is no export.
    It is made only once there is something to write."""
    if folder.exists() and not folder.is_dir():
        raise RunFolderError(
            f"cannot write the export to {str(folder)!r}: it is a file", "name a folder with --out"
        )
    entries: list[Path] = []
    if not folder.exists():
        return
    _storing(folder, lambda: entries.extend(folder.iterdir()))
    if not (_is_export(folder) or all(_is_export(entry) for entry in entries)):
        raise RunFolderError(
            f"{str(folder)!r} is not empty and no earlier export, so nothing was written to it",
            "name a new folder with --out",
        )


def _is_export(folder: Path) -> bool:
    try:
        with os.fdopen(open_plain(folder / README), encoding="utf-8") as readme:
            return MARKER in readme.readline(_MARKED_LINE)
    except (OSError, UnicodeDecodeError):
        return False


def _write(path: Path, content: bytes) -> None:
    _storing(path.parent, lambda: write_file(path, lambda draft: draft.write_bytes(content)))


def _delete(path: Path) -> None:
    """What is there is of an earlier export, and would not fit the new files."""
    _storing(path.parent, lambda: path.unlink(missing_ok=True))


def _storing(folder: Path, action: Callable[[], object]) -> None:
    """Run an action on the disk. Raises RunFolderError that says what to do about an export."""
    try:
        action()
    except (OSError, RunFolderError) as error:
        cause = error if isinstance(error, OSError) else error.__cause__
        reason = system_reason(cause) if isinstance(cause, OSError) else str(cause or error)
        raise RunFolderError(
            f"cannot write the export to {str(folder)!r}: {reason}",
            "free some space, mend the folder's permissions, or name another with --out",
        ) from None
