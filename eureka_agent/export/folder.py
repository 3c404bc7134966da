"""Folder of `eureka export`: the attempt, its files, and checks before the first write."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eureka_agent.archive.artefacts import BEST, RANDOMISED, REWARD
from eureka_agent.archive.files import write_file
from eureka_agent.archive.run_folder import Run
from eureka_agent.archive.safe_files import inside, open_plain
from eureka_agent.archive.stored_policies import best_randomised, stored_policy
from eureka_agent.errors import RunFolderError, system_reason
from eureka_agent.export.contents import HELPERS_FILE, MARKER, README, Exported, text_files
from eureka_agent.export.policy_description import as_json, policy_description
from eureka_agent.invocation import install_extra, show_command
from eureka_agent.report.run_report import RunReport

EXPORT = "export"
_MARKED_LINE = 10_000
ONNX, TORCHSCRIPT = "policy.onnx", "policy.pt"


@dataclass(frozen=True)
class WrittenExport:
    """Result of an export."""

    attempt: str
    folder: Path
    files: tuple[Path, ...]
    missing: dict[str, str]
    """Reasons for missing files, by name."""


def default_folder(run: Path, attempt: str | None) -> Path:
    """`export/` in the run for the best attempt, `export/<attempt>/` for a named one."""
    return inside(run, EXPORT) if attempt is None else inside(run, EXPORT, attempt)


def write_export(run: Run, report: RunReport, attempt: str | None, folder: Path) -> WrittenExport:
    """Write the best attempt of `run`, or the named one, to `folder`; for `randomised` the best one
    with the policy trained under other parameters. Raises RunFolderError without such an attempt or
    its policy, and for a folder that cannot be written or has other files."""
    exported, policy = _chosen(run, report, attempt)
    _check_folder(folder)
    described = _described(exported, policy)
    policies, missing = _policies(policy, as_json(described))
    texts = text_files(exported, described, onnx=ONNX not in missing)
    # the README first: it marks even an unfinished folder as an export
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
    written = tuple(folder / name for name in files)
    return WrittenExport(exported.attempt.id, folder, written, missing)


def _chosen(run: Run, report: RunReport, name: str | None) -> tuple[Exported, Path]:
    """Reward to export and its policy's file."""
    policy = stored_policy(run, name)
    if name == RANDOMISED:
        # the stored one may be of an earlier winner
        name, _ = best_randomised(run, report.best)
    if name is not None:
        attempt = next(each for each in report.all_attempts if each.id == name)
        return Exported(report, attempt, None), policy
    if report.best is None or not inside(run.folder, BEST, REWARD).is_file():
        hint = f"`{show_command(run.folder)}` lists its attempts: name one of them"
        raise RunFolderError(f"{run.name!r} has no best policy yet", hint)
    return Exported(report, report.best, report.best_score), policy


def _described(exported: Exported, policy: Path) -> dict[str, Any]:
    from eureka_agent.export.policy_files import statistics

    names = {
        "run": exported.report.run_name,
        "attempt": exported.attempt.id,
        "task": exported.report.sentence,
    }
    return policy_description(exported.description, statistics(policy), names)


def _policies(policy: Path, description: str) -> tuple[dict[str, bytes], dict[str, str]]:
    """The policy's files, and reasons for missing ones, by name."""
    from eureka_agent.export import policy_files

    files = {
        TORCHSCRIPT: policy_files.torchscript(policy, description),
        policy_files.DESCRIPTION: description.encode(),
    }
    if lacking := policy_files.missing_onnx_packages():
        needs = f"it needs {' and '.join(lacking)}: {install_extra('export')}, then export again"
        return files, {ONNX: needs}
    return {**files, ONNX: policy_files.onnx_model(policy, description)}, {}


def _check_folder(folder: Path) -> None:
    """Raise RunFolderError for a file, an unreadable folder, and a folder of other files."""
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
    """Delete a file of an earlier export that does not fit the new ones."""
    _storing(path.parent, lambda: path.unlink(missing_ok=True))


def _storing(folder: Path, action: Callable[[], object]) -> None:
    """Run an action on the disk. Raises RunFolderError with a hint for exports."""
    try:
        action()
    except (OSError, RunFolderError) as error:
        cause = error if isinstance(error, OSError) else error.__cause__
        reason = system_reason(cause) if isinstance(cause, OSError) else str(cause or error)
        raise RunFolderError(
            f"cannot write the export to {str(folder)!r}: {reason}",
            "free some space, mend the folder's permissions, or name another with --out",
        ) from None
