"""Checks of a designed observation on recorded states."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from torch import Tensor

from eureka_agent.records import Finding
from eureka_agent.rewards import OBSERVATION_FUNCTION
from eureka_agent.simulation.vec_task import VecTask
from eureka_agent.task import PREVIOUS_PREFIX
from eureka_agent.training.environment_faults import LARGEST
from eureka_agent.training.observation import DesignedObservation
from eureka_agent.worker import findings

_VALUES_OF_A_FLAG = 2
_MOST_NAMED = 8
"""Numbers of an observation that one finding names."""


def check_observation(
    observation: DesignedObservation, recorded: Mapping[str, Tensor], cls: type[VecTask]
) -> Iterator[Finding]:
    """Findings on an observation. `recorded`: shape (transitions, *variable.shape), also of
    `previous_` ones."""
    observed = observation(recorded)
    broken = ~(observed.abs() < LARGEST)
    if bool(broken.any()):
        column = int(broken.any(dim=0).nonzero()[0])
        count = int(broken.any(dim=1).sum())
        yield findings.finding(
            "D320",
            f"{OBSERVATION_FUNCTION}: number {column} is NaN, infinite or huge in {count} of"
            f" {len(observed)} recorded states",
        )
        return
    constant = (observed == observed[:1]).all(dim=0).nonzero().flatten().tolist()
    if constant:
        shown = ", ".join(map(str, constant[:_MOST_NAMED]))
        yield findings.finding(
            "D321",
            f"{OBSERVATION_FUNCTION}: the same in all {len(observed)} recorded states is number"
            f" {shown} of {observation.width} (from 0)",
            severity="warning",
        )
    goals = [each.name for each in cls.all_variables() if _is_goal(each.name, recorded)]
    words = {name.partition("_")[0] for name in goals}
    if goals and not any(name.partition("_")[0] in words for name in observation.inputs):
        yield findings.finding(
            "D322",
            f"{OBSERVATION_FUNCTION} reads neither {goals[0]!r}, which stays the same in an episode"
            " and differs between episodes, nor a variable that is named like it",
            severity="warning",
        )


def _is_goal(name: str, recorded: Mapping[str, Tensor]) -> bool:
    """True for a variable that is drawn for each episode and stays. A flag that seldom changes is
    none: a goal has more than two values."""
    values = recorded[name]
    stays = bool((values == recorded[PREVIOUS_PREFIX + name]).all())
    return stays and len(values.unique(dim=0)) > _VALUES_OF_A_FLAG
