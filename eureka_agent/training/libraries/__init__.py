"""PPO of other libraries, on the same environments and rewards (`eureka prove`)."""

from __future__ import annotations

import importlib.util
from importlib.metadata import version
from typing import TYPE_CHECKING

from eureka_agent.errors import EurekaError
from eureka_agent.libraries import PACKAGES, LibraryName

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torch import Tensor, nn

    from eureka_agent.settings import TrainingSettings
    from eureka_agent.training.libraries.rewarded import RewardedEnvironment


NO_NOISE = -20.0
"""Logarithm of a deviation that changes no action."""


class MissingLibraryError(EurekaError):
    """A library that this Python does not have."""


def train_with(
    library: LibraryName, environment: RewardedEnvironment, settings: TrainingSettings, seed: int
) -> dict[str, Tensor]:
    """Tensors of the last `Policy` of a training by the library's PPO.

    Of the settings it has the env steps, the environments, the networks, the discount and the first
    action noise; all else of its PPO is the library's own, and observations are normalised. Raises
    MissingLibraryError, and EurekaError for actions that it does not have.
    """
    if not is_installed(library):
        raise MissingLibraryError(
            f"{PACKAGES[library][1]} is not installed where trainings run",
            f"put {PACKAGES[library][1]} into their Python",
        )
    if library == "sb3":
        from eureka_agent.training.libraries.stable_baselines import train
    else:
        from eureka_agent.training.libraries.rsl import train
    return acting_by_its_mean(train(environment, settings, seed))


def acting_by_its_mean(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The policy as the library plays it, by the clipped mean; ours play the mean of the clipped
    actions, which is the same without noise."""
    if "log_std" not in tensors:
        return tensors
    return {**tensors, "log_std": tensors["log_std"].new_full((len(tensors["log_std"]),), NO_NOISE)}


def layers(linears: Iterable[nn.Linear]) -> dict[str, Tensor]:
    """Weights and biases of a policy's layers, from the first to the actions, in this package's
    form."""
    found = {}
    for index, linear in enumerate(linears):
        found[f"policy.{index}.weight"] = linear.weight.detach().T.contiguous()
        found[f"policy.{index}.bias"] = linear.bias.detach().unsqueeze(0)
    return found


def is_installed(library: LibraryName) -> bool:
    """True where this Python has the library."""
    return importlib.util.find_spec(PACKAGES[library][0]) is not None


def version_of(library: LibraryName) -> str:
    """`stable-baselines3 2.9.2`."""
    return f"{PACKAGES[library][1]} {version(PACKAGES[library][1])}"
