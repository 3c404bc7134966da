"""A trained policy: its safetensors file, its deterministic actions, and several side by side."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Protocol, cast

import torch
from safetensors import SafetensorError
from safetensors.torch import save
from torch import Tensor

from eureka_agent.array_files import open_tensors
from eureka_agent.errors import EnvironmentLoadError, RunFolderError
from eureka_agent.simulation.vec_task import VecTask, padded
from eureka_agent.training import distributions
from eureka_agent.training.networks import Activation, activate_, normalize
from eureka_agent.training.observation import (
    DesignedObservation,
    ObservationError,
    read_observation,
)

_ACTIVATIONS = ("elu", "tanh")
OBSERVATION = "observation"
"""Name of a designed observation in a policy's metadata."""


class Policy:
    """Acts without noise, by the distribution of its training."""

    def __init__(
        self,
        tensors: Mapping[str, Tensor],
        activation: Activation,
        metadata: Mapping[str, str],
        distribution: distributions.ActionDistribution | None = None,
    ) -> None:
        """`tensors`: observation_mean, observation_deviation, policy.<i>.weight (inputs, outputs),
        policy.<i>.bias (1, outputs), and for a Gaussian log_std. `distribution`: None takes the one
        named in `metadata`. Raises ValueError where that does not fit."""
        self._tensors = dict(tensors)
        names = (f"policy.{index}" for index in range(_num_layers(tensors)))
        self._layers = [(tensors[f"{name}.weight"], tensors[f"{name}.bias"]) for name in names]
        self._mean = tensors["observation_mean"]
        self._inverse_deviation = tensors["observation_deviation"].reciprocal()
        outputs = self.layer_sizes[-1]
        distribution = distribution or distributions.distribution_of_file(metadata, outputs)
        if distribution is None:
            what = f"the metadata {dict(metadata)!r} names no distribution of {outputs} outputs"
            raise ValueError(what)
        self.distribution = distribution
        name = distribution.parameter
        parameters = tensors[name] if name else self._mean.new_zeros(0)
        self.spread = distribution.spread(parameters)
        """Parameters for the distribution's `mode`. Shape: (num_parameters,)."""
        self._activation: Activation = activation
        self.metadata = dict(metadata)
        self.observation: DesignedObservation | None = None
        """Its input, where that is designed; None: the environment's observation."""

    @property
    def layer_sizes(self) -> tuple[int, ...]:
        """Observations, hidden layers, outputs."""
        return (*(weight.shape[0] for weight, _ in self._layers), self._layers[-1][0].shape[1])

    @property
    def num_observations(self) -> int:
        return self.layer_sizes[0]

    @property
    def num_actions(self) -> int:
        return self.distribution.num_actions

    def with_tensors(self, tensors: Mapping[str, Tensor]) -> Policy:
        return Policy(tensors, self._activation, self.metadata, self.distribution)

    def act(self, observations: Tensor) -> Tensor:
        """Actions without noise, shape (batch, num_actions), from (batch, num_observations)."""
        return self.distribution.mode(self.outputs(observations), self.spread)

    def answer(self, observations: Tensor) -> Tensor | tuple[Tensor, ...]:
        """An exported policy's result: actions, or choices and their logits."""
        return self.distribution.answer(self.outputs(observations), self.spread)

    def outputs(self, observations: Tensor) -> Tensor:
        """Outputs of the network for the distribution. Shape: (batch, num_outputs)."""
        value = normalize(observations, self._mean, self._inverse_deviation)
        for index, (weight, bias) in enumerate(self._layers):
            value = torch.addmm(bias, value, weight)
            if index < len(self._layers) - 1:
                value = activate_(self._activation, value)
        return value


def _num_layers(tensors: Mapping[str, Tensor]) -> int:
    return sum(name.startswith("policy.") and name.endswith(".weight") for name in tensors)


