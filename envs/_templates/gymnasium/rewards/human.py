"""The reward that you would write yourself, to compare with. Leave the file out where you have
none."""

from torch import Tensor


def compute_reward(
    tip_position: Tensor, angular_velocity: Tensor, actions: Tensor
) -> tuple[Tensor, dict[str, Tensor]]:
    """Higher is better; near the top, slow is better."""
    height = 0.5 * (tip_position[:, 0] + 1.0)
    still = -0.02 * height * angular_velocity.square()
    effort = -0.01 * actions.square().sum(dim=-1)
    return height + still + effort, {"height": height, "still": still, "effort": effort}
