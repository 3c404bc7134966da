"""Strategies by the names that `--strategy` takes."""

from __future__ import annotations

from eureka_agent.search.strategies.greedy import BestOfN, Greedy
from eureka_agent.search.strategies.interface import Strategy
from eureka_agent.search.strategies.islands import Islands
from eureka_agent.search.strategies.tree import Tree
from eureka_agent.settings import SearchSettings, strategy_name

STRATEGIES: dict[str, type[Strategy]] = {
    "greedy": Greedy,
    "best-of-n": BestOfN,
    "islands": Islands,
    "tree": Tree,
}


def strategy_of(settings: SearchSettings, *, refined: bool = False) -> Strategy:
    """The strategy of a search. `refined`: of one to which a person has said something."""
    return STRATEGIES[strategy_name(settings, refined=refined)]()
