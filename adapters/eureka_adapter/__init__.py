"""The simulator's side of eureka-agent's protocol for command environments (docs/protocol.md)."""

import sys

# said before what follows is read, which an older one cannot
if sys.version_info < (3, 9):  # noqa: UP036
    found = ".".join(map(str, sys.version_info[:2]))
    raise SystemExit("eureka_adapter needs Python 3.9 or newer, and this is Python " + found)

from typing import TYPE_CHECKING, Any

from eureka_adapter.faults import Fault, RewardFault, blame
from eureka_adapter.job import Job, Variable, episode_seed

if TYPE_CHECKING:
    from eureka_adapter.episodes import BatchedEnv, play
    from eureka_adapter.rows import Step
    from eureka_adapter.training import Training, load_arrays, load_state, save_arrays

__all__ = ["BatchedEnv", "Fault", "Job", "RewardFault", "Step", "Training", "Variable"]
__all__ += ["blame", "episode_seed", "load_arrays", "load_state", "play", "save_arrays"]


def __getattr__(name: str) -> Any:
    """Import what needs torch when it is first asked for."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from eureka_adapter import episodes, training

    return getattr(episodes if hasattr(episodes, name) else training, name)