def policy_bytes(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> bytes:
    """A policy as safetensors. `metadata`: the trainer's `policy_metadata`, and any names."""
    given = metadata.get("activation")
    if given not in _ACTIVATIONS:
        raise ValueError(f"the policy's activation is {given!r}, expected one of {_ACTIVATIONS}")
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
        what = f"cannot read the policy {str(path)!r}: {error}"
        raise RunFolderError(what, "name a policy.safetensors of a run") from None
    activation = metadata.get("activation")
    if activation not in _ACTIVATIONS or not _fit_together(tensors, metadata):
        raise RunFolderError(f"{str(path)!r} holds no policy", "name a policy.safetensors of a run")
    policy = Policy(tensors, cast(Activation, activation), metadata)
    if OBSERVATION in metadata:
        try:
            policy.observation = read_observation(metadata[OBSERVATION])
        except ObservationError as error:
            what = f"the policy {str(path)!r} has an observation that is none: {error}"
            raise RunFolderError(what, "name a policy.safetensors of a run") from None
    return policy


def _fit_together(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> bool:
    """Check names, types and shapes: layers must fit each other and the distribution."""
    weights = [tensors.get(f"policy.{index}.weight") for index in range(_num_layers(tensors))]
    shapes = [weight.shape for weight in weights if weight is not None and weight.numel()]
    if not weights or len(shapes) < len(weights) or any(len(shape) != 2 for shape in shapes):
        return False
    sizes = [shapes[0][0], *(shape[1] for shape in shapes)]
    distribution = distributions.distribution_of_file(metadata, sizes[-1])
    if distribution is None:
        return False
    statistics = ("observation_mean", "observation_deviation")
    expected: dict[str, tuple[int, ...]] = dict.fromkeys(statistics, (sizes[0],))
    if distribution.parameter:
        expected[distribution.parameter] = (distribution.num_parameters,)
    for index, (inputs, outputs) in enumerate(pairwise(sizes)):
        expected[f"policy.{index}.weight"] = (inputs, outputs)
        expected[f"policy.{index}.bias"] = (1, outputs)
    found = {name: tensors[name] for name in expected if name in tensors}
    shaped = {name: tuple(each.shape) for name, each in found.items()}
    return shaped == expected and all(each.dtype == torch.float32 for each in found.values())


class Actor(Protocol):
    """Anything that acts on observations, such as a `Policy`."""

    distribution: distributions.ActionDistribution
    spread: Tensor
    observation: DesignedObservation | None
    """Its input, where that is designed."""

    @property
    def num_observations(self) -> int: ...

    def outputs(self, observations: Tensor) -> Tensor:
        """Input of its distribution's `mode`. Shape: (batch, num_outputs)."""
        ...


def check_sizes(policy: Actor, environment: VecTask | type[VecTask]) -> None:
    """Raise EnvironmentLoadError for a policy of another environment."""
    needed = environment.num_observations, distributions.distribution_of(environment)
    if (designed := policy.observation) is not None:
        public = {each.name: each.shape for each in environment.all_variables() if not each.private}
        unknown = [name for name, shape in designed.shapes.items() if public.get(name) != shape]
        if unknown or designed.width != policy.num_observations:
            raise EnvironmentLoadError(
                f"the policy observes {designed.shown}, which the environment does not give",
                "evaluate it on the environment that it was trained on",
            )
        needed = designed.width, needed[1]
    if (policy.num_observations, policy.distribution) != needed:
        raise EnvironmentLoadError(
            f"the policy takes {policy.num_observations} observations and gives"
            f" {policy.distribution}, the environment has {needed[0]} and {needed[1]}",
            "evaluate it on the environment that it was trained on",
        )


class ActingPolicies:
    """A network call for each policy, then one distribution call for all, in which each policy's
    rows begin at a multiple of torch's SIMD width, for equal rounding."""

    def __init__(self, policies: Sequence[Actor], rows: Sequence[slice], env: VecTask) -> None:
        """`rows`: each policy's in the environment. Raises as `check_sizes`."""
        for policy in policies:
            check_sizes(policy, env)
        places, count = [], 0
        for part in rows:
            size = part.stop - part.start
            places.append(slice(count, count + size))
            count += padded(size, VecTask.row_multiple)
        self._policies = policies
        self._rows = rows
        self._environment = env
        self._distribution = distribution = distributions.distribution_of(env)
        self._outputs = torch.zeros(count, distribution.num_outputs, device=env.device)
        self._spreads = torch.ones(count, distribution.num_parameters, device=env.device)
        self._places = places
        taken_from = torch.zeros(env.num_envs, dtype=torch.int64)
        for policy, part, place in zip(policies, rows, places, strict=True):
            self._spreads[place] = policy.spread
            taken_from[part] = torch.arange(place.start, place.stop)
        self._taken_from = taken_from.to(env.device)

    def act(self, observations: Tensor, acting: Collection[int]) -> Tensor:
        """Actions, shape (num_envs, num_actions); only those of the policies `acting` are new.
        `observations`: the environment's, of its current state."""
        designs = any(self._policies[number].observation is not None for number in acting)
        variables = self._environment.read_variables() if designs else {}
        for number in acting:
            policy, rows = self._policies[number], self._rows[number]
            seen = observations[rows]
            if policy.observation is not None:
                seen = policy.observation(
                    {name: variables[name][rows] for name in policy.observation.inputs}
                )
            self._outputs[self._places[number]] = policy.outputs(seen)
        actions = self._distribution.mode(self._outputs, self._spreads)
        return actions.index_select(0, self._taken_from)
