"""A hand of four fingers like the Allegro Hand, with a cube, in MuJoCo."""

from __future__ import annotations

from eureka_agent.task import Channel

from .cube_in_hand import CubeInHand
from .cube_in_hand_names import observation_channels_of, variables_of

DEFAULT_TASK = "turn"
FINGERS = ("index", "middle", "ring", "thumb")
MOTORS = (
    *(f"{f}_{j}" for f in FINGERS[:3] for j in ("twist", "root", "middle", "end")),
    *(f"thumb_{j}" for j in ("lift", "twist", "middle", "end")),
)
JOINTS = (
    "the index, middle and ring finger (each: sideways twist, then flexion at its root, middle and"
    " end) and the thumb (lift towards the palm, twist, flexion at its middle and end); flexion"
    " is positive"
)
TIPS = "index, middle, ring finger and thumb"


class AllegroHand(CubeInHand):
    """A robot hand of four fingers, like the Allegro Hand, lies palm up with a cube of 6.5 cm on
    its palm.

    The fingers point to +x; index, middle and ring finger stand at y = -0.04, 0 and 0.04 m, and the
    thumb is at the side of -y. Each of 16 joints has a motor, whose action is the joint's target
    angle between the ends of its range. An episode lasts 10 s at 20 control steps a second, and
    starts with half flexed fingers and the cube flat on the palm. A cube that falls off the hand
    ends it.
    """

    fingers = FINGERS
    motors = joints = MOTORS
    model_file = "hand.xml"
    max_episode_length = 200
    num_actions = 16
    num_observations = 4 * 16 + 18 + 12
    variables = variables_of(TIPS, JOINTS, JOINTS, (4, 16, 16))
    observation_channels = observation_channels_of(FINGERS, MOTORS, MOTORS)
    action_channels = (
        Channel(
            "commanded_angles",
            MOTORS,
            "1",
            "joint",
            "target angles: -1 is the lower end of a joint's range, 1 the upper one",
            range=(-1.0, 1.0),
        ),
    )
