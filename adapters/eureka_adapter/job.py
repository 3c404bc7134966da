"""A job: its folder, its description and its events. Needs neither torch nor numpy."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from eureka_adapter import faults
from eureka_adapter.faults import EnvironmentFault

if TYPE_CHECKING:
    from eureka_adapter.rewards import SourceFunction
    from eureka_adapter.training import Training

PROTOCOL = 1
MODES = ("describe", "dry_run", "train", "evaluate", "film")


@dataclass(frozen=True)
class Variable:
    """A value that rewards may read. `shape` is that of one environment, `range` (low, high)."""

    name: str
    shape: tuple[int, ...] = ()
    unit: str = "1"
    frame: str = "-"
    doc: str = ""
    range: tuple[float, float] | None = None


@dataclass(frozen=True)
class Constant:
    """A number that rewards may take as an argument."""

    name: str
    value: float
    unit: str = "1"
    doc: str = ""


class Job:
    """One job of the protocol. `fields` holds all of job.json."""

    def __init__(self, folder: Path) -> None:
        """Read job.json; `open` also reports what goes wrong. Raises EnvironmentFault."""
        self.folder = folder
        self.fields: dict[str, Any] = json.loads((folder / "job.json").read_text("utf-8"))
        if self.fields.get("protocol") != PROTOCOL:
            raise EnvironmentFault(
                f"job.json has protocol {self.fields.get('protocol')!r}, expected {PROTOCOL}",
                "install the eureka-adapter that belongs to this eureka-agent",
            )
        self.mode: str = self.fields["mode"]
        if self.mode not in MODES:
            raise EnvironmentFault(f"job.json has mode {self.mode!r}, expected one of {MODES}")
        self.task: str = self.fields["task"]
        self.options: dict[str, Any] = self.fields.get("options") or {}
        self.device: str = self.fields["device"]
        self.num_envs: int = self.fields["num_envs"]
        self.render_mode = "rgb_array" if self.mode == "film" else None
        self.description: dict[str, Any] = {}

    @classmethod
    def open(cls, argv: Sequence[str] | None = None) -> Job:
        """Job in the folder that the last argument names. From now on an uncaught exception is sent
        as a fault, and the exit status is 1."""
        arguments = sys.argv[1:] if argv is None else list(argv)
        if not arguments:
            raise SystemExit("expected the job folder as the last argument; eureka-agent gives it")
        folder = Path(arguments[-1]).absolute()

        def uncaught(
            kind: type[BaseException], error: BaseException, trace: TracebackType | None
        ) -> None:
            if isinstance(error, Exception):
                _append(folder, {"event": "fault", **faults.described(error)})
            sys.__excepthook__(kind, error, trace)

        sys.excepthook = uncaught
        return cls(folder)

    def event(self, kind: str, **fields: Any) -> None:
        """Append an event. Tensors and arrays become lists; numbers keep 7 significant digits.
        Raises EnvironmentFault for a number that is not finite."""
        digits = 17 if kind == "described" else 7
        _append(self.folder, {"event": kind, **_plain(fields, digits, f"event {kind!r}")})

    def report(self, error: Exception) -> None:
        """Send an exception as a fault and go on."""
        _append(self.folder, {"event": "fault", **faults.described(error)})

    def described(
        self,
        variables: Sequence[Variable],
        *,
        num_observations: int,
        num_actions: int,
        control_dt: float,
        max_episode_length: int,
        action_choices: Sequence[int] = (),
        ends: Mapping[str, str] | None = None,
        success_ends: Sequence[str] = (),
        native_terms: Sequence[Mapping[str, Any]] | None = None,
        constants: Sequence[Constant] = (),
        quaternion_order: str = "wxyz",
        doc: str = "",
        versions: Iterable[str] = (),
        can: Mapping[str, Any] | None = None,
    ) -> None:
        """Tell what the environment is. Call it in every mode; the event is sent in `describe`.
        `versions`: names of packages; those that are not installed are left out. The arguments are
        the protocol's fields. `ends` is `terminated` by default, `can` all but several rewards."""
        shared = {"rungs": True, "save": True, "film": False, "dry_run": True, "rewards": 1}
        self.description = {
            "variables": [
                {name: value for name, value in asdict(each).items() if value is not None}
                for each in variables
            ],
            "num_observations": num_observations,
            "num_actions": num_actions,
            "action_choices": list(action_choices),
            "control_dt": control_dt,
            "max_episode_length": max_episode_length,
            "ends": dict(ends or {"terminated": "the simulator ended the episode"}),
            "success_ends": list(success_ends),
            "constants": [asdict(each) for each in constants],
            "quaternion_order": quaternion_order,
            "doc": doc,
            "versions": _versions(versions),
            "can": {**shared, **(can or {})},
        }
        if native_terms is not None:
            self.description["native_terms"] = list(native_terms)
        if self.mode == "describe":
            self.event("described", **self.description)

    @property
    def names(self) -> list[str]:
        """Names of the variables, `actions` and `terminated` among them."""
        listed = [each["name"] for each in self.description["variables"]]
        return list(dict.fromkeys([*listed, "actions", "terminated"]))

    @cached_property
    def trainings(self) -> list[Training]:
        """Trainings of this job."""
        from eureka_adapter.training import Training

        return [Training(self, entry) for entry in self.fields["trainings"]]

    @cached_property
    def fitness(self) -> SourceFunction:
        """`compute_fitness` of the task."""
        from eureka_adapter.rewards import SourceFunction

        path = self.folder / self.fields["fitness"]["file"]
        return SourceFunction(path, "compute_fitness", self, EnvironmentFault)


def episode_seed(*parts: object) -> int:
    """Seed below 2**31 that follows from `parts`, such as the seed and number of an episode."""
    digest = hashlib.sha256("/".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1


def _append(folder: Path, event: Mapping[str, Any]) -> None:
    line = json.dumps(event, allow_nan=False, separators=(",", ":")) + "\n"
    with (folder / "events.jsonl").open("ab", buffering=0) as file:
        file.write(line.encode())


def _plain(value: Any, digits: int, where: str) -> Any:
    """JSON of tensors, arrays and numbers, `where` for the message of a fault."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, float):
        if not math.isfinite(value):
            raise EnvironmentFault(
                f"{where} is {value!r}, expected a finite number",
                "find the step of the simulator or of the fitness that gives it",
            )
        return float(f"{value:.{digits}g}")
    if isinstance(value, Mapping):
        return {str(key): _plain(each, digits, f"{where}, {key!r}") for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each, digits, where) for each in value]
    return value


def _versions(names: Iterable[str]) -> dict[str, str]:
    found = {}
    for name in names:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
