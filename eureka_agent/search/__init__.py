"""The loop: strategies, attempts, final trainings, sessions.

`eureka_agent.search` is this package and a function alike: `search("hover", env="quadcopter")`, see
`eureka_agent.search.notebook.search`.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eureka_agent.search.notebook import Finished


class _CallablePackage(ModuleType):
    def __call__(self, sentence: str | None = None, **settings: Any) -> Finished:
        """Search a reward function (`eureka_agent.search.notebook.search`)."""
        from eureka_agent.search.notebook import search

        return search(sentence, **settings)


# `from eureka_agent import search` finds the package, whatever was imported before
sys.modules[__name__].__class__ = _CallablePackage
