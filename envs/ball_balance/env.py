"""A ball on a tray with three linear motors for legs, in MuJoCo."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from eureka_agent.simulation.mujoco_task import MujocoTask
from eureka_agent.task import Channel, Variable

LEGS = ("leg_1", "leg_2", "leg_3")
XYZ = ("x", "y", "z")
LEG_LENGTH = 0.59
"""Length of a leg while the tray is level in the middle of its travel, m."""
LEG_TRAVEL = 0.1
"""Distance by which a leg can be longer or shorter than that, m."""
LEG_SPEED = 1.0
"""Speed at which an action of 1 moves a leg's target, m/s."""
REST_HEIGHT = 0.71
"""Height of the ball's middle on a level tray, m: tray at 0.6, half its thickness, radius."""
LOWEST_BALL = 0.3
START_RADII = (0.2, 0.4)
"""Distances from the tray's middle at which the ball starts, m."""
START_SPEEDS = (0.5, 1.5)
"""Horizontal speeds at the start, m/s."""
START_SPREAD = math.pi / 4.0
"""Largest angle between the start velocity and the direction to the tray's middle, rad."""
START_FALLS = (0.05, 0.3)
"""Heights from which the ball falls onto the tray, m."""
GOALS = 4
"""Goals of an episode, one after the other."""
DEFAULT_TASK = "balance"


