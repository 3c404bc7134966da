"""A policy as TorchScript and as ONNX, both traced from `Policy.answer` itself.

This module imports torch: only `eureka export` loads it, for a policy of the user's own run.
"""

from __future__ import annotations

import importlib.util
import io
import logging
import warnings
from pathlib import Path
from typing import cast

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from eureka_agent import syntax
from eureka_agent.errors import RunFolderError
from eureka_agent.training.learned import PREFIX
from eureka_agent.training.policy import load_policy

ONNX_PACKAGES = ("onnx", "onnxscript")
DESCRIPTION = "policy.json"
"""File beside the policies, and the key of its text in each of them."""
_EXAMPLE_BATCH = 2
"""Batch size for tracing; 0 and 1 would become fixed sizes."""


class _Actor(nn.Module):
    """`Policy.answer` as a module with its numbers as buffers, which move with it to a device."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        policy = load_policy(path)
        self.num_observations = policy.num_observations
        self.answer_names = policy.distribution.answer_names
        self._policy = policy
        tensors = load_file(path)
        acting = [name for name in tensors if not name.startswith(PREFIX)]
        self._buffer_names = {name: name.replace(".", "_") for name in acting}
        for name, buffer in self._buffer_names.items():
            self.register_buffer(buffer, tensors[name])

    def forward(self, observation: Tensor) -> Tensor | tuple[Tensor, ...]:
        """Actions in [-1, 1], shape (batch, num_actions), or choices and logits, for observations
        of shape (batch, num_observations), float32."""
        tensors = {name: getattr(self, buffer) for name, buffer in self._buffer_names.items()}
        return self._policy.with_tensors(tensors).answer(observation)

    def example(self) -> Tensor:
        return torch.zeros(_EXAMPLE_BATCH, self.num_observations)


def missing_onnx_packages() -> tuple[str, ...]:
    """Packages of `ONNX_PACKAGES` that are not installed."""
    return tuple(name for name in ONNX_PACKAGES if importlib.util.find_spec(name) is None)


def statistics(path: Path) -> tuple[list[float], list[float]]:
    """Mean and deviation of the observations by which the policy at `path` normalises. Raises
    RunFolderError for another file."""
    load_policy(path)
    tensors = load_file(path)
    mean, deviation = tensors["observation_mean"], tensors["observation_deviation"]
    if not bool((mean.isfinite() & deviation.isfinite()).all()):
        raise RunFolderError(
            f"the policy {str(path)!r} normalises by NaN or infinite statistics, so it cannot act",
            "export another attempt",
        )
    return mean.tolist(), deviation.tolist()


def learned_numbers(path: Path) -> dict[str, object]:
    """Numbers that a learned reward follows from, as nested lists by name."""
    tensors = load_file(path)
    return {
        name.removeprefix(PREFIX): tensor.tolist()
        for name, tensor in tensors.items()
        if name.startswith(PREFIX)
    }


def torchscript(path: Path, description: str = "") -> bytes:
    """TorchScript file of a policy with a description. Raises RunFolderError."""
    actor = _Actor(path).eval()
    buffer = io.BytesIO()
    with torch.no_grad(), warnings.catch_warnings():
        # torch.jit is deprecated, but libtorch on robots reads this format and no newer one
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", FutureWarning)
        traced = torch.jit.trace(actor, (actor.example(),))
        torch.jit.save(traced, buffer, _extra_files={DESCRIPTION: description})
    return buffer.getvalue()


def onnx_model(path: Path, description: str = "") -> bytes:
    """ONNX file of the policy at `path`: input `observation`, output `action` (for discrete actions
    also `logits`), a free batch axis, and a description as metadata.

    Needs `ONNX_PACKAGES`. Raises RunFolderError for another file.
    """
    actor = _Actor(path).eval()
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)  # it misses packages of no use here
    with torch.no_grad(), warnings.catch_warnings(), syntax.one_at_a_time():
        warnings.simplefilter("ignore")  # the exporter uses deprecated parts of its own
        program = torch.onnx.export(
            actor,
            (actor.example(),),
            dynamo=True,
            input_names=["observation"],
            output_names=list(actor.answer_names),
            dynamic_shapes=({0: torch.export.Dim("batch")},),
            verbose=False,
        )
    assert program is not None  # it is None with dynamo=False alone
    model = program.model_proto
    for node in model.graph.node:
        # the nodes' lines of Python, with this machine's paths
        del node.metadata_props[:]
    model.metadata_props.add(key=DESCRIPTION, value=description)
    return cast(bytes, model.SerializeToString())
