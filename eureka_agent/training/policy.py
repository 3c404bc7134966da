"""A trained policy by itself: a safetensors file, and the deterministic actions that it gives."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import cast

import torch
from safetensors import SafetensorError
from safetensors.torch import save
from torch import Tensor

from eureka_agent.array_files import open_tensors
from eureka_agent.errors import RunFolderError
from eureka_agent.training.networks import Activation, activate_
from eureka_agent.training.normalization import normalize

_ACTIVATIONS = ("elu", "tanh")


class Policy:
    """Acts by the mean of the actions that its training applied: of the Gaussian after clipping to
    [-1, 1].

    Where noise is wide and a mean lies off the middle, that differs from the clipped mean. A
    hovering craft, whose thrust was on average right, would sink or rise with the latter.
    """

    def __init__(
        self, tensors: Mapping[str, Tensor], activation: Activation, metadata: Mapping[str, str]
    ) -> None:
        """`tensors`: observation_mean, observation_deviation, policy.<i>.weight (inputs, outputs),
        policy.<i>.bias (1, outputs), log_std."""
        self._tensors = dict(tensors)
        count = sum(name.startswith("policy.") and name.endswith(".weight") for name in tensors)
        self._layers = [
            (tensors[f"policy.{index}.weight"], tensors[f"policy.{index}.bias"])
            for index in range(count)
        ]
        self._mean = tensors["observation_mean"]
        self._inverse_deviation = tensors["observation_deviation"].reciprocal()
        self.std = tensors["log_std"].exp()
        """Of the Gaussian that its training drew actions from. Shape: (num_actions,)."""
        self._activation: Activation = activation
        self.metadata = dict(metadata)

    @property
    def layer_sizes(self) -> tuple[int, ...]:
        """Observations, hidden layers, actions."""
        return (*(weight.shape[0] for weight, _ in self._layers), self._layers[-1][0].shape[1])

    @property
    def num_observations(self) -> int:
        return self.layer_sizes[0]

    @property
    def num_actions(self) -> int:
        return self.layer_sizes[-1]

    def to(self, device: torch.device | str) -> Policy:
        """The same policy on another device."""
        return Policy(
            {name: tensor.to(device) for name, tensor in self._tensors.items()},
            self._activation,
            self.metadata,
        )

    def act(self, observations: Tensor) -> Tensor:
        """Actions in [-1, 1], shape (batch, num_actions), for observations of shape (batch,
        num_observations). No noise."""
        return clipped_gaussian_mean(self.mean(observations), self.std)

    def mean(self, observations: Tensor) -> Tensor:
        """Mean of the Gaussian before clipping, shape (batch, num_actions)."""
        value = normalize(observations, self._mean, self._inverse_deviation)
        for index, (weight, bias) in enumerate(self._layers):
            value = torch.addmm(bias, value, weight)
            if index < len(self._layers) - 1:
                value = activate_(self._activation, value)
        return value


def clipped_gaussian_mean(mean: Tensor, std: Tensor) -> Tensor:
    """Expectation of a Gaussian variable clipped to [-1, 1]. Shapes that broadcast."""
    low, high = (-1.0 - mean) / std, (1.0 - mean) / std
    below, above = torch.special.ndtr(low), torch.special.ndtr(-high)
    density = (torch.exp(-0.5 * low.square()) - torch.exp(-0.5 * high.square())) / math.sqrt(
        2.0 * math.pi
    )
    return (above - below + mean * (1.0 - below - above) + std * density).clamp(-1.0, 1.0)


def save_policy(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """Write `policy_bytes` to a file. Raises OSError."""
    path.write_bytes(policy_bytes(tensors, metadata))


def policy_bytes(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> bytes:
    """A finished training's policy as a safetensors file. `metadata` holds the trainer's
    `policy_metadata`, and whatever names the policy."""
    if metadata.get("activation") not in _ACTIVATIONS:
        raise ValueError(
            f"policy metadata has activation {metadata.get('activation')!r}, expected one of"
            f" {_ACTIVATIONS}"
        )
    policy = Policy(tensors, cast(Activation, metadata["activation"]), metadata)
    layer_sizes = ",".join(str(size) for size in policy.layer_sizes)
    return save(dict(tensors), metadata={**metadata, "layer_sizes": layer_sizes})


def load_policy(path: Path, device: str = "cpu") -> Policy:
    """Read a policy. Raises RunFolderError for a file that is not one."""
    try:
        with open_tensors(path, "pt", device) as file:
            metadata = dict(file.metadata() or {})
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  (not a dictionary)
    except (OSError, SafetensorError) as error:
        raise RunFolderError(
            f"cannot read the policy {str(path)!r}: {error}", "name a policy.safetensors of a run"
        ) from None
    activation = metadata.get("activation")
    if activation not in _ACTIVATIONS or not _fit_together(tensors):
        raise RunFolderError(f"{str(path)!r} holds no policy", "name a policy.safetensors of a run")
    return Policy(tensors, cast(Activation, activation), metadata)


def _fit_together(tensors: Mapping[str, Tensor]) -> bool:
    """True when these are a network's, each layer of the size that the one before gives, and no
    size without a number."""
    count = sum(name.startswith("policy.") and name.endswith(".weight") for name in tensors)
    layers = [
        (tensors.get(f"policy.{index}.weight"), tensors.get(f"policy.{index}.bias"))
        for index in range(count)
    ]
    weights = [
        weight
        for weight, _ in layers
        if weight is not None and weight.dim() == 2 and weight.numel()
    ]
    if not weights or len(weights) < count:
        return False
    sizes = [weights[0].shape[0], *(weight.shape[1] for weight in weights)]
    expected: dict[str, tuple[int, ...]] = {
        "observation_mean": (sizes[0],),
        "observation_deviation": (sizes[0],),
        "log_std": (sizes[-1],),
    }
    for index, (inputs, outputs) in enumerate(pairwise(sizes)):
        expected |= {
            f"policy.{index}.weight": (inputs, outputs),
            f"policy.{index}.bias": (1, outputs),
        }
    return all(
        name in tensors
        and tuple(tensors[name].shape) == shape
        and tensors[name].dtype == torch.float32
        for name, shape in expected.items()
    )
