"""Landlock: the kernel keeps a process and its children to writing in named folders, and to
signalling and tracing themselves. It does not keep them from reading files, from changing modes and
times of files, nor from the network. Needs no privileges; Linux 5.13 (for signals 6.12) or newer.

Interface: https://docs.kernel.org/userspace-api/landlock.html"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterable
from pathlib import Path

from eureka_agent.boundary.system_calls import PR_SET_NO_NEW_PRIVS, call

_VERSION_FLAG, _BENEATH = 1, 1
_WRITING = sum(1 << bit for bit in (1, *range(4, 13)))
"""Writing to files; removing and making files, folders, sockets, pipes, devices, links."""
_MOVING, _TRUNCATING = 1 << 13, 1 << 14
_SIGNALS = 1 << 1
_MOVES_SINCE, _TRUNCATES_SINCE, _SCOPES_SINCE = 2, 3, 6


def version() -> int:
    """Version of the kernel's interface; 0 where there is none."""
    try:
        return call("landlock_create_ruleset", 0, 0, _VERSION_FLAG)
    except OSError:
        return 0


def uncovered() -> str:
    """Words for what a process behind `write_only_in` can still do to the user."""
    known = version()
    if not known:
        return "your files, the network and other processes"
    signals = "" if known >= _SCOPES_SINCE else ", signals to your processes"
    return f"reading your files, changing their modes{signals}, and the network"


def write_only_in(places: Iterable[Path]) -> None:
    """Confine this process, which has one thread, and its later children to these folders. Raises
    OSError where the kernel refuses, or a folder is not there."""
    known = version()
    rights = _WRITING
    rights |= _MOVING if known >= _MOVES_SINCE else 0
    rights |= _TRUNCATING if known >= _TRUNCATES_SINCE else 0
    size = 24 if known >= _SCOPES_SINCE else 8
    attributes = ctypes.create_string_buffer(struct.pack("QQQ", rights, 0, _SIGNALS))
    rules = call("landlock_create_ruleset", ctypes.addressof(attributes), size, 0)
    try:
        for place in places:
            opened = os.open(place, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                rule = ctypes.create_string_buffer(struct.pack("=Qi", rights, opened))
                call("landlock_add_rule", rules, _BENEATH, ctypes.addressof(rule), 0)
            finally:
                os.close(opened)
        call("prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        call("landlock_restrict_self", rules, 0)
    finally:
        os.close(rules)
