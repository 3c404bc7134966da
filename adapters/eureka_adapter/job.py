"""A job: its folder, its description and its events. Needs neither torch nor numpy."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eureka_adapter import faults
from eureka_adapter.faults import Fault

if TYPE_CHECKING:
    from eureka_adapter.training import Training

PROTOCOL = 1
_NEEDED = {"num_observations", "num_actions", "control_dt", "max_episode_length"}
_DEFAULTS: dict[str, Any] = {
    "action_choices": (),
    "ends": {"terminated": "the simulator ended the episode"},
    "success_ends": (),
    "constants": (),
    "quaternion_order": "wxyz",
    "doc": "",
    "versions": (),
    "can": {"rungs": True, "save": True, "film": False, "dry_run": True, "rewards": 1},
}


@dataclass(frozen=True)
class Variable:
    """A value that rewards may read. `shape`: of one environment; `range`: low and high."""

    name: str
    shape: tuple[int, ...] = ()
    unit: str = "1"
    frame: str = "-"
    doc: str = ""
    range: tuple[float, float] | None = None


class Job:
    """A job of the protocol. `fields` holds all of job.json."""

    def __init__(self, folder: Path) -> None:
        """Read job.json; `open` also reports what goes wrong. Raises Fault."""
        self.folder = folder
        self.fields: dict[str, Any] = json.loads((folder / "job.json").read_text("utf-8"))
        if self.fields.get("protocol") != PROTOCOL:
            message = f"job.json has protocol {self.fields.get('protocol')!r}, expected {PROTOCOL}"
            raise Fault(message, "install the eureka-adapter that belongs to this eureka-agent")
        self.mode: str = self.fields["mode"]
        self.task: str = self.fields["task"]
        self.options: dict[str, Any] = self.fields["options"]
        self.device: str = self.fields["device"]
        self.num_envs: int = self.fields["num_envs"]
        self.render_mode = "rgb_array" if self.mode == "film" else None
        """For `gymnasium.make`."""
        self.description: dict[str, Any] = {}

    @classmethod
    def open(cls, argv: Sequence[str] | None = None) -> Job:
        """Job in the folder that the last argument names. From now on an uncaught exception is sent
        as a fault; the exit status is 1 then."""
        arguments = sys.argv[1:] if argv is None else argv
        if not arguments:
            raise SystemExit("no argument, expected the job folder; eureka-agent gives it")
        folder = Path(arguments[-1]).absolute()

        def uncaught(kind: Any, error: BaseException, trace: Any) -> None:
            if isinstance(error, Exception):
                _append(folder, event="fault", **faults.described(error))
            sys.__excepthook__(kind, error, trace)

        sys.excepthook = uncaught
        return cls(folder)

    def event(self, kind: str, **fields: Any) -> None:
        """Append an event. Tensors and arrays become lists; numbers keep 7 significant digits.
        Raises Fault for a number that is not finite."""
        digits = 17 if kind == "described" else 7
        _append(self.folder, event=kind, **_plain(fields, digits, f"event {kind!r}"))

    def report(self, error: Exception) -> None:
        """Send an exception as a fault and go on."""
        self.event("fault", **faults.described(error))

    def described(self, variables: Sequence[Variable], **fields: Any) -> None:
        """Tell what the environment is. Call it in every mode; the event is sent in `describe`.
        `fields`: those of the event. `num_observations`, `num_actions`, `control_dt` and
        `max_episode_length` are needed. `versions` are names of packages here, and `can` is what
        differs from all but films, with one reward. Raises Fault."""
        allowed = {*_NEEDED, *_DEFAULTS, "native_terms"}
        if wrong := (fields.keys() - allowed) | (_NEEDED - fields.keys()):
            raise Fault(f"{sorted(wrong)} are unknown or missing, expected {sorted(allowed)}")
        plain = [{k: v for k, v in asdict(it).items() if v is not None} for it in variables]
        can, versions = {**_DEFAULTS["can"], **fields.get("can", {})}, {}
        for package in fields.get("versions", ()):
            with contextlib.suppress(importlib.metadata.PackageNotFoundError):
                versions[package] = importlib.metadata.version(package)
        fields.update(versions=versions, can=can)
        self.description = {"variables": plain, **_DEFAULTS, **fields}
        if self.mode == "describe":
            self.event("described", **self.description)

    @cached_property
    def names(self) -> list[str]:
        """Names of the variables, `actions` and `terminated` among them."""
        listed = [each["name"] for each in self.description["variables"]]
        return list(dict.fromkeys([*listed, "actions", "terminated"]))

    @cached_property
    def trainings(self) -> list[Training]:
        """Trainings of this job."""
        from eureka_adapter.training import Training

        return [Training(self, entry) for entry in self.fields["trainings"]]


def episode_seed(*parts: object) -> int:
    """Seed below 2**31 that follows from `parts`, such as the seed and number of an episode."""
    digest = hashlib.sha256("/".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1


def _append(folder: Path, **event: Any) -> None:
    line = json.dumps(event, allow_nan=False, separators=(",", ":")) + "\n"
    with (folder / "events.jsonl").open("ab", buffering=0) as file:
        file.write(line.encode())


def _plain(value: Any, digits: int, where: str) -> Any:
    """JSON of tensors, arrays and numbers; `where` is for the message of a fault."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, Mapping):
        return {key: _plain(each, digits, f"{where}, {key!r}") for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each, digits, where) for each in value]
    if not isinstance(value, float):
        return value
    if not math.isfinite(value):
        hint = "find what gives it, the simulator or the fitness"
        raise Fault(f"{where} is {value!r}, expected a finite number", hint)
    return float(f"{value:.{digits}g}")
