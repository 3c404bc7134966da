"""Environments that no one has built: the designer must read them from their words alone."""

from __future__ import annotations

from eureka_agent.records import TaskDescription, VariableSpec


def variable(
    name: str,
    shape: tuple[int, ...],
    unit: str,
    frame: str,
    doc: str,
    bounds: tuple[float, float] | None = None,
    private: bool = False,
) -> VariableSpec:
    """A variable's spec in one line."""
    return VariableSpec(
        name=name, shape=shape, unit=unit, frame=frame, doc=doc, range=bounds, private=private
    )


def description(
    sentence: str,
    variables: tuple[VariableSpec, ...],
    num_actions: int,
    fitness_doc: str = "score",
    causes: tuple[str, ...] = (),
) -> TaskDescription:
    """An environment with the two variables that all have, and `variables`."""
    common = (
        variable(
            "actions", (num_actions,), "1", "joint", "action applied in this step", (-1.0, 1.0)
        ),
        variable(
            "terminated",
            (),
            "1",
            "-",
            "1 where the episode ends here by failure, else 0",
            (0.0, 1.0),
        ),
    )
    return TaskDescription(
        environment="invented", task="only", sentence=sentence, doc="An invented environment.", fitness_doc=fitness_doc, fitness_unit="1",
        fitness_reduction="sum", success_fitness=None, variables=common + variables, num_observations=10, num_actions=num_actions, control_dt=0.05,
        max_episode_length=200, termination_causes=causes, env_steps=10_000, num_envs=4, training_overrides={}, human_reward=None,
        sparse_reward=None, fingerprint="none",
    )  # fmt: skip


ARM = (
    variable("gripper_position", (3,), "m", "world", "position of the gripper: x, y, z"),
    variable("handle_position", (3,), "m", "world", "position of the drawer's handle: x, y, z"),
    variable("drawer_opening", (), "m", "joint", "how far the drawer is pulled out", (0.0, 0.4)),
    variable("lamp_brightness", (), "1", "-", "brightness of the lamp on the gateway", (0.0, 1.0)),
    variable("joint_velocities", (7,), "rad/s", "joint", "angular velocities of the arm's joints"),
    variable("drawer_secret", (), "m", "joint", "opening that counts", private=True),
)
BOAT = (
    variable(
        "hull_velocity",
        (3,),
        "m/s",
        "body",
        "velocity of the hull: surge (forward), sway (left), heave (up)",
    ),
    variable("hull_position", (2,), "m", "world", "position of the hull: x, y"),
    variable("buoy_position", (2,), "m", "world", "position of the buoy: x, y"),
    variable("roll_angle", (), "rad", "world", "roll of the hull, 0 is upright"),
    variable("wind_velocity", (2,), "m/s", "world", "velocity of the wind: x, y"),
    variable("rudder_angle", (), "rad", "body", "angle of the rudder", (-0.6, 0.6)),
)
LANDER = (
    variable("lander_position", (2,), "m", "world", "position over the middle of the pad: x, z"),
    variable("lander_velocity", (2,), "m/s", "world", "velocity: x, z"),
    variable("lander_angle", (), "rad", "world", "tilt, 0 is upright"),
    variable("lander_angular_velocity", (), "rad/s", "world", "turning speed"),
    variable(
        "leg_contacts",
        (2,),
        "1",
        "-",
        "1 where a leg is on the ground, else 0: left, right",
        (0.0, 1.0),
    ),
)
