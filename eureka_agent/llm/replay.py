"""Replay of a run's stored replies at no cost: for tests, demos, and changes of the program."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eureka_agent.errors import RunFolderError
from eureka_agent.llm.interface import (
    Completion,
    CompletionRequest,
    FinishReason,
    MissingReplyError,
    message_key,
    transcript,
)
from eureka_agent.records import Message

REPLAY = "replay:"
"""Prefix of a recording's name in place of a model's."""
SETTINGS = ("model", "reviewer", "analyst", "temperature", "reply_tokens", "fitness", "judge")
"""Settings of models, which a replay takes from the recording."""
SEARCH_SETTINGS = ("env", "task", "sentence", "strategy", "iterations", "samples", "seed")
"""Settings that determine the requests: a replay must be given the same."""
_MOST_BYTES = 256 << 20
_LINES_SHOWN = 12
_CHARACTERS_SHOWN = 160


@dataclass(frozen=True)
class Recording:
    """Stored replies by request key, with their settings."""

    name: str
    messages: Mapping[str, Message]
    settings: Mapping[str, Any]
    search: Mapping[str, Any] = field(default_factory=dict)
    """Known `SEARCH_SETTINGS` of the recorded search, and its `schedule`."""


def write_recording(path: Path, recording: Recording) -> None:
    """Write JSON lines: the settings, then the messages in stored order."""
    head = {"settings": dict(recording.settings), "search": dict(recording.search)}
    lines = [json.dumps(head, ensure_ascii=False)]
    for key, message in recording.messages.items():
        record = {"key": key, **message.model_dump(mode="json")}
        lines.append(json.dumps(record, ensure_ascii=False))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def read_recording(path: Path) -> Recording:
    """Read a recording. Raises RunFolderError for another file."""
    try:
        # not `splitlines`, which breaks lines where JSON does not
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise ValueError(f"it has more than {_MOST_BYTES} bytes")
        head, *lines = content.decode().rstrip("\n").split("\n")
        about = json.loads(head)
        settings, search = dict(about["settings"].items()), dict(about.get("search", {}).items())
        records = [json.loads(line) for line in lines]
        messages = {
            record.pop("key"): Message.model_validate_json(json.dumps(record)) for record in records
        }
        for message in messages.values():
            FinishReason(message.finish_reason)
    # a ValidationError is a ValueError
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise RunFolderError(
            f"{str(path)!r} is no recording of a search: {' '.join(str(error).split())[:200]}",
            "name a run, or the messages.jsonl of one",
        ) from None
    return Recording(
        path.stem,
        messages,
        {name: settings[name] for name in SETTINGS if name in settings},
        {
            name: search[name]
            for name in (*SEARCH_SETTINGS, "schedule")
            if isinstance(search.get(name), str | int)
        },
    )


class ReplayModel:
    """A model with recorded replies, which answers only the recorded requests."""

    def __init__(self, name: str, recording: Recording, flags: str = "") -> None:
        """`name`: of the recorded model, part of the keys; `flags`: of the recorded search."""
        self.name = name
        self._recording = recording
        self._flags = flags

    async def complete(self, request: CompletionRequest) -> Completion:
        """Return the recorded reply. Raises MissingReplyError with the nearest request."""
        message = self._recording.messages.get(message_key(self.name, request))
        if message is None:
            raise MissingReplyError(*self._missing(request))
        return Completion(
            text=message.reply,
            reasoning=message.reasoning,
            finish_reason=FinishReason(message.finish_reason),
            prompt_tokens=0,
            completion_tokens=0,
        )

    async def close(self) -> None:
        """Do nothing: there are no connections."""

    def _missing(self, request: CompletionRequest) -> tuple[str, str]:
        asked = transcript(request.messages)
        of_whom = f" for attempt {request.attempt}" if request.attempt else ""
        whom = f"the {request.role.value}{of_whom}"
        what = f"the recording {self._recording.name!r} has no reply to what {whom} asks"
        nearest = self._nearest(request, asked)
        if self._recording.search.get("schedule") == "steady":
            return (
                f"{what}: it is of a steady search, whose later requests depend on when trainings"
                " ended",
                "play back a search that was made with --schedule generations",
            )
        if self._flags:
            hint = f"give the settings of the recorded search: {self._flags}"
            if nearest is None or nearest.request == asked:
                return f"{what}: it is one of another search", hint
            difference = _difference(nearest.request, asked)
            return f"{what}, but one to this (- recorded, + asked now):\n{difference}", hint
        if nearest is None:
            return (
                f"{what}: it has none of that role from {self.name}",
                "ask a model, with --model <provider>/<name>",
            )
        if nearest.request == asked:
            return (
                f"{what}: the same conversation was recorded, but under another seed or other"
                f" settings ({', '.join(SETTINGS[3:5])})",
                "replay with the seed and the settings of the recorded run",
            )
        difference = _difference(nearest.request, asked)
        of = f"for attempt {nearest.attempt}" if nearest.attempt else "in the recording"
        return (
            f"{what}. The nearest request, {of}, differs (- recorded, + asked now):\n{difference}",
            "another task, seed, strategy or prompt gives other requests, and so do other figures"
            " from trainings on another kind of machine; ask a model, with --model"
            " <provider>/<name>",
        )

    def _nearest(self, request: CompletionRequest, asked: str) -> Message | None:
        """The most similar request, of the same attempt if there is one."""
        same_role = [
            message
            for message in self._recording.messages.values()
            if message.role == request.role.value and message.model == self.name
        ]
        of_attempt = [message for message in same_role if message.attempt == request.attempt]
        lines = asked.splitlines()
        return max(
            of_attempt or same_role,
            key=lambda message: len(set(lines) & set(message.request.splitlines())),
            default=None,
        )


def _difference(recorded: str, asked: str) -> str:
    pairs = difflib.unified_diff(recorded.splitlines(), asked.splitlines(), lineterm="", n=0)
    changes = [
        line if len(line) <= _CHARACTERS_SHOWN else line[: _CHARACTERS_SHOWN - 1] + "…"
        for line in pairs
        if not line.startswith(("---", "+++", "@@"))
    ]
    left = len(changes) - _LINES_SHOWN
    more = f"\n  … and {left} lines more" if left > 0 else ""
    return "\n".join(f"  {line}" for line in changes[:_LINES_SHOWN]) + more
