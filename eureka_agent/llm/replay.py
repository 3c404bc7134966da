"""Plays a stored run's replies back, at no cost: for tests, for a demo, and to see what a changed
program makes of the same replies."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

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
"""Begins what stands in a model's place, before the name of a recording."""
SETTINGS = ("model", "reviewer", "analyst", "temperature", "reply_tokens", "fitness")
"""Settings that decide who is asked and how: a replay takes them from the recording."""
SEARCH_SETTINGS = ("env", "task", "sentence", "strategy", "iterations", "samples", "seed")
"""Settings that decide what is asked: a replay has to be given the same."""
_MOST_BYTES = 256 << 20
"""Largest recording."""
_LINES_SHOWN = 12
_CHARACTERS_SHOWN = 160


@dataclass(frozen=True)
class Recording:
    """Stored replies by the key of their request, and the settings that they were asked with."""

    name: str
    messages: Mapping[str, Message]
    settings: Mapping[str, Any]
    search: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the recorded search, of `SEARCH_SETTINGS`, and its `schedule`, as far as they are
    known."""


def write_recording(path: Path, recording: Recording) -> None:
    """One JSON object a line: the settings, then the messages in the order in which they were
    stored."""
    head = {"settings": dict(recording.settings), "search": dict(recording.search)}
    lines = [json.dumps(head, ensure_ascii=False)]
    for key, message in recording.messages.items():
        lines.append(
            json.dumps({"key": key, **message.model_dump(mode="json")}, ensure_ascii=False)
        )
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def read_recording(path: Path) -> Recording:
    """A recording from its file. Raises RunFolderError for a file that is none."""
    try:
        # not `splitlines`, which also breaks where JSON does not
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
    except (
        OSError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        RecursionError,
        ValidationError,
    ) as error:
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
    """A model whose replies were recorded. It answers what it was asked then, and nothing else."""

    def __init__(self, name: str, recording: Recording, flags: str = "") -> None:
        """`name`: that of the model that was recorded, so that requests have the same keys;
        `flags`: those that would make this search the recorded one."""
        self.name = name
        self._recording = recording
        self._flags = flags

    async def complete(self, request: CompletionRequest) -> Completion:
        """The recorded reply, which costs nothing. Raises MissingReplyError, with the difference,
        where there is none."""
        message = self._recording.messages.get(message_key(self.name, request))
        if message is None:
            raise MissingReplyError(*self._missing(request))
        return Completion(
            text=message.reply,
            finish_reason=FinishReason(message.finish_reason),
            prompt_tokens=0,
            completion_tokens=0,
        )

    async def close(self) -> None:
        """Nothing: it has no connections."""

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
            return (
                (
                    f"{what}, but one to this (- recorded, + asked"
                    f" now):\n{_difference(nearest.request, asked)}"
                ),
                hint,
            )
        if nearest is None:
            return (
                f"{what}: it has none of that role from {self.name}",
                "ask a model, with --model <provider>/<name>",
            )
        if nearest.request == asked:
            return (
                (
                    f"{what}: the same conversation was recorded, but under another seed or other"
                    f" settings ({', '.join(SETTINGS[3:5])})"
                ),
                "replay with the seed and the settings of the recorded run",
            )
        difference = _difference(nearest.request, asked)
        of = f"for attempt {nearest.attempt}" if nearest.attempt else "in the recording"
        return (
            f"{what}. The nearest request, {of}, differs (- recorded, + asked now):\n{difference}",
            (
                "another task, seed, strategy or prompt gives other requests, and so do other"
                " figures from trainings on another kind of machine; ask a model, with --model"
                " <provider>/<name>"
            ),
        )

    def _nearest(self, request: CompletionRequest, asked: str) -> Message | None:
        """Of the same attempt, else the most alike."""
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
    changes = [
        line if len(line) <= _CHARACTERS_SHOWN else line[: _CHARACTERS_SHOWN - 1] + "…"
        for line in difflib.unified_diff(
            recorded.splitlines(), asked.splitlines(), lineterm="", n=0
        )
        if not line.startswith(("---", "+++", "@@"))
    ]
    left = len(changes) - _LINES_SHOWN
    return "\n".join(f"  {line}" for line in changes[:_LINES_SHOWN]) + (
        f"\n  … and {left} lines more" if left > 0 else ""
    )
