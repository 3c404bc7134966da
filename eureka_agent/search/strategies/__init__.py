"""Strategies by the names that `--strategy` takes."""

from __future__ import annotations

from eureka_agent.search.strategies.best_of_n import BestOfN
from eureka_agent.search.strategies.greedy import Greedy
from eureka_agent.search.strategies.interface import Strategy
from eureka_agent.search.strategies.islands import Islands
from eureka_agent.search.strategies.tree import Tree

STRATEGIES: dict[str, type[Strategy]] = {
    "greedy": Greedy,
    "best-of-n": BestOfN,
    "islands": Islands,
    "tree": Tree,
}
