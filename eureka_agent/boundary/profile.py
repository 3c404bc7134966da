"""Docker's seccomp profiles for other walls. Stricter than Docker: anything unknown is an error."""

from __future__ import annotations

import errno
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eureka_agent.boundary.filters import ALLOW, KILL_PROCESS, Rule, Test, assemble, refuse
from eureka_agent.boundary.system_calls import Architecture
from eureka_agent.errors import WallError
from eureka_agent.resources import resource_folder

_TOP = {"defaultAction", "defaultErrnoRet", "archMap", "syscalls"}
_ENTRY = {"names", "action", "args", "errnoRet", "comment"}
_ALL_BITS = (1 << 64) - 1


def worker_profile() -> Path:
    """Profile of a whole worker, which Docker reads as well."""
    return resource_folder("sandboxes") / "seccomp.json"


def profile_text(path: Path) -> str:
    """Content of a profile. Raises WallError."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        what = f"cannot read the profile {str(path)!r}: {error.strerror}"
        raise WallError(what, "install the package again") from None


def compile_profile(path: Path, architecture: Architecture) -> bytes:
    """Compile a profile into a filter. Raises WallError for an invalid or unknown content."""
    try:
        profile = json.loads(profile_text(path))
        _only(profile, _TOP)
        names = {entry["architecture"] for entry in profile["archMap"]}
        if any(entry.get("subArchitectures") for entry in profile["archMap"]):
            raise ValueError("subArchitectures are not known here")
        if architecture.docker_name not in names:
            known = ", ".join(sorted(names))
            raise ValueError(f"nothing for {architecture.docker_name}, only for {known}")
        default = _action(profile["defaultAction"], profile.get("defaultErrnoRet"))
        rules = [rule for entry in profile["syscalls"] for rule in _rules(entry)]
        return assemble(rules, default, architecture)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        reason = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        what = f"not a profile of system calls: {str(path)!r}: {reason}"
        raise WallError(what, "install the package again") from None


def _rules(entry: Mapping[str, Any]) -> list[Rule]:
    _only(entry, _ENTRY)
    tests = tuple(_test(each) for each in entry.get("args", ()))
    action = _action(entry["action"], entry.get("errnoRet"))
    return [Rule(name, tests, action) for name in entry["names"]]


def _test(each: Mapping[str, Any]) -> Test:
    _only(each, {"index", "value", "valueTwo", "op"})
    if each["op"] == "SCMP_CMP_EQ":
        return Test(each["index"], each["value"], _ALL_BITS)
    if each["op"] == "SCMP_CMP_MASKED_EQ":
        return Test(each["index"], each["valueTwo"], each["value"])
    raise ValueError(
        f"op {each['op']!r} is not known here, expected SCMP_CMP_EQ or SCMP_CMP_MASKED_EQ"
    )


def _action(name: str, error_number: int | None) -> int:
    if name == "SCMP_ACT_ALLOW":
        return ALLOW
    if name == "SCMP_ACT_ERRNO":
        return refuse(errno.EPERM if error_number is None else error_number)
    if name == "SCMP_ACT_KILL_PROCESS":
        return KILL_PROCESS
    raise ValueError(
        f"action {name!r} is not known here, expected SCMP_ACT_ALLOW, _ERRNO or _KILL_PROCESS"
    )


def _only(mapping: Mapping[str, Any], known: set[str]) -> None:
    if unknown := sorted(set(mapping) - known):
        raise ValueError(f"{unknown[0]!r} is not known here")
