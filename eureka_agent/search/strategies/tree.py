"""Tree search over rewards (after RF-Agent 2025): whatever was trained is a node below what it was
made from.

Where the next child goes is decided by UCT (Kocsis and Szepesvári 2006), what it is by what the
node does not have yet.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from eureka_agent.ranking import ranked
from eureka_agent.records import Attempt, Operator
from eureka_agent.search.strategies.history import NOT_ENDED, last_revisions
from eureka_agent.search.strategies.interface import ProposalPlan

EXPLORATION = 0.25
"""UCT's constant: how much a choice that was made seldom is preferred. Values are in [0, 1]."""
CHILDREN = {
    Operator.REASON_OVER_PATH: 1,
    Operator.MUTATE_STRUCTURE: 2,
    Operator.RETUNE_WEIGHTS: 2,
    Operator.CROSSOVER: 2,
    Operator.DIFFERENT: 1,
}
"""The eight children that a node may have. What an optimiser tuned, without a model, does not count
among them."""
ELITE = 5
"""Best attempts of the search, of which one is crossed with a node."""
LONGEST_PATH = 4
"""Rewards of a path that a designer is shown: the node and the nearest of those before it."""


class Node:
    """A trained attempt in the tree, or its root, which is none and has the fresh ones as
    children."""

    def __init__(
        self, attempt: Attempt | None, parent: Node | None, value: float | None = None
    ) -> None:
        self.attempt = attempt
        self.parent = parent
        self.children: list[Node] = []
        """The trained ones."""
        self.values = [] if value is None else [value]
        """Its own and those of all its children."""
        self.tries = len(self.values)
        """The same counted, with the children that this generation adds, of which nothing is known
        yet."""
        self.visits = len(self.values)
        """Tries of the node and of all that is below it."""
        self.made: Counter[Operator] = Counter()
        """Operators of its children, those that this generation adds too."""
        self.crossed: set[str] = set()
        """Whom it has been crossed with."""

    def up(self) -> Iterator[Node]:
        """This node and those above it, the root last."""
        node: Node | None = self
        while node is not None:
            yield node
            node = node.parent

    def line(self) -> list[Attempt]:
        """This attempt and those that it came from, nearest first."""
        return [node.attempt for node in self.up() if node.attempt is not None]

    def add_try(self, value: float | None) -> None:
        """A child was made here, or is to be (None), which counts as a visit and leaves the mean
        alone (Liu et al. 2020)."""
        self.tries += 1
        if value is not None:
            self.values.append(value)
        for node in self.up():
            node.visits += 1


class Tree:
    """Spends a generation's samples one by one where UCT finds them best spent.

    The value of a trained attempt is the share of the trained ones that it is not behind of; of
    what was rejected, failed or stopped 0. Ranks, because the scale of a fitness is the task's, and
    one outlier would make all others look alike. At a node the choices are a further child of it,
    worth the mean of its own value and its children's, and the way down to each of its children,
    worth the best choice that there is. Each sample of a generation counts as a visit for those
    after it, so they spread.
    """

    def plan(self, iteration: int, finished: Sequence[Attempt], samples: int) -> list[ProposalPlan]:
        """Fresh proposals at first; then one child after the other, wherever it is worth most."""
        order = ranked(finished)
        if not order:
            return [ProposalPlan(Operator.FRESH)] * samples
        nodes = grow(finished, order)
        asked: Counter[Operator] = Counter()
        plans = []
        for _ in range(samples):
            node = _select(nodes, order)
            plan = _child(node, nodes, order, asked)
            asked[plan.operator] += 1
            node.made[plan.operator] += 1
            node.add_try(None)
            plans.append(plan)
        return plans

    def to_tune(self, place: int, finished: Sequence[Attempt], samples: int) -> Attempt | None:
        """The best attempt so far."""
        return next(iter(ranked(finished)), None)


