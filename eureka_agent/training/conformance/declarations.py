"""Checks of `eureka envs --check` on what source text and class declare: misspelt names, missing
baselines, numpy, the task's settings, MuJoCo's speed, and GPUs without having one."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import mujoco
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from eureka_agent.environment_files import source_folders
from eureka_agent.simulation.class_checks import misspelling, misspelt
from eureka_agent.simulation.loading import RewardKind, describe
from eureka_agent.simulation.mujoco_task import MujocoTask, read_mjcf, substeps
from eureka_agent.simulation.rollouts import actions_for
from eureka_agent.training.conformance.checks import (
    ROWS,
    Nonconforming,
    NotApplicable,
    Note,
    Remark,
    Subject,
)

_BASELINES: dict[RewardKind, str] = {
    "human": "reports compare with no human reward, and the search with the sparse one alone",
    "sparse": "reports cannot say what training on the metric itself gives",
}
"""What lacks without each."""
_NUMPY = re.compile(r"^\s*(import|from) numpy\b|\b(np|numpy)\.\w|\.numpy\(")
_MAKERS = (torch.tensor, torch.as_tensor, torch.asarray)
_MADE_ONCE = "make the tensor once, in __init__, with device=self.device"
_SHORT_EPISODE = 9
_MANY_SUBSTEPS = 10
_TOO_MANY_SUBSTEPS = 40
_MUCH_MEMORY = 4_000_000
"""Bytes."""


def hooks(subject: Subject) -> None:
    """No method or class attribute has almost the name of one that a subclass may define."""
    for place, name, meant in misspelt(subject.cls):
        raise Nonconforming(
            f"{meant}, as the base class calls it",
            f"{place}{misspelling(subject.cls, name, meant)}",
            f"rename it to {meant!r}, or to something less alike",
        )


def baselines(subject: Subject) -> Iterator[Remark]:
    """There is a human and a sparse reward to compare with."""
    for kind, lost in _BASELINES.items() if subject.loaded.folder is not None else ():
        if subject.loaded.reward_source(subject.task, kind) is None:
            hint = f"write {getattr(subject.task, f'{kind}_reward')}, with a compute_reward in it"
            yield Remark(f"a {kind} reward", f"there is none: {lost}", hint)


def numpy_in_rewards(subject: Subject) -> Iterator[Remark]:
    """Fitness and rewards compute with torch alone."""
    sources: dict[str, str | None] = {
        kind: subject.loaded.reward_source(subject.task, kind) for kind in _BASELINES
    }
    with suppress(OSError, TypeError):  # no source
        sources["fitness"] = inspect.getsource(subject.task.fitness)
    for kind, source in sources.items():
        lines = enumerate((source or "").splitlines(), start=1)
        line = next((number for number, text in lines if _NUMPY.search(text)), None)
        if line is not None:
            file = getattr(subject.task, f"{kind}_reward", "")
            what = "the fitness" if kind == "fitness" else f"{file}, line {line},"
            yield Remark(
                f"{kind} computed with torch alone",
                f"{what} uses numpy, which leaves the device and fails on a GPU",
                "torch has the same function: torch.exp for np.exp, torch.clamp for np.clip",
            )


def settings(subject: Subject) -> None:
    """the task's settings can be read"""
    describe(subject.loaded, subject.name)


def episode(subject: Subject) -> Iterator[Remark | Note]:
    """The length of an episode and the time of a step are declared, not guessed."""
    cls = subject.cls
    if not cls.episode_source:
        raise NotApplicable
    text = f"{cls.max_episode_length} steps of {cls.control_dt:g} s: {cls.episode_source}"
    if "guessed" not in cls.episode_source:
        yield Note(text)
        return
    yield Remark(
        "max_episode_steps or a TimeLimit, and dt or metadata['render_fps'], tell of both",
        text,
        "set MAX_EPISODE_LENGTH (steps) and CONTROL_DT (seconds) beside make in env.py, or"
        " max_episode_length and control_dt in the class",
    )


