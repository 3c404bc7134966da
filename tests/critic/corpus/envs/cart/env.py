"""Isaac Gym's Cartpole, over random walks."""

from __future__ import annotations

from typing import ClassVar

from corpus_world import RandomWalks, Walk, constants, vectors
from torch import Tensor


class Cart(RandomWalks):
    """A cart on a rail with a pole that is to be kept upright."""

    num_actions = 1
    walks: ClassVar = {"cart": Walk(1, 0.7, 1.0), "pole": Walk(1, 0.35, 1.2)}
    variables = (
        *vectors(
            "world", "m", 0, cart_pos="position of the cart; the rail's middle is 0, its ends ±3"
        ),
        *vectors("world", "m/s", 0, cart_vel="velocity of the cart"),
        *vectors("joint", "rad", 0, pole_angle="angle of the pole; 0 is upright"),
        *vectors("joint", "rad/s", 0, pole_vel="angular velocity of the pole"),
        *vectors("joint", "m, rad", 2, dof_pos="position of the cart, angle of the pole"),
        *vectors("joint", "m/s, rad/s", 2, dof_vel="velocities of them"),
    )
    constants = constants(reset_dist=3.0)

    def compute_variables(self) -> dict[str, Tensor]:
        return {
            "cart_pos": self.at("cart")[:, 0],
            "cart_vel": self.velocity("cart")[:, 0],
            "pole_angle": self.at("pole")[:, 0],
            "pole_vel": self.velocity("pole")[:, 0],
            "dof_pos": self.place,
            "dof_vel": self.motion,
        }

    def compute_termination(self) -> Tensor:
        return (self.at("cart")[:, 0].abs() > 3.0) | (self.at("pole")[:, 0].abs() > 1.5)
