"""A point mass on a table, in plain torch: replace it by your own physics. Lines to change are
marked CHANGE."""

from __future__ import annotations

import torch
from torch import Tensor

from eureka_agent.simulation.drawing import Circle, Drawing, rectangle
from eureka_agent.simulation.vec_task import VecTask
from eureka_agent.task import Channel, Variable

MAX_FORCE = 2.0
MASS = 0.5
DRAG = 0.4
TABLE_HALF_WIDTH = 2.0


class PointMass(VecTask):
    """A puck that a force pushes over a table. CHANGE: say what it is; language models are told
    this docstring.

    Then whatever helps to judge a movement: weights, directions, where an episode starts. The puck
    weighs 0.5 kg and starts at rest near the middle; an episode lasts 5 s at 20 control steps a
    second and ends early when it leaves the table.
    """

    # what a reward may read: name, shape of one row, unit, frame, one line of doc, range where
    # there is one. A designer sees nothing else of this file, so write for a stranger. `actions`
    # and `terminated` are there in every environment.
    variables = (
        Variable(
            "position",
            (2,),
            "m",
            "world",
            "position of the puck: x, y; the table's middle is 0, its edges are at ±2",
        ),
        Variable("velocity", (2,), "m/s", "world", "velocity of the puck: x, y"),
        Variable(
            "goal_position",
            (2,),
            "m",
            "world",
            "where the puck has to be: x, y; fixed within an episode",
        ),
        Variable(
            "goal_distance", (), "m", "world", "distance of the puck from the goal", (0.0, 6.0)
        ),
    )
    # names of the observation's and the action's numbers, in their order: `eureka export` writes
    # them beside the policy
    observation_channels = (
        Channel("goal_offset", ("x", "y"), "m", "world", "from the puck to the goal"),
        Channel("velocity", ("x", "y"), "m/s", "world", "of the puck"),
    )
    action_channels = (
        Channel("force", ("x", "y"), "N", "world", "on the puck", range=(-MAX_FORCE, MAX_FORCE)),
    )
    num_observations = 4
    num_actions = 2
    max_episode_length = 100  # control steps
    control_dt = 0.05  # seconds
    # what ends an episode early. Where one of them is a success, say so: `success_causes =
    # ("arrived",)`; the others are failures
    termination_causes = ("left_the_table",)

    def __init__(
        self,
        num_envs: int,
        device: torch.device | str = "cpu",
        seed: int = 0,
        *,
        goal_spread: float = 1.0,
    ) -> None:
        """`goal_spread`: how far goals lie from the middle, m. A task sets such arguments with its
        `options`."""
        super().__init__(num_envs, device, seed)
        self.goal_spread = goal_spread
        # the state: tensors whose first dimension is the batch
        self.position = torch.zeros(num_envs, 2, device=self.device)
        self.velocity = torch.zeros(num_envs, 2, device=self.device)
        self.goal = torch.zeros(num_envs, 2, device=self.device)
        self.force = torch.zeros(num_envs, 2, device=self.device)

    def pre_physics_step(self, actions: Tensor) -> None:
        """Actions are in [-1, 1]."""
        self.force = MAX_FORCE * actions

    def simulate(self) -> None:
        """CHANGE: advance the state by `control_dt`."""
        self.velocity = self.velocity + self.control_dt * (self.force - DRAG * self.velocity) / MASS
        self.position = self.position + self.control_dt * self.velocity

    def compute_observations(self) -> None:
        """CHANGE: what the policy sees."""
        self.obs_buf[:, 0:2] = self.goal - self.position
        self.obs_buf[:, 2:4] = self.velocity

    def compute_variables(self) -> dict[str, Tensor]:
        """Every name in `variables`, and no other."""
        return {
            "position": self.position,
            "velocity": self.velocity,
            "goal_position": self.goal,
            "goal_distance": (self.goal - self.position).norm(dim=-1),
        }

    def compute_termination(self) -> dict[str, Tensor]:
        """Ends by cause. The time limit is none of them: the base class keeps it."""
        return {"left_the_table": (self.position.abs() > TABLE_HALF_WIDTH).any(dim=-1)}

    def draw(self, row: int) -> Drawing:
        """CHANGE: a plain drawing of one row, for videos; leave it out if none are needed."""
        return Drawing(
            (
                rectangle((0.0, 0.0), 2.0 * TABLE_HALF_WIDTH, 2.0 * TABLE_HALF_WIDTH, "#e2e8f0"),
                Circle(tuple(self.goal[row].tolist()), 0.1, "#22c55e"),
                Circle(tuple(self.position[row].tolist()), 0.08, "#334155"),
            ),
            centre=(0.0, 0.0),
            width=8.0,
        )

    def reset_idx(self, env_ids: Tensor) -> None:
        """New episodes in these rows alone, with random numbers of their own."""
        random = self.random.uniform(env_ids, 4, -1.0, 1.0)
        self.position[env_ids] = 0.2 * random[:, 0:2]
        self.velocity[env_ids] = 0.0
        self.force[env_ids] = 0.0
        self.goal[env_ids] = self.goal_spread * random[:, 2:4]