def mujoco_speed(subject: Subject) -> Iterator[Note | Remark]:
    """The model's integrator, timestep and memory allow a fast training."""
    cls = subject.cls
    if not issubclass(cls, MujocoTask):
        raise NotApplicable
    environment = subject.make(1)
    assert isinstance(environment, MujocoTask)
    model = environment.model
    integrator = mujoco.mjtIntegrator(model.opt.integrator).name.removeprefix("mjINT_")
    count = substeps(cls, model)
    text = (
        f"integrator {integrator}, timestep {model.opt.timestep:g} s, {count} physics steps in a"
        f" control step of {cls.control_dt:g} s"
    )
    if integrator == "RK4":
        text += '; integrator="implicitfast" costs a quarter, and is stable at twice the timestep'
    if count > _TOO_MANY_SUBSTEPS:
        yield Remark(
            f"at most {_TOO_MANY_SUBSTEPS} physics steps in a control step",
            text,
            f'timestep="{cls.control_dt / _MANY_SUBSTEPS:.3g}" takes {_MANY_SUBSTEPS} physics'
            f" steps, a training {count / _MANY_SUBSTEPS:.0f} times fewer",
        )
    else:
        yield Note(text)
    if model.narena >= _MUCH_MEMORY and int(read_mjcf(environment).memory) < 0:
        yield Remark(
            "a <size memory> in the MJCF",
            f"there is none: MuJoCo reserves {model.narena / 1e6:.0f} MB for each simulation, of"
            " which a worker has hundreds",
            'write <size memory="256K"/>, with room for the contacts that you expect',
        )


# ── on a GPU ──────────────────────────────────────────────────────────────────────────────────────


def no_values(subject: Subject) -> None:
    """A step and its resets read no value of a tensor: torch's `meta` device has none."""
    # a simulator of MJCF needs a real device
    if "cuda" not in subject.cls.device_types or issubclass(subject.cls, MujocoTask):
        raise NotApplicable
    environment = subject.loaded.make(subject.task, ROWS, "meta")
    for _ in range(2):
        transition = environment.advance(torch.zeros(ROWS, environment.num_actions, device="meta"))
        found = {"observations": transition.observations, **transition.variables}
        for name, value in found.items():
            if value.device.type != "meta":
                raise Nonconforming(
                    f"{name} are on the environment's device",
                    f"on {value.device}",
                    "make tensors with device=self.device",
                )
        environment.reset_done()


def no_copies_to_the_gpu(subject: Subject) -> Iterator[Remark]:
    """No step copies numbers from the CPU's memory, for which a GPU waits."""
    if "cuda" not in subject.cls.device_types:
        raise NotApplicable
    environment = subject.make()
    environment.max_episode_length = _SHORT_EPISODE
    from_numpy = torch.from_numpy
    with _Copies(subject.loaded.folder) as copies:

        def noted(*args: Any, **kwargs: Any) -> Tensor:
            copies.note(_MADE_ONCE)
            return from_numpy(*args, **kwargs)

        # torch hands calls of `from_numpy` to no mode
        with patch.object(torch, "from_numpy", noted):
            for actions in actions_for(environment, 2 * _SHORT_EPISODE, seed=7):
                environment.advance(actions)
                environment.reset_done()
    expected = "no step copies numbers from the CPU's memory: a GPU waits for it"
    for place, hint in sorted(copies.hints.items()):
        yield Remark(expected, place, hint)


class _Copies(TorchFunctionMode):
    """Notes where code of a folder would copy numbers from the CPU to a GPU."""

    def __init__(self, folder: Path | None) -> None:
        super().__init__()
        self._folders = [] if folder is None else source_folders(folder)
        self.hints: dict[str, str] = {}
        """Advice by the place of a copy."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if func is Tensor.__setitem__ and not isinstance(args[2], Tensor):
            indices = args[1] if isinstance(args[1], tuple) else (args[1],)
            # a mask with a number is a fill, which waits for nothing
            if any(isinstance(each, Tensor) and each.dtype != torch.bool for each in indices):
                self.note("write tensor.index_fill_(0, env_ids, 0.0) for tensor[env_ids] = 0.0")
        makes = func is Tensor.new_tensor or (func in _MAKERS and "device" in kwargs)
        if makes and not any(isinstance(each, Tensor) for each in args[-1:]):
            self.note(_MADE_ONCE)
        return func(*args, **kwargs)

    def note(self, hint: str) -> None:
        """Note the line that called the caller, if it is of the folder."""
        frame = sys._getframe(2)
        path = Path(frame.f_code.co_filename)
        if any(path.is_relative_to(folder) for folder in self._folders):
            self.hints[f"{path}, line {frame.f_lineno}"] = hint
