"""Reward functions from plain words: designed, verified, trained, explained."""

from __future__ import annotations

TYPE_CHECKING = False  # as that of typing, whose import would take most of this one's time
if TYPE_CHECKING:
    from eureka_agent.search.notebook import Finished, critique, evaluate, search, train

__version__ = "0.1.0"
__all__ = ["Finished", "critique", "evaluate", "search", "train"]


def __getattr__(name: str) -> object:
    """A function for notebooks, imported on use; `search` is the package, which can be called."""
    from importlib import import_module

    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "search":
        return import_module("eureka_agent.search")
    return getattr(import_module("eureka_agent.search.notebook"), name)
