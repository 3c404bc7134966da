"""Worth of an order of terms alone, the idea of HERON (Bukharin et al. 2023): training by what
matters most, then by what matters next, without a weight from anybody.

    python benchmarks/term_order.py [--seeds N] [TASK …]

The offline designer's first proposal gives the terms. A person says their order, as `rank terms` of
a refinement does, and the weights follow from it: the first term gets the largest weight of them
all, and each further one two thirds of the one before (`order`). The orders were written before any
training. Beside it stand the same terms in the order turned round, with equal weights (`level`),
and with the designer's own (`own`), and the human and the sparse reward; all from the same seeds,
scored as in `reward_kinds.py`. Not as in the paper: there a reward model is fitted to comparisons
of episodes by the order.
"""

from __future__ import annotations

import argparse
import asyncio
import json

from _arms import arms
from _common import start, subject
from _results import write_result

from eureka_agent.designer.interface import DesignRequest, Told
from eureka_agent.designer.offline import wishes
from eureka_agent.designer.offline.designer import OfflineDesigner
from eureka_agent.feedback_records import Given, Importance
from eureka_agent.records import Operator
from eureka_agent.simulation.loading import describe

ORDERS = {
    "quadcopter/hover": (
        *("reach", "reach_closely", "failure", "slow", "upright", "turning_slowly", "effort"),
    ),
    "cartpole/swingup": ("upright", "balanced", "failure"),
    "hopper/run": ("forward", "alive", "upright", "effort"),
}
SEED = 10_000


def proposal(task: str, order: tuple[str, ...] = ()) -> str:
    """Source of the offline designer's first proposal, its terms in this order."""
    description = describe(subject(task).loaded, task.partition("/")[2])
    said = Importance(of="terms", order=order) if order else None
    given = (Given(number=1, time="", who="", feedback=said),) if said else ()
    request = DesignRequest(
        description, description.sentence, Operator.FRESH, (), (), SEED, told=Told(importance=given)
    )
    return asyncio.run(OfflineDesigner().propose(request)).reward.source


def main() -> None:
    """Train, store."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tasks", nargs="*", default=list(ORDERS), metavar="TASK")
    parser.add_argument("--seeds", type=int, default=8)
    arguments = parser.parse_args()
    start()
    found = {}
    for task in arguments.tasks:
        order, ratio = ORDERS[task], wishes._STEP
        sources = {"order": proposal(task, order), "turned round": proposal(task, order[::-1])}
        wishes._STEP = 1.0
        sources |= {"level": proposal(task, order), "own": proposal(task)}
        wishes._STEP = ratio
        found[task] = {"sources": sources, "arms": arms(task, sources, arguments.seeds)}
    print(json.dumps({task: each["arms"] for task, each in found.items()}, indent=1))
    write_result("term_order", {"tasks": found})


if __name__ == "__main__":
    main()