class BallBalance(MujocoTask):
    """A ball that falls onto a round tray, which three legs lift and tilt so that the ball stays on
    it, or comes to a goal. The legs are linear motors.

    The tray is 1 m across and stands 0.6 m above the ground; it can rise, roll and pitch, and
    neither turns about the vertical nor moves sideways. x, y and z are the world's, z is up, and
    the middle of the tray is at x = y = 0. Leg 1 is at +x, leg 2 at -x and +y, leg 3 at -x and -y,
    each 0.4 m from the middle. The three actions move the targets of the legs' lengths, by up to
    0.02 m in a step; a leg that is longer than the others raises its side, and the ball rolls away
    from there. The ball weighs 0.84 kg and has a radius of 0.1 m. It starts in the air, 0.2 to
    0.4 m from the middle, with 0.5 to 1.5 m/s towards the middle or past it, so it rolls off a
    level tray within a second or two. An episode lasts 10 s at 50 control steps a second.
    """

    variables = (
        Variable(
            "leg_offsets",
            (3,),
            "m",
            "joint",
            "length of legs 1, 2, 3 less that with a level tray in mid-travel; positive is longer",
        ),
        Variable("leg_velocities", (3,), "m/s", "joint", "positive where the leg grows longer"),
        Variable(
            "leg_targets",
            (3,),
            "m",
            "joint",
            "offsets to which the motors of legs 1, 2, 3 drive; the actions move them",
            (-LEG_TRAVEL, LEG_TRAVEL),
        ),
        Variable(
            "leg_forces",
            (3,),
            "N",
            "joint",
            "force with which legs 1, 2, 3 push the tray up; 7.9 each with the ball at rest in the"
            " middle, 5.1 with it in the air",
            (-100.0, 100.0),
        ),
        Variable("tray_height", (), "m", "world", "height of the tray's middle; 0.6 in mid-travel"),
        Variable(
            "tray_up_w",
            (3,),
            "1",
            "world",
            "direction in which the tray's upper side points: (0, 0, 1) is level; the ball is"
            " accelerated towards where x and y point",
            (-1.0, 1.0),
        ),
        Variable(
            "ball_position_w",
            (3,),
            "m",
            "world",
            f"middle of the ball: x, y, z; (0, 0, {REST_HEIGHT:g}) at rest in the middle of the"
            " level tray",
        ),
        Variable("ball_velocity_w", (3,), "m/s", "world", "velocity of the ball: x, y, z"),
        Variable("ball_speed", (), "m/s", "world", "length of the ball's velocity"),
        Variable(
            "ball_height",
            (),
            "m",
            "world",
            f"height of the ball's middle: {REST_HEIGHT:g} on the level tray; below"
            f" {LOWEST_BALL:g} it has fallen and the episode ends",
        ),
        Variable(
            "middle_distance",
            (),
            "m",
            "world",
            "horizontal distance of the ball from the tray's middle; beyond 0.5 it falls",
        ),
        Variable(
            "goal_position_w",
            (2,),
            "m",
            "world",
            "place to which the ball is to roll: x, y; the tray's middle (0, 0), unless the task"
            " sets other goals",
        ),
        Variable(
            "goal_distance", (), "m", "world", "horizontal distance of the ball from the goal"
        ),
        Variable(
            "goal_approach_speed",
            (),
            "m/s",
            "world",
            "horizontal speed towards the goal; negative when rolling away from it",
        ),
    )
    observation_channels = (
        Channel("leg_offsets", LEGS, "m", "joint", "positive is longer", scale=10.0),
        Channel("leg_velocities", LEGS, "m/s", "joint", "positive grows longer"),
        Channel("leg_targets", LEGS, "m", "joint", "of the motors", scale=10.0),
        Channel("leg_forces", LEGS, "N", "joint", "positive pushes the tray up", scale=0.05),
        Channel(
            "ball_offset_w",
            XYZ,
            "m",
            "world",
            f"the ball's middle from (0, 0, {REST_HEIGHT:g})",
            scale=3.0,
        ),
        Channel("ball_velocity_w", XYZ, "m/s", "world", "velocity of the ball"),
        Channel(
            "goal_error_w", ("x", "y"), "m", "world", "vector from the ball to the goal", scale=3.0
        ),
    )
    action_channels = (
        Channel(
            "leg_target_speeds",
            LEGS,
            "m/s",
            "joint",
            "speeds of the targets of the legs' lengths",
            range=(-LEG_SPEED, LEG_SPEED),
        ),
    )
    device_types = ("cpu", "cuda")
    model_file = "tray.xml"
    num_observations = 20
    num_actions = 3
    max_episode_length = 500
    control_dt = 0.02
    termination_causes = ("ball_fell", "unstable_physics")
    termination_conditions: Mapping[str, str] = {
        "ball_fell": f"ball_height below {LOWEST_BALL:g} m"
    }

    def __init__(
        self,
        num_envs: int,
        device: torch.device | str = "cpu",
        seed: int = 0,
        *,
        goal_radius: float = 0.0,
    ) -> None:
        """Goals lie up to `goal_radius` m from the tray's middle, with a new one every 2.5 s."""
        super().__init__(num_envs, device, seed)
        self.goal_radius = goal_radius
        self.ball = self.free_joint("ball")
        self.lift = self.joint("lift")
        self.lengths = self.sensor(["length_1", "length_2", "length_3"])
        self.speeds = self.sensor(["speed_1", "speed_2", "speed_3"])
        self.forces = self.sensor(["force_1", "force_2", "force_3"])
        self.targets = torch.zeros(num_envs, 3, device=self.device)
        self.goals = torch.zeros(num_envs, GOALS, 2, device=self.device)
        self._rest = torch.tensor([[0.0, 0.0, REST_HEIGHT]], device=self.device)

    @property
    def goal(self) -> Tensor:
        """The goal of the episode's present quarter. Shape: (num_envs, 2)."""
        quarter = (GOALS * self.progress_buf) // self.max_episode_length
        index = quarter.clamp(max=GOALS - 1).view(-1, 1, 1).expand(-1, 1, 2)
        return self.goals.gather(1, index).squeeze(1)

    @property
    def goal_error(self) -> Tensor:
        """Shape: (num_envs, 2)."""
        return self.goal - self.ball.position_w[:, 0:2]

    def pre_physics_step(self, actions: Tensor) -> None:
        """Move the targets of the legs' lengths within their travel."""
        moved = self.targets + LEG_SPEED * self.control_dt * actions
        self.targets = moved.clamp(-LEG_TRAVEL, LEG_TRAVEL)
        self.ctrl[:] = LEG_LENGTH + self.targets

    def compute_observations(self) -> None:
        torch.cat(
            (
                10.0 * (self.lengths.value - LEG_LENGTH),
                self.speeds.value,
                10.0 * self.targets,
                0.05 * self.forces.value,
                3.0 * (self.ball.position_w - self._rest),
                self.ball.linear_velocity_w,
                3.0 * self.goal_error,
            ),
            dim=1,
            out=self.obs_buf,
        )

    def compute_variables(self) -> dict[str, Tensor | Callable[[], Tensor]]:
        ball = self.ball

        def approach_speed() -> Tensor:
            error = self.goal_error
            along = (error * ball.linear_velocity_w[:, 0:2]).sum(dim=-1)
            return along / error.norm(dim=-1).clamp(min=1e-6)

        return {
            "leg_offsets": lambda: self.lengths.value - LEG_LENGTH,
            "leg_velocities": lambda: self.speeds.value,
            "leg_targets": self.targets,
            "leg_forces": lambda: self.forces.value,
            "tray_height": lambda: self.lift.position,
            "tray_up_w": self.sensors["tray_up"],
            "ball_position_w": lambda: ball.position_w,
            "ball_velocity_w": lambda: ball.linear_velocity_w,
            "ball_speed": lambda: ball.linear_velocity_w.norm(dim=-1),
            "ball_height": lambda: ball.position_w[:, 2],
            "middle_distance": lambda: ball.position_w[:, 0:2].norm(dim=-1),
            "goal_position_w": lambda: self.goal,
            "goal_distance": lambda: self.goal_error.norm(dim=-1),
            "goal_approach_speed": approach_speed,
        }

    def compute_failures(self) -> dict[str, Tensor]:
        return {"ball_fell": self.ball.position_w[:, 2] < LOWEST_BALL}

    def place(self, env_ids: Tensor) -> None:
        """A level tray, the ball above it at a place and with a velocity of its own."""
        numbers = self.random.uniform(env_ids, 5 + 2 * GOALS)
        radius, speed, fall = (
            low + (high - low) * numbers[:, column]
            for column, (low, high) in enumerate((START_RADII, START_SPEEDS, START_FALLS))
        )
        place = 2.0 * math.pi * numbers[:, 3]
        heading = place + math.pi + START_SPREAD * (2.0 * numbers[:, 4] - 1.0)
        self.ball.write(
            env_ids,
            position_w=torch.stack(
                (radius * place.cos(), radius * place.sin(), REST_HEIGHT + fall), dim=-1
            ),
            linear_velocity_w=torch.stack(
                (speed * heading.cos(), speed * heading.sin(), torch.zeros_like(speed)), dim=-1
            ),
        )
        # uniform over the disc's area
        far = self.goal_radius * numbers[:, 5 : 5 + GOALS].sqrt()
        angle = 2.0 * math.pi * numbers[:, 5 + GOALS :]
        goals = torch.stack((far * angle.cos(), far * angle.sin()), dim=-1)
        self.goals.index_copy_(0, env_ids, goals)
        self.targets.index_fill_(0, env_ids, 0.0)
        self.ctrl.index_fill_(0, env_ids, LEG_LENGTH)
