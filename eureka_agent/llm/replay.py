"""Replay of a run's stored replies at no cost: for tests, demos, and changes of the program."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eureka_agent.errors import RunFolderError
from eureka_agent.llm import interface
from eureka_agent.records import Cost, Message

REPLAY = "replay:"
"""Prefix of a recording's name in place of a model's."""
SETTINGS = (
    *("model", "reviewer", "analyst", "temperature", "reply_tokens", "fitness", "judge"),
    *("designer_tools", "llm_batch"),
)
"""Settings of models, which a replay takes from the recording."""
SEARCH_SETTINGS = ("env", "task", "sentence", "strategy", "iterations", "samples", "seed")
"""Settings that determine the requests: a replay must be given the same."""
_MOST_BYTES = 256 << 20
_TASK = "\n# Environment\n"
"""Begin of a system message's part about the task."""


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
            interface.FinishReason(message.finish_reason)
    # a ValidationError is a ValueError
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise RunFolderError(
            f"{str(path)!r} is no recording of a search: {' '.join(str(error).split())[:200]}",
            "name a run, or the messages.jsonl of one",
        ) from None
    known = {name: search.get(name) for name in (*SEARCH_SETTINGS, "schedule")}
    return Recording(
        path.stem,
        messages,
        {name: settings[name] for name in SETTINGS if name in settings},
        {name: value for name, value in known.items() if isinstance(value, str | int)},
    )


class ReplayModel:
    """A model with recorded replies. It answers the recorded requests, and those of the same
    attempt in the same task in which trainings on another machine have put other numbers."""

    retries: None = None

    def __init__(
        self,
        name: str,
        recording: Recording,
        flags: str = "",
        tell: interface.RetryObserver = lambda text: None,
    ) -> None:
        """`name`: of the recorded model, part of the keys; `flags`: of the recorded search; `tell`
        learns that a request is not the recorded one."""
        self.name = name
        self._recording = recording
        self._flags = flags
        self._tell = tell

    async def complete(self, request: interface.CompletionRequest) -> interface.Completion:
        """Return the recorded reply. Raises MissingReplyError."""
        message = self._recording.messages.get(interface.message_key(self.name, request))
        if message is None:
            message = self._of_same_place(request)
        if message is None:
            raise interface.MissingReplyError(*self._missing(request))
        return interface.Completion(
            text=message.reply,
            reasoning=message.reasoning,
            calls=message.calls,
            finish_reason=interface.FinishReason(message.finish_reason),
            cost=Cost(prompt_tokens=0, completion_tokens=0),
        )

    def _of_same_place(self, request: interface.CompletionRequest) -> Message | None:
        """The reply at the same turn for the same attempt, or after its calls where none can be
        made now, if the task is the same, or the recording has left requests out."""
        if self._flags or not request.attempt:
            return None
        system = interface.transcript(tuple(it for it in request.messages if it.role == "system"))
        turn = sum(bool(each.calls) for each in request.messages)
        found = [
            each
            for each in self._recording.messages.values()
            if (each.role, each.attempt, each.model)
            == (request.role.value, request.attempt, self.name)
        ]
        if turn >= len(found):
            return None
        reply = found[turn]
        if reply.calls and not request.tools:
            reply = next((each for each in found[turn:] if not each.calls), reply)
        _, mark, task = system.rstrip().partition(_TASK)
        if reply.request and mark + (task or system.rstrip()) not in reply.request:
            return None
        whom = f"{request.role.value} of {request.attempt}"
        self._tell(f"the {whom} is told other numbers than in the recording, and answers as there")
        return reply

    async def close(self) -> None:
        """Do nothing: there are no connections."""

    def _missing(self, request: interface.CompletionRequest) -> tuple[str, str]:
        whom = request.role.value + (f" for attempt {request.attempt}" if request.attempt else "")
        why = "another task, seed or setting asks something else"
        hint = (
            "replay with the task, seed, strategy and settings of the recorded run, on the same"
            " kind of machine; or ask a model, with --model <provider>/<name>"
        )
        if self._flags:
            hint = f"give the settings of the recorded search: {self._flags}"
        if self._recording.search.get("schedule") == "steady":
            why = "it is of a steady search, whose later requests depend on when trainings ended"
            hint = "play back a search that was made with --schedule generations"
        name = self._recording.name
        return f"the recording {name!r} has no reply to what the {whom} asks: {why}", hint
