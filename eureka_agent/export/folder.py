"""Folder of `eureka export`: the attempt, its files, the description of the policy's inputs and
outputs, and checks before the first write."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from eureka_agent.archive.artefacts import BEST, RANDOMISED, REWARD, best_randomised, stored_policy
from eureka_agent.archive.files import write_file
from eureka_agent.archive.run_folder import Run
from eureka_agent.archive.safe_files import inside, open_plain
from eureka_agent.array_files import COMMAND_POLICY, command_policy
from eureka_agent.errors import RunFolderError, system_reason
from eureka_agent.export.contents import (
    HELPERS_FILE,
    MARKER,
    README,
    Exported,
    command_texts,
    text_files,
)
from eureka_agent.invocation import install_extra, show_command
from eureka_agent.journal.state import RunState
from eureka_agent.records import ChannelSpec, TaskDescription
from eureka_agent.report.run_report import RunReport
from eureka_agent.rewards import OBSERVATION_FUNCTION

FORMAT = "eureka-policy-1"


def policy_description(
    description: TaskDescription,
    mean: Sequence[float],
    deviation: Sequence[float],
    names: dict[str, str],
    designed: bool = False,
) -> dict[str, Any]:
    """Content of policy.json. `mean`, `deviation`: of the policy's training observations, one
    number a column. `names`: run, attempt and task. `designed`: the reward's file makes the
    observation."""
    size = len(mean)
    inputs = () if designed else _fitting(description.observation_channels, size)
    observation = _columns(inputs, size, OBSERVATION_FUNCTION if designed else "observation")
    for column, its_mean, its_deviation in zip(observation, mean, deviation, strict=True):
        column |= {"mean": its_mean, "deviation": its_deviation}
    return {
        "format": FORMAT,
        **names,
        "control_dt_s": description.control_dt,
        "episode_steps": description.max_episode_length,
        "quaternion_order": description.quaternion_order,
        "observation": {
            "input": "observation",
            "shape": ["batch", size],
            "dtype": "float32",
            "value": (
                f"result of {OBSERVATION_FUNCTION} in reward.py"
                if designed
                else "quantity * scale, in the column's unit and frame"
            ),
            "normalisation": "the policy itself computes clip((value - mean) / deviation, -10, 10)",
            "named": bool(inputs),
            "columns": observation,
        },
        **_outputs(description),
    }


def _fitting(channels: Sequence[ChannelSpec], size: int) -> Sequence[ChannelSpec]:
    """Channels of so many numbers; none where they do not fit, since a worker may send anything."""
    return channels if sum(len(each.entries) or 1 for each in channels) == size else ()


def _outputs(description: TaskDescription) -> dict[str, Any]:
    count, choices = description.num_actions, description.action_choices
    channels = _fitting(description.action_channels, count)
    columns = _columns(channels, count, "action")
    ranges = [each.range for each in channels for _ in each.entries or ("",)] or [None] * count
    for index, (column, bounds) in enumerate(zip(columns, ranges, strict=True)):
        del column["scale"]
        low, high = bounds or (None, None)
        column |= {"choices": choices[index]} if choices else {"low": low, "high": high}
    if choices:
        form = {
            "shape": ["batch"] if count == 1 else ["batch", count],
            "dtype": "int64",
            "value": "index of the likeliest choice, from 0; each column has as many as it says",
        }
    else:
        form = {
            "shape": ["batch", count],
            "dtype": "float32",
            "value": (
                "-1 to 1; where a column has low and high: command = low + (value + 1) / 2 * (high"
                " - low)"
            ),
        }
    action = {"output": "action", **form, "named": bool(channels), "columns": columns}
    logits = {
        "output": "logits",
        "shape": ["batch", sum(choices)],
        "dtype": "float32",
        "value": (
            "logarithm of each choice's probability, but for a constant; the columns' choices one"
            " after the other"
        ),
    }
    return {"action": action, "logits": logits} if choices else {"action": action}


def _columns(channels: Sequence[ChannelSpec], count: int, fallback: str) -> list[dict[str, Any]]:
    """Columns of the channels; without channels columns without names."""
    if not channels:
        names = [f"{fallback}[{index}]" for index in range(count)]
        channels = [ChannelSpec(name=name, unit="?", frame="?") for name in names]
    numbers = [(channel, entry) for channel in channels for entry in channel.entries or ("",)]
    return [
        {
            "index": index,
            "name": f"{channel.name}.{entry}" if entry else channel.name,
            **channel.model_dump(include={"unit", "frame", "doc", "scale"}),
        }
        for index, (channel, entry) in enumerate(numbers)
    ]


EXPORT = "export"
_MARKED_LINE = 10_000
ONNX, TORCHSCRIPT, LEARNED_FILE = "policy.onnx", "policy.pt", "learned.json"


@dataclass(frozen=True)
class WrittenExport:
    attempt: str
    folder: Path
    files: tuple[Path, ...]
    missing: dict[str, str]


def default_folder(run: Path, attempt: str | None) -> Path:
    """`export/` in the run for the best attempt, `export/<attempt>/` for a named one."""
    return inside(run, EXPORT) if attempt is None else inside(run, EXPORT, attempt)


def write_export(run: Run, report: RunReport, attempt: str | None, folder: Path) -> WrittenExport:
    """Write the best attempt of `run`, or the named one, to `folder`; for `randomised` the best one
    with the policy trained under other parameters. Raises RunFolderError without such an attempt or
    its policy, and for a folder that cannot be written or has other files."""
    exported, policy = _chosen(run, report, attempt)
    _check_folder(folder)
    if report.description.command is not None:
        files, missing = _of_command(exported, policy)
    else:
        files, missing = _of_trainer(report, exported, policy, run.archive.state)
    made = not folder.exists()
    try:
        with _storing(folder):
            # of an earlier export, which do not fit the new ones
            for name in (*missing, *{HELPERS_FILE, LEARNED_FILE}.difference(files)):
                (folder / name).unlink(missing_ok=True)
            for name, content in files.items():
                write_file(folder / name, partial(Path.write_bytes, data=content))
    except BaseException:
        if made:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    written = tuple(folder / name for name in files)
    return WrittenExport(exported.attempt.id, folder, written, missing)


def _of_command(exported: Exported, policy: Path) -> tuple[dict[str, bytes], dict[str, str]]:
    """Files of a command environment's attempt: its reward, and the policy in the command's own
    form; and the reason for those that are missing."""
    texts = command_texts(exported)
    files = {name: text.encode() for name, text in texts.items()}
    files[COMMAND_POLICY] = command_policy(policy)
    reason = f"the policy is a file of the command's own form: {COMMAND_POLICY}"
    return files, dict.fromkeys((ONNX, TORCHSCRIPT), reason)


def _of_trainer(
    report: RunReport, exported: Exported, policy: Path, state: RunState
) -> tuple[dict[str, bytes], dict[str, str]]:
    """Files of an attempt of this program's trainer, the README first, which marks even an
    unfinished folder as an export; and the reason for those that are missing."""
    from eureka_agent.export import policy_files  # it imports torch

    mean, deviation = policy_files.statistics(policy)
    names = {"run": report.run_name, "attempt": exported.attempt.id, "task": report.sentence}
    designed = exported.reward.designs_observation
    described = policy_description(report.description, mean, deviation, names, designed)
    description = json.dumps(described, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    policies = {
        TORCHSCRIPT: policy_files.torchscript(policy, description),
        policy_files.DESCRIPTION: description.encode(),
    }
    missing = {}
    if lacking := policy_files.missing_onnx_packages():
        needs = f"it needs {' and '.join(lacking)}: {install_extra('export')}, then export again"
        missing[ONNX] = needs
    else:
        policies[ONNX] = policy_files.onnx_model(policy, description)
    if exported.reward.kind != "code":
        learned = policy_files.learned_numbers(policy)
        if exported.reward.kind == "labels":
            of_model = [*state.captions_asked.values(), *state.captions_labelled.values()]
            learned["asked"] = [each.model_dump(mode="json") for each in of_model]
        policies[LEARNED_FILE] = json.dumps(learned).encode()
    texts = text_files(exported, described, onnx=ONNX not in missing)
    return {name: text.encode() for name, text in texts.items()} | policies, missing


def _chosen(run: Run, report: RunReport, name: str | None) -> tuple[Exported, Path]:
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


def _check_folder(folder: Path) -> None:
    """Raise RunFolderError for a file, an unreadable folder, and a folder of other files."""
    if not folder.exists():
        return
    with _storing(folder):
        entries = [*folder.iterdir()]
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


@contextmanager
def _storing(folder: Path) -> Iterator[None]:
    """Faults of the disk in the block become RunFolderErrors with a hint for exports."""
    try:
        yield
    except (OSError, RunFolderError) as error:
        cause = error.__cause__ or error
        reason = system_reason(cause) if isinstance(cause, OSError) else str(cause)
        raise RunFolderError(
            f"cannot write the export to {str(folder)!r}: {reason}",
            "free some space, mend the folder's permissions, or name another with --out",
        ) from None
