"""Values of an environment's parameters, one per row, drawn anew for each episode."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from eureka_agent.parameters import Distribution
from eureka_agent.simulation.random import RowRandom
from eureka_agent.task import Parameter

ACTION_DELAY = "action_delay"
"""Parameter of any environment: control steps by which actions arrive late, rounded."""
_CHANCES = 2
_STREAM = 0x2545F4914F6CDD1D
"""Mixed into seeds, so that parameters have random streams of their own."""


class RowParameters:
    """Values and distributions of the rows. A stream of its own per row gives its numbers: start
    states are the same whatever the parameters are."""

    def __init__(
        self,
        parameters: Sequence[Parameter],
        num_envs: int,
        num_actions: int,
        device: torch.device,
        seed: int,
    ) -> None:
        """All rows have the defaults."""
        self._places = {parameter.name: place for place, parameter in enumerate(parameters)}
        defaults = [float(parameter.default) for parameter in parameters]
        self._defaults = torch.tensor(defaults, device=device).unsqueeze(1)
        # a parameter's values lie side by side
        self._values = self._defaults.repeat(1, num_envs)
        self._low = self._values.clone()
        self._high = self._values.clone()
        self.chances = torch.zeros(_CHANCES, num_envs, device=device)
        """Uniform numbers of the episode, for the time and direction of a push."""
        self._random = RowRandom(num_envs, device, seed ^ _STREAM)
        self.values = {name: self._values[place] for name, place in self._places.items()}
        """Live values by parameter. Shape of each: (num_envs,)."""
        self.are_drawn = False
        """True once a row has had a distribution."""
        longest = parameters[self._places[ACTION_DELAY]].high if self._delays else -1
        self._past_actions = torch.zeros(num_envs, round(longest) + 1, num_actions, device=device)
        """The newest action first."""

    @property
    def _delays(self) -> bool:
        return ACTION_DELAY in self._places

    def set(self, env_ids: Tensor, distribution: Distribution) -> None:
        """Have the rows `env_ids` draw from `distribution` from their next reset on."""
        for bounds, end in ((self._low, 0), (self._high, 1)):
            bounds[:, env_ids] = self._defaults
            for name, ends in distribution.items():
                bounds[self._places[name], env_ids] = float(ends[end])
        self.are_drawn = self.are_drawn or bool(distribution)

    def draw(self, env_ids: Tensor) -> None:
        """Draw values for a new episode of the rows `env_ids`."""
        # always drawn, so that a row's numbers do not depend on its neighbours' distributions
        numbers = self._random.uniform(env_ids, len(self._places) + _CHANCES).T
        if not self.are_drawn:
            return
        low, high = self._low[:, env_ids], self._high[:, env_ids]
        self._values[:, env_ids] = low + (high - low) * numbers[_CHANCES:]
        self.chances[:, env_ids] = numbers[:_CHANCES]
        self._past_actions.index_fill_(0, env_ids, 0.0)

    def delayed(self, actions: Tensor) -> Tensor:
        """Actions that arrive in this step; those before an episode are 0. Shape of both:
        (num_envs, num_actions)."""
        if not (self._delays and self.are_drawn):
            return actions
        self._past_actions = torch.cat((actions.unsqueeze(1), self._past_actions[:, :-1]), dim=1)
        steps = self.values[ACTION_DELAY].round().to(torch.int64)
        index = steps.view(-1, 1, 1).expand(-1, 1, actions.shape[1])
        return self._past_actions.gather(1, index).squeeze(1)

    def reseed(self, env_ids: Tensor, seeds: Tensor) -> None:
        """Restart the streams of the rows `env_ids`. `seeds`: int64, shape (len(env_ids),)."""
        self._random.reseed(env_ids, seeds ^ _STREAM)

    def note_loaded(self) -> None:
        """Look for distributions and values in rows that were written into `row_tensors`."""
        tensors = (self._low, self._high, self._values)
        differ = [bool((value != self._defaults).any()) for value in tensors]
        self.are_drawn = self.are_drawn or any(differ)

    def row_tensors(self) -> dict[str, Tensor]:
        """Live views of all state, with a row for each environment."""
        own = {
            "values": self._values.T,
            "low": self._low.T,
            "high": self._high.T,
            "chances": self.chances.T,
            **self._random.row_tensors(),
            **({"past_actions": self._past_actions} if self._delays else {}),
        }
        return {f"parameters.{name}": value for name, value in own.items()}
