"""A hand of five fingers with a wrist like the Shadow Hand, with a cube, in MuJoCo."""

from __future__ import annotations

from eureka_agent.task import Channel

from .cube_in_hand import CubeInHand
from .cube_in_hand_names import observation_channels_of, variables_of

DEFAULT_TASK = "turn"
FINGERS = ("index", "middle", "ring", "little", "thumb")
WRIST = ("wrist_sideways", "wrist_bend")
THUMB = tuple(f"thumb_{joint}" for joint in ("turn", "lift", "sway", "middle", "end"))


def _of_fingers(*parts: str) -> tuple[str, ...]:
    names = [f"{finger}_{part}" for finger in FINGERS[:4] for part in parts]
    names.insert(names.index("little_sideways"), "little_palm")
    return tuple(names)


JOINTS = (*WRIST, *_of_fingers("sideways", "root", "middle", "end"), *THUMB)
MOTORS = (*WRIST, *_of_fingers("sideways", "root", "bend"), *THUMB)
JOINT_WORDS = (
    "the wrist (sideways, upward bend), the index, middle, ring and little finger (each: sideways,"
    " then flexion at its root, middle and end; the little one's part of the palm folds up before"
    " these) and the thumb (turn, lift off the palm, small sway, flexion at its middle and end);"
    " flexion is positive"
)
MOTOR_WORDS = (
    "the wrist, the fingers (sideways, root, then the sum of middle and end, which one motor bends)"
    " and the thumb, in the order of joint_positions"
)
TIP_WORDS = "index, middle, ring, little finger and thumb"


class ShadowHand(CubeInHand):
    """A robot hand of five fingers with a wrist, like the Shadow Dexterous Hand, lies palm up with
    a cube of 6.5 cm on its palm.

    The fingers point to +x; index, middle, ring and little finger stand from y = -0.03 to 0.03 m,
    and the thumb is at the side of -y. 24 joints have 20 motors, because one motor bends the middle
    and the end of a finger. An action is a motor's target angle between the ends of its range. An
    episode lasts 10 s at 20 control steps a second, and starts with half flexed fingers and the
    cube flat on the palm. A cube that falls off the hand ends it.
    """

    fingers = FINGERS
    joints = JOINTS
    motors = MOTORS
    model_file = "hand.xml"
    max_episode_length = 200
    num_actions = 20
    num_observations = 2 * 24 + 18 + 15 + 2 * 20
    variables = variables_of(TIP_WORDS, JOINT_WORDS, MOTOR_WORDS, (5, 24, 20))
    observation_channels = observation_channels_of(FINGERS, JOINTS, MOTORS)
    action_channels = (
        Channel(
            "commanded_angles",
            MOTORS,
            "1",
            "joint",
            "target angles: -1 is the lower end of a motor's range, 1 the upper one",
            range=(-1.0, 1.0),
        ),
    )