def grow(finished: Sequence[Attempt], order: Sequence[Attempt]) -> dict[str, Node]:
    """The tree's nodes by attempt id, parents before children, the root first with the id "";
    `order`: the trained ones, best first.

    A parent may turn out to fail when its repeats are known, after its children were made: they go
    to the nearest one above that did not.
    """
    values = {attempt.id: 1.0 - place / len(order) for place, attempt in enumerate(order)}
    root = Node(None, None)
    nodes, home = {"": root}, {"": root}
    for attempt in last_revisions(finished):
        made_from = attempt.proposal.parents[0] if attempt.proposal.parents else ""
        above = home.get(made_from, root)
        above.add_try(None if attempt.stage in NOT_ENDED else values.get(attempt.id, 0.0))
        if nodes.get(made_from) is above:
            above.made[attempt.proposal.operator] += 1
            above.crossed.update(attempt.proposal.parents[1:])
        home[attempt.id] = above
        if attempt.id in values:
            node = home[attempt.id] = nodes[attempt.id] = Node(attempt, above, values[attempt.id])
            above.children.append(node)
    return nodes


def uct(worth: float, visits: int, all_visits: int) -> float:
    """What a choice is worth and, the seldomer it was made of all that were made at its node, the
    more on top."""
    return worth + EXPLORATION * math.sqrt(math.log(all_visits) / visits)


def _select(nodes: dict[str, Node], order: Sequence[Attempt]) -> Node:
    """The node that the next child is made from."""
    further: dict[Node, float] = {}
    worth: dict[Node, float] = {}
    for node in reversed(
        nodes.values()
    ):  # children before parents; who has no room anywhere below is worth nothing
        choices = [worth[child] for child in node.children if child in worth]
        if any(_missing(node, nodes, order)):
            further[node] = sum(node.values) / len(node.values)
            choices.append(further[node])
        if choices:
            worth[node] = max(choices)
    node = nodes[""]
    while True:
        all_visits = node.tries + sum(child.visits for child in node.children)
        scores = {
            child: uct(worth[child], child.visits, all_visits)
            for child in node.children
            if child in worth
        }
        if node in further:
            scores[node] = uct(further[node], node.tries, all_visits)
        chosen = max(
            scores, key=lambda each: scores[each]
        )  # the first of equals: down rather than here
        if chosen is node:
            return node
        node = chosen


def _missing(node: Node, nodes: dict[str, Node], order: Sequence[Attempt]) -> Iterator[Operator]:
    """Operators of children that this node may still have, in the table's order."""
    if node.attempt is None:
        yield Operator.FRESH
        return
    for operator, most in CHILDREN.items():
        if node.made[operator] < most and (
            operator is not Operator.CROSSOVER or _partner(node, nodes, order)
        ):
            yield operator


def _partner(node: Node, nodes: dict[str, Node], order: Sequence[Attempt]) -> str | None:
    """The best of the elite that this node descends from as little as the other way round, and that
    it was not crossed with."""
    own = {attempt.id for attempt in node.line()}
    for attempt in order[:ELITE]:
        related = attempt.id in own or any(each is node for each in nodes[attempt.id].up())
        if not related and attempt.id not in node.crossed:
            return attempt.id
    return None


def _child(
    node: Node, nodes: dict[str, Node], order: Sequence[Attempt], asked: Counter[Operator]
) -> ProposalPlan:
    """A child of this node by the operator that it lacks and this generation has least of. Of
    equals the first in the table."""
    operator = min(_missing(node, nodes, order), key=lambda each: asked[each])
    if node.attempt is None:
        return ProposalPlan(operator)
    if operator is Operator.CROSSOVER:
        partner = _partner(node, nodes, order)
        assert partner is not None  # else it would not be missing
        node.crossed.add(partner)
        return ProposalPlan(operator, (node.attempt.id, partner))
    if operator is Operator.REASON_OVER_PATH:
        return ProposalPlan(operator, tuple(attempt.id for attempt in node.line()[:LONGEST_PATH]))
    return ProposalPlan(operator, (node.attempt.id,))
