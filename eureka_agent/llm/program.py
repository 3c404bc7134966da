"""A model that is a program: `--model command:"PROGRAM"`. It gets each prompt on its standard input
and writes its reply to standard output. It needs no key here; tools are written for it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import shutil
import signal
import time

from eureka_agent.errors import SettingsError
from eureka_agent.llm.access import ModelAccess, redact
from eureka_agent.llm.interface import (
    Completion,
    CompletionRequest,
    FinishReason,
    LanguageModelError,
    transcript,
)
from eureka_agent.llm.tool_calls import with_written_calls, written
from eureka_agent.text import one_line, printable

COMMAND = "command:"
"""Prefix of a program's command line in place of a model's name."""
TRIES = 3
LONGEST_REPLY_BYTES = 4 << 20
LONGEST_WORDS = 300


class ProgramModel:
    """A program that is started for each request, in a session of its own."""

    retries: None = None

    def __init__(self, name: str, access: ModelAccess) -> None:
        """Raises SettingsError for a program that is not there."""
        self.name = name
        try:
            self._words = shlex.split(name.removeprefix(COMMAND))
        except ValueError as error:
            raise SettingsError(
                f"--model {name!r}: {error}", "quote its words as a shell"
            ) from None
        program = self._words[0] if self._words else ""
        if not shutil.which(program):
            raise SettingsError(
                f"--model {name!r}: there is no program {program!r}",
                "write command: and a program that reads a prompt and writes the reply, with its"
                " arguments",
            )
        self._timeout_s, self._tell = access.timeout_s, access.on_retry

    async def complete(self, request: CompletionRequest) -> Completion:
        """Run the program, again where it fails. Raises LanguageModelError after `TRIES`."""
        prompt = transcript(written(request).messages)
        for number in range(1, TRIES + 1):
            started = time.monotonic()
            text, fault = await self._run(prompt)
            if not fault:
                completion = Completion(text=text, finish_reason=FinishReason.STOP)
                seconds = time.monotonic() - started
                return with_written_calls(completion.made_in(seconds), request.tools)
            if number < TRIES:
                self._tell(f"{self.name} {fault}: tried again")
        raise LanguageModelError(
            f"{self.name} {fault}, {TRIES} times",
            "run it by hand: it reads a prompt on standard input and writes its reply",
        )

    async def _run(self, prompt: str) -> tuple[str, str]:
        """The reply, and what is wrong, if anything."""
        try:
            process = await asyncio.create_subprocess_exec(
                *self._words,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            return "", f"cannot be started: {error.strerror}"
        try:
            async with asyncio.timeout(self._timeout_s):
                output, errors = await process.communicate(prompt.encode())
        except TimeoutError:
            return "", f"gave no reply within {self._timeout_s:g} s (--request-timeout)"
        finally:
            with contextlib.suppress(ProcessLookupError):  # its children, too
                os.killpg(process.pid, signal.SIGKILL)
            await process.communicate()  # what is left of its pipes
        if process.returncode:
            last = printable(errors.decode(errors="replace")).strip().rpartition("\n")[2]
            words = one_line(redact(last), LONGEST_WORDS)
            return "", f"ended with status {process.returncode}" + (f": {words}" if words else "")
        if len(output) > LONGEST_REPLY_BYTES:
            return "", f"wrote {len(output):,} bytes, expected at most {LONGEST_REPLY_BYTES:,}"
        return output.decode(errors="replace"), ""

    async def close(self) -> None:
        """Do nothing: no process outlives its request."""
