"""Tree search over rewards (after RF-Agent 2025): each trained attempt is a node below its first
parent.

UCT (Kocsis and Szepesvári 2006) chooses the node of the next child. Its operator is one that the
node lacks.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from eureka_agent.ranking import ranked
from eureka_agent.records import Attempt, Operator
from eureka_agent.search.strategies.interface import NOT_ENDED, ProposalPlan, last_revisions

EXPLORATION = 0.25
"""UCT's exploration constant, for values in [0, 1]."""
CHILDREN = {
    Operator.REASON_OVER_PATH: 1,
    Operator.MUTATE_STRUCTURE: 2,
    Operator.RETUNE_WEIGHTS: 2,
    Operator.CROSSOVER: 2,
    Operator.DIFFERENT: 1,
}
"""The eight children that a node may have. Tuned ones do not count."""
ELITE = 5
"""Best attempts of the search, the partners for crossover."""
LONGEST_PATH = 4
"""Rewards of a path in a request: the node and its nearest ancestors."""


class Node:
    """A trained attempt in the tree, or the root, which has none."""

    def __init__(
        self, attempt: Attempt | None, parent: Node | None, value: float | None = None
    ) -> None:
        self.attempt = attempt
        self.parent = parent
        self.children: list[Node] = []
        """The trained children."""
        self.values = [] if value is None else [value]
        """Values of this attempt and its children."""
        self.tries = len(self.values)
        """Number of values, plus the children that this generation adds."""
        self.visits = len(self.values)
        """Tries of the node and of all nodes below it."""
        self.made: Counter[Operator] = Counter()
        """Operators of its children, with those that this generation adds."""
        self.crossed: set[str] = set()
        """Ids of its crossover partners."""

    def up(self) -> Iterator[Node]:
        """This node and its ancestors, the root last."""
        node: Node | None = self
        while node is not None:
            yield node
            node = node.parent

    def line(self) -> list[Attempt]:
        """This attempt and its ancestors, nearest first."""
        return [node.attempt for node in self.up() if node.attempt is not None]

    def add_try(self, value: float | None) -> None:
        """Count a child with its value, or one to come (None), which is a visit without a value
        (Liu et al. 2020)."""
        self.tries += 1
        if value is not None:
            self.values.append(value)
        for node in self.up():
            node.visits += 1


class Tree:
    """Places a generation's samples one by one by UCT.

    The value of a trained attempt is the share of trained attempts that are not better; a rejected,
    failed or stopped one has 0. Ranks count, since the scale of a fitness is the task's and one
    outlier would make all others look alike. The choices at a node are a further child of it, worth
    the mean of its own value and its children's, and each of its children, worth the best choice
    below. Each sample counts as a visit for the later ones, so they spread.
    """

    def plan(self, iteration: int, finished: Sequence[Attempt], samples: int) -> list[ProposalPlan]:
        """Fresh proposals at first, then children one by one where UCT places them."""
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


def grow(finished: Sequence[Attempt], order: Sequence[Attempt]) -> dict[str, Node]:
    """The tree's nodes by attempt id, parents first; the root has the id "". `order` holds the
    trained attempts, best first.

    A parent's repeats may fail after its children were made. They move to the nearest ancestor that
    did not fail.
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
    """The upper confidence bound of a choice."""
    return worth + EXPLORATION * math.sqrt(math.log(all_visits) / visits)


def _select(nodes: dict[str, Node], order: Sequence[Attempt]) -> Node:
    """The node for the next child."""
    further: dict[Node, float] = {}
    worth: dict[Node, float] = {}
    for node in reversed(nodes.values()):  # children before parents; a full subtree has no worth
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
        )  # of equals the first: a child before the node itself
        if chosen is node:
            return node
        node = chosen


def _missing(node: Node, nodes: dict[str, Node], order: Sequence[Attempt]) -> Iterator[Operator]:
    """Operators that this node still lacks, in the table's order."""
    if node.attempt is None:
        yield Operator.FRESH
        return
    for operator, most in CHILDREN.items():
        if node.made[operator] < most and (
            operator is not Operator.CROSSOVER or _partner(node, nodes, order)
        ):
            yield operator


def _partner(node: Node, nodes: dict[str, Node], order: Sequence[Attempt]) -> str | None:
    """The best unrelated elite attempt that this node was not crossed with."""
    own = {attempt.id for attempt in node.line()}
    for attempt in order[:ELITE]:
        related = attempt.id in own or any(each is node for each in nodes[attempt.id].up())
        if not related and attempt.id not in node.crossed:
            return attempt.id
    return None


def _child(
    node: Node, nodes: dict[str, Node], order: Sequence[Attempt], asked: Counter[Operator]
) -> ProposalPlan:
    """A child of this node by the lacking operator that this generation has least of, of equals the
    first in the table."""
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
