"""The simulator's side of eureka-agent's protocol for command environments (docs/protocol.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eureka_adapter.faults import EnvironmentFault, Fault, RewardFault, TrainerFault, blame
from eureka_adapter.job import Constant, Job, Variable, episode_seed

if TYPE_CHECKING:
    from eureka_adapter.episodes import BatchedEnv, Step, play
    from eureka_adapter.training import Training, load_arrays, save_arrays

__all__ = [
    "BatchedEnv",
    "Constant",
    "EnvironmentFault",
    "Fault",
    "Job",
    "RewardFault",
    "Step",
    "TrainerFault",
    "Training",
    "Variable",
    "blame",
    "episode_seed",
    "load_arrays",
    "play",
    "save_arrays",
]


def __getattr__(name: str) -> Any:
    """Import what needs torch when it is first asked for."""
    if name in __all__:
        from eureka_adapter import episodes, training

        return getattr(episodes, name, None) or getattr(training, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
