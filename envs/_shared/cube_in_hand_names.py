"""Variables and observation channels of a hand that turns a cube (`cube_in_hand.py`)."""

from __future__ import annotations

from eureka_agent.task import Channel, Variable

CUBE = 0.065
"""Edge of the cube, m."""
REST_HEIGHT = CUBE / 2.0
XYZ = ("x", "y", "z")


def variables_of(
    fingers: str, joints: str, motors: str, counts: tuple[int, int, int]
) -> tuple[Variable, ...]:
    """Variables of a hand; words for its fingertips, joints and motors in their order, and counts
    of these three."""
    tips, hinges, driven = counts
    return (
        Variable(
            "cube_position",
            (3,),
            "m",
            "world",
            "position of the cube's centre; 0 is the middle of the palm's surface as the hand"
            " starts: x along the fingers, y away from the thumb, z up",
        ),
        Variable(
            "cube_orientation",
            (4,),
            "1",
            "world",
            "orientation of the cube, a unit quaternion w, x, y, z; (1, 0, 0, 0) is edges along"
            " the axes",
        ),
        Variable("cube_velocity", (3,), "m/s", "world", "velocity of the cube's centre: x, y, z"),
        Variable(
            "cube_angular_velocity",
            (3,),
            "rad/s",
            "world",
            "angular velocity of the cube about x, y and z; z is positive anticlockwise as seen"
            " from above",
        ),
        Variable(
            "cube_height",
            (),
            "m",
            "world",
            f"height of the cube's centre; {REST_HEIGHT:g} where it lies flat on a level palm",
        ),
        Variable(
            "cube_place_distance",
            (),
            "m",
            "world",
            "distance of the cube's centre from the place in the hand where it starts and should"
            " stay",
        ),
        Variable(
            "cube_upright",
            (),
            "1",
            "world",
            "cosine of the tilt of the cube's own z axis: 1 points up, as at the start, 0 to a"
            " side, -1 down",
            (-1.0, 1.0),
        ),
        Variable(
            "goal_orientation",
            (4,),
            "1",
            "world",
            "orientation that the cube should have, a unit quaternion w, x, y, z; another one from"
            " the step after goal_reached on",
        ),
        Variable(
            "goal_rotation_vector",
            (3,),
            "rad",
            "world",
            "rotation that is left to the goal: axis (x, y, z) times angle; its length is"
            " rotation_distance",
        ),
        Variable(
            "rotation_distance",
            (),
            "rad",
            "world",
            "angle of the rotation that is left to the goal, by the shorter way; in the step with"
            " goal_reached still to the goal that was reached",
            (0.0, 3.1416),
        ),
        Variable(
            "rotation_progress",
            (),
            "rad",
            "world",
            "decrease of rotation_distance in this step, to the same goal before and after;"
            " positive is closer",
            (-3.1416, 3.1416),
        ),
        Variable(
            "time_at_goal",
            (),
            "s",
            "-",
            "time without a break that rotation_distance has been within the task's tolerance of"
            " this goal",
        ),
        Variable(
            "goal_reached",
            (),
            "1",
            "-",
            "1 in the step in which the cube has been at its goal for as long as the task asks,"
            " else 0; a new goal follows at once",
            (0.0, 1.0),
        ),
        Variable(
            "goals_reached", (), "1", "-", "count of goals reached since the start, this step's too"
        ),
        Variable(
            "angle_turned",
            (),
            "rad",
            "world",
            "angle by which the cube has turned about the vertical since the start, whole turns"
            " too; positive anticlockwise as seen from above",
        ),
        Variable(
            "fingertip_positions",
            (tips, 3),
            "m",
            "world",
            f"positions of the tips of {fingers}: x, y, z as of the cube",
        ),
        Variable(
            "fingertip_distances",
            (tips,),
            "m",
            "world",
            f"distances of the tips of {fingers} from the cube's centre; about 0.045 or more where"
            " a tip touches it",
        ),
        Variable(
            "fingertips_in_contact",
            (tips,),
            "1",
            "-",
            f"1 for each tip ({fingers}) that touches the cube, else 0",
            (0.0, 1.0),
        ),
        Variable("joint_positions", (hinges,), "rad", "joint", f"angles of {joints}"),
        Variable(
            "joint_velocities",
            (hinges,),
            "rad/s",
            "joint",
            "angular velocities of the joints, in the order and with the signs of the angles",
        ),
        Variable(
            "joint_targets",
            (driven,),
            "rad",
            "joint",
            f"angles to which the motors drive {motors}; each step goes half of the way to the"
            " commanded angles",
        ),
    )


def observation_channels_of(
    fingers: tuple[str, ...], joints: tuple[str, ...], motors: tuple[str, ...]
) -> tuple[Channel, ...]:
    """Names of all numbers of a hand's observation."""
    offsets = tuple(f"{finger}_{axis}" for finger in fingers for axis in XYZ)
    axes = tuple(f"{axis}_{entry}" for axis in "xz" for entry in XYZ)
    return (
        Channel(
            "joint_positions_scaled", joints, "1", "joint", "-1 at the lower limit, 1 at the upper"
        ),
        Channel("joint_velocities", joints, "rad/s", "joint", "signs as the angles'", scale=0.2),
        Channel("cube_offset", XYZ, "m", "world", "from its start place", scale=10.0),
        Channel("cube_axes", axes, "1", "world", "directions of the cube's own x and z axis"),
        Channel("cube_velocity", XYZ, "m/s", "world", "of the cube's centre"),
        Channel("cube_angular_velocity", XYZ, "rad/s", "world", "about the axes", scale=0.2),
        Channel("next_goal_rotation_vector", XYZ, "rad", "world", "left to the next step's goal"),
        Channel("fingertip_offsets", offsets, "m", "world", "from the cube's centre", scale=10.0),
        Channel(
            "joint_targets_scaled",
            motors,
            "1",
            "joint",
            "-1 and 1 are the lowest and highest command",
        ),
        Channel(
            "last_actions",
            motors,
            "1",
            "joint",
            "the action of the step before; 0 in an episode's first step",
        ),
    )
