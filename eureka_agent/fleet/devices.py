"""What trainings run on, and the leases by which workers share it: a group of CPU cores, or a GPU,
for each.

One-thread processes use a CPU best, so a worker has one thread and, where there are as many workers
as cores, a core of its own, to which it is pinned. With fewer workers the cores are shared out
evenly, and each worker moves within its group; with more, cores are shared. Dry runs and
evaluations are short, and something waits for them: they run on whatever core is free.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from eureka_agent.errors import EurekaError
from eureka_agent.invocation import command, install_extra
from eureka_agent.protocol.events import Opened
from eureka_agent.sandbox.cores import available_cores, share_cores, usable_cores
from eureka_agent.sandbox.wall import VISIBLE_GPUS, Limits

DeviceKind = Literal["cpu", "cuda"]


class DeviceError(EurekaError):
    """A device that was asked for and is not there, or on which the environment does not run."""


@dataclass(frozen=True)
class Device:
    """What one worker trains on."""

    name: str
    """`"cpu"`, or `"cuda:<i>"` as this process counts the GPUs."""
    cores: tuple[int, ...] = ()
    """Cores that the worker is pinned to; empty: none in particular."""
    visible_gpu: str | None = None
    """The GPU as the driver's CUDA_VISIBLE_DEVICES names it: all that the worker sees. None for a
    CPU."""

    @property
    def kind(self) -> DeviceKind:
        return "cpu" if self.name == "cpu" else "cuda"

    @property
    def name_within(self) -> str:
        """What torch calls it in the worker, which sees no other GPU."""
        return "cpu" if self.kind == "cpu" else "cuda:0"

    def limit(self, limits: Limits) -> Limits:
        """The limits of a worker on this device."""
        return replace(limits, cores=self.cores, visible_gpu=self.visible_gpu)


class Lease:
    """A worker's hold on a device."""

    def __init__(self, device: Device, holders: dict[Device, int]) -> None:
        """See `DeviceLeases.take`."""
        self.device = device
        self._holders = holders
        self._held = True
        holders[device] += 1

    def give_back(self) -> None:
        """Let go of the device. Nothing happens the second time."""
        if self._held:
            self._held = False
            self._holders[self.device] -= 1


class DeviceLeases:
    """Gives every worker the device that the fewest others have."""

    def __init__(self, devices: Sequence[Device]) -> None:
        """`devices`: at least one, no two of them equal."""
        self._holders = dict.fromkeys(devices, 0)

    def take(self) -> Lease:
        """A lease of the least used device, the first of several. It never waits: workers beyond
        the devices share them."""
        return Lease(min(self._holders, key=lambda device: self._holders[device]), self._holders)


@dataclass(frozen=True)
class Hardware:
    """What all trainings of a run share."""

    names: tuple[str, ...]
    """`("cpu",)` or `("cuda:0", …)`."""
    note: str = ""
    """Why it is the CPU, where there are GPUs."""

    @property
    def kind(self) -> DeviceKind:
        return "cpu" if self.names == ("cpu",) else "cuda"

    @property
    def places(self) -> int:
        """Workers that it has room for without two of them on a core or a GPU."""
        return usable_cores() if self.kind == "cpu" else len(self.names)

    def devices(self, workers: int) -> tuple[Device, ...]:
        """What to lease to that many workers."""
        if self.kind == "cpu":
            return tuple(Device("cpu", cores) for cores in share_cores(available_cores(), workers))
        visible = _visible_gpus(os.environ)
        return tuple(Device(name, (), _visible_name(name, visible)) for name in self.names)

    def sentence(self, workers: int) -> str:
        """For a person: where trainings run, and why there."""
        if self.kind == "cuda":
            each = (
                "a worker on each" if workers == len(self.names) > 1 else _count(workers, "worker")
            )
            return f"trainings run on {' and '.join(self.names)}, {each}"
        cores = len(available_cores())
        each = (
            f"{_count(workers, 'worker')}, each on a core of its own"
            if workers == cores > 1
            else f"{_count(workers, 'worker')} on {_count(cores, 'core')}"
        )
        return f"trainings run on the CPU, {each}" + (f" ({self.note})" if self.note else "")


CPU = Hardware(("cpu",))


def choose_hardware(asked: str, opened: Opened) -> Hardware:
    """What `--device` comes to on this machine and for this environment, of which a worker said
    what it found.

    Raises DeviceError for what was asked for and cannot be had; `auto` takes the CPU then.
    """
    there = tuple(f"cuda:{number}" for number in range(opened.gpus.count))
    runs_on_gpu = "cuda" in opened.device_types
    if asked == "cpu":
        return CPU
    if asked == "auto":
        if there and not runs_on_gpu:
            lacking = opened.gpus.missing
            why = (
                f"the environment does not run on a GPU here: {lacking}"
                if lacking
                else "the environment does not run on a GPU"
            )
            return Hardware(("cpu",), why)
        return Hardware(there) if there else CPU
    if not there:
        raise DeviceError(
            f"--device {asked} was asked for, but torch finds no GPU: {opened.gpus.missing}",
            f"--device auto takes what is there; `{command('doctor')}` says more",
        )
    names = there if asked == "cuda" else tuple(dict.fromkeys(asked.split(",")))
    for name in names:
        if name not in there:
            raise DeviceError(
                f"there is no device {name!r}: torch finds {' and '.join(there)}",
                "name one of these, or --device cuda for all of them",
            )
    if not runs_on_gpu and opened.gpus.missing:
        raise DeviceError(
            f"--device {asked} was asked for, but the environment"
            f" {opened.description.environment!r} does not run there: {opened.gpus.missing}",
            f"install it: {install_extra('gpu')}; or use --device cpu",
        )
    if not runs_on_gpu:
        raise DeviceError(
            f"--device {asked} was asked for, but the environment"
            f" {opened.description.environment!r} does not say that it runs on a GPU",
            'use --device cpu or auto; if it does, write `device_types = ("cpu", "cuda")` in its'
            " class",
        )
    return Hardware(names)


def _visible_gpus(variables: Mapping[str, str]) -> list[str] | None:
    """What CUDA_VISIBLE_DEVICES lists; None where it is not set."""
    text = variables.get(VISIBLE_GPUS)
    return None if text is None else [part.strip() for part in text.split(",")]


def _visible_name(name: str, visible: list[str] | None) -> str:
    """The name of a GPU for a worker's CUDA_VISIBLE_DEVICES."""
    number = int(name.removeprefix("cuda:"))
    return str(number) if visible is None or number >= len(visible) else visible[number]


def _count(amount: int, noun: str) -> str:
    return f"{amount} {noun}" if amount == 1 else f"{amount} {noun}s"
