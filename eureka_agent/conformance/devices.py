"""Checks of `eureka envs --check` on environments that declare a GPU, made without a GPU."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from eureka_agent.conformance.checks import ROWS, Nonconforming, NotApplicable, Remark, Subject
from eureka_agent.simulation.mujoco_task import MujocoTask
from eureka_agent.simulation.rollouts import actions_for
from eureka_agent.simulation.vec_task import VecTask

_MAKERS = (torch.tensor, torch.as_tensor, torch.asarray)
_MADE_ONCE = "make the tensor once, in __init__, with device=self.device"
_STEPS = 40
_SHORT_EPISODE = 9


def masked_resets(subject: Subject) -> None:
    """On a GPU a step resets every row and restores unchanged those whose episode continues."""
    if not _says_gpu(subject) or not subject.loaded.environment_class.restorable:
        raise NotApplicable
    by_index, by_mask = subject.make(), subject.make()
    wider = subject.make(ROWS + 1)
    for environment in (by_index, by_mask):
        environment.tell_rows_from_constants(wider)
        environment.max_episode_length = _SHORT_EPISODE
        environment.progress_buf[:] = torch.arange(ROWS) % _SHORT_EPISODE
    by_mask.resets_by_mask = True
    for index, actions in enumerate(actions_for(by_index, _STEPS, seed=7)):
        for environment in (by_index, by_mask):
            environment.advance(actions)
            environment.reset_done()
        pairs = {"observations": (by_index.obs_buf, by_mask.obs_buf)}
        values, others = by_index.read_variables(), by_mask.read_variables()
        pairs |= {name: (value, others[name]) for name, value in values.items()}
        for name, (expected, found) in pairs.items():
            if not torch.equal(expected, found):
                row = int((expected != found).reshape(ROWS, -1).any(dim=1).nonzero()[0])
                raise Nonconforming(
                    f"{name} are the same whether a GPU's resets or the CPU's were made",
                    f"{found[row].tolist()!r} against {expected[row].tolist()!r} after step"
                    f" {index}",
                    "add the tensors that hold the rest of the state to row_tensors, or set"
                    " `restorable = False` in the class",
                )


def no_values(subject: Subject) -> None:
    """A step and its resets read no value of a tensor: torch's `meta` device has none."""
    # a simulator of MJCF needs a real device
    if not _says_gpu(subject) or issubclass(subject.loaded.environment_class, MujocoTask):
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
    if not _says_gpu(subject):
        raise NotApplicable
    environment = subject.make()
    environment.max_episode_length = _SHORT_EPISODE
    with (
        _Copies(subject.loaded.folder) as copies,
        # torch hands calls of `from_numpy` to no mode
        patch.object(torch, "from_numpy", copies.noting(torch.from_numpy)),
    ):
        for actions in actions_for(environment, 2 * _SHORT_EPISODE, seed=7):
            environment.advance(actions)
            environment.reset_done()
    for place, hint in sorted(copies.hints.items()):
        yield Remark(
            "no step copies numbers from the CPU's memory: a GPU waits for it", place, hint
        )


class _Copies(TorchFunctionMode):
    """Notes where code of a folder would copy numbers from the CPU to a GPU."""

    def __init__(self, folder: Path | None) -> None:
        super().__init__()
        self._folder = folder
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
                self._note("write tensor.index_fill_(0, env_ids, 0.0) for tensor[env_ids] = 0.0")
        makes = func is Tensor.new_tensor or (func in _MAKERS and "device" in kwargs)
        if makes and not any(isinstance(each, Tensor) for each in args[-1:]):
            self._note(_MADE_ONCE)
        return func(*args, **kwargs)

    def noting(self, function: Callable[..., Tensor]) -> Callable[..., Tensor]:
        """A function that is noted wherever the folder calls it."""

        def noted(*args: Any, **kwargs: Any) -> Tensor:
            self._note(_MADE_ONCE)
            return function(*args, **kwargs)

        return noted

    def _note(self, hint: str) -> None:
        frame = sys._getframe(2)
        path = Path(frame.f_code.co_filename)
        if self._folder is not None and path.is_relative_to(self._folder):
            self.hints[f"{path}, line {frame.f_lineno}"] = hint


def _says_gpu(subject: Subject) -> bool:
    cls: type[VecTask] = subject.loaded.environment_class
    return "cuda" in cls.device_types
