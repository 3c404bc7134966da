"""The control socket of a running batch: requests and answers, a JSON line each.

It is a Unix socket in a folder that only its user can enter; the system tells who connects.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import socket
import stat
import struct
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from eureka_agent.errors import EurekaError, RunFolderError, system_reason

MOST_BYTES = 1 << 20
"""Longest request or answer."""
_TIMEOUT_S = 10.0


class NobodyListensError(EurekaError):
    """A batch that no process works on."""


Answer = Callable[[Mapping[str, Any]], dict[str, Any]]
"""Answers a request; raises EurekaError for one that cannot be met."""


def socket_folder() -> Path:
    """Folder of this user's sockets, closed to others."""
    base = os.environ.get("XDG_RUNTIME_DIR")
    folder = (
        Path(base) / "eureka" if base else Path(tempfile.gettempdir()) / f"eureka-{os.getuid()}"
    )
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        raise RunFolderError(
            f"cannot make the folder of control sockets {str(folder)!r}: {system_reason(error)}",
            "name another one with XDG_RUNTIME_DIR",
        ) from None
    if found.st_uid != os.getuid() or not stat.S_ISDIR(found.st_mode) or found.st_mode & 0o077:
        raise RunFolderError(
            f"the folder of control sockets {str(folder)!r} is open to others",
            f"`chmod 700 {folder}` if it is yours, or name another one with XDG_RUNTIME_DIR",
        )
    return folder


@asynccontextmanager
async def listening(answer: Answer) -> AsyncIterator[Path]:
    """Answer requests of this user at a new socket, whose path this gives, until the block ends."""
    path = socket_folder() / f"{secrets.token_hex(8)}.sock"

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, TimeoutError):
            async with asyncio.timeout(_TIMEOUT_S):
                if _peer(writer.get_extra_info("socket")) == os.getuid():
                    writer.write(_answered(answer, await reader.readline()))
                    await writer.drain()
        writer.close()

    server = await asyncio.start_unix_server(serve, path, limit=MOST_BYTES)
    try:
        path.chmod(0o600)
        yield path
    finally:
        server.close()
        path.unlink(missing_ok=True)


def _peer(connection: socket.socket) -> int:
    """User id of the process at the other end."""
    size = struct.calcsize("3i")
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    user: int = struct.unpack("3i", credentials)[1]
    return user


def _answered(answer: Answer, line: bytes) -> bytes:
    try:
        request = json.loads(line)
        if not isinstance(request, dict):
            raise ValueError("it is no object")
        reply = {"ok": True, **answer(request)}
    except EurekaError as error:
        reply = {"ok": False, "error": error.message, "hint": error.hint}
    except ValueError as error:
        reply = {"ok": False, "error": f"the request cannot be read: {error}", "hint": ""}
    return json.dumps(reply, default=str).encode() + b"\n"


def ask(path: Path, request: Mapping[str, Any]) -> dict[str, Any]:
    """Ask the process that listens at a socket. Raises NobodyListensError, or its error."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(_TIMEOUT_S)
            connection.connect(str(path))
            connection.sendall(json.dumps(request).encode() + b"\n")
            with connection.makefile("rb") as stream:
                line = stream.readline(MOST_BYTES)
    except OSError as error:
        reason = "it gave no answer" if isinstance(error, TimeoutError) else system_reason(error)
        raise NobodyListensError(f"no process listens at {str(path)!r}: {reason}") from None
    try:
        reply = json.loads(line)
    except ValueError:
        raise NobodyListensError(f"the process at {str(path)!r} gave no answer") from None
    if not reply.pop("ok"):
        raise EurekaError(reply["error"], reply["hint"])
    return dict(reply)
