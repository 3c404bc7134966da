"""Isaac Gym's Humanoid, over random walks."""

from __future__ import annotations

from corpus_legged import LEGGED_CONSTANTS, Legged, legged_variables, legged_walks
from corpus_world import constants


class Humanoid(Legged):
    """A two-legged robot with 21 joints that is to run forward, along x, as fast as it can without
    falling."""

    joints = 21
    feet = 2
    lowest = 1.1
    num_actions = 21
    walks = legged_walks(21, 2, 1.34)
    variables = legged_variables(21, 2)
    constants = (
        *LEGGED_CONSTANTS,
        *constants(termination_height=1.1, death_cost=-1.0, angular_velocity_scale=0.1),
    )
