"""Isaac Gym's Ant, over random walks."""

from __future__ import annotations

from corpus_legged import LEGGED_CONSTANTS, Legged, legged_variables, legged_walks
from corpus_world import constants


class Ant(Legged):
    """A four-legged robot with eight joints that is to run forward, along x, as fast as it can."""

    joints = 8
    feet = 4
    lowest = 0.38
    num_actions = 8
    walks = legged_walks(8, 4, 0.55)
    variables = legged_variables(8, 4)
    constants = (
        *LEGGED_CONSTANTS,
        *constants(termination_height=0.38, death_cost=-2.0, alive_reward_scale=0.5),
    )
