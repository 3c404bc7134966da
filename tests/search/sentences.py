"""Sentences that people may type for a built-in task, written before the comparison that they
judge: it must leave those alone that fit, and report the rest."""

from __future__ import annotations

FITTING: dict[str, tuple[str, ...]] = {
    "cartpole/balance": (
        "keep the pole upright",
        "balance the pole",
        "don't let the pole fall over",
        "keep the pendulum vertical for as long as possible",
        "stabilise the inverted pendulum",
        "hold the stick up without dropping it",
        "balance the pole upright near the centre of the track",
        "prevent the pole from tipping over",
        "balance the pole with as little effort as possible",
    ),
    "cartpole/swingup": (
        "swing up the pole",
        "bring the hanging pole to the top and keep it there",
        "get the pendulum from the bottom to upright and hold it",
        "flip the pole up and stabilise it",
    ),
    "hopper/run": (
        "hop forward quickly",
        "run as fast as you can",
        "make the one-legged robot jump ahead at top speed",
        "move forward without falling",
        "travel as far as possible",
        "sprint",
    ),
    "ant/run": (
        "walk forward as far as possible",
        "make the quadruped trot ahead fast",
        "move in the +x direction quickly",
    ),
    "quadcopter/hover": (
        "reach the goal and stay there",
        "hover at the target position",
        "fly to the waypoint and hold position",
        "keep the drone at the setpoint",
    ),
}
"""Paraphrases of a task."""

DIFFERENT: dict[str, tuple[tuple[str, str], ...]] = {
    "cartpole/balance": (
        ("spin the pole round and round", ""),
        ("swing the hanging pole up and balance it upright", "--task swingup"),
        ("drive the cart to the left end of the track", ""),
        ("let the pole hang down still", ""),
        ("make the hopper run forward", ""),
        ("fly the quadcopter to the goal", ""),
        ("倒立摆保持平衡", ""),
        ("🙂", ""),
    ),
    "cartpole/swingup": (
        ("balance the pole upright", "--task balance"),
        ("make the cart move to the right as far as possible", ""),
    ),
    "hopper/run": (
        ("jump as high as possible", ""),
        ("hop backwards", ""),
        ("stand still", ""),
        ("do a backflip", "--task back_flip"),
        ("balance the pole", ""),
    ),
    "ant/run": (
        ("walk backwards slowly", ""),
        ("wave one leg", "--task wave_leg"),
        ("turn around in circles", ""),
        ("roll over onto its back", ""),
        ("make a pancake", ""),
    ),
    "quadcopter/hover": (
        ("fly as fast as possible", ""),
        ("do a loop", ""),
        ("land on the ground", ""),
        ("spin around the vertical axis", ""),
        ("race through the gates", ""),
    ),
}
"""Something else than the task, with the flags that are to be offered; empty: another metric is."""

FITTING_UNSEEN: dict[str, tuple[str, ...]] = {
    "cartpole/balance": (
        "make sure the pole doesn't topple",
        "the pole should stand straight",
        "maintain balance",
        "avoid letting the pole drop below the horizontal",
    ),
    "cartpole/swingup": (
        "pump energy into the pole until it stands upright, then balance",
        "raise the pole from below and keep it vertical",
    ),
    "hopper/run": (
        "go forward",
        "bounce along the x axis as quickly as possible",
        "maximise forward velocity",
    ),
    "ant/run": ("get as far forward as you can in eight seconds", "race ahead"),
    "quadcopter/hover": (
        "navigate to the goal",
        "stay close to the target",
        "go to the goal position and keep still",
    ),
}
"""Paraphrases that were not looked at while the comparison was made."""

DIFFERENT_UNSEEN: dict[str, tuple[tuple[str, str], ...]] = {
    "cartpole/balance": (
        ("whirl the pole like a propeller", ""),
        ("make the cart oscillate back and forth", ""),
        ("twirl the stick", ""),
        ("garder le poteau droit", ""),
    ),
    "cartpole/swingup": (("hang straight down", ""), ("rotate continuously", "")),
    "hopper/run": (
        ("crouch down and stay low", ""),
        ("stop", ""),
        ("moonwalk", ""),
        ("spin in place", ""),
    ),
    "ant/run": (
        ("stand on two legs", ""),
        ("jump over the wall", ""),
        ("go left", ""),
        ("dance", ""),
    ),
    "quadcopter/hover": (
        ("flip upside down", ""),
        ("fly away from the goal", ""),
        ("draw a figure eight", ""),
        ("crash into the ground", ""),
    ),
}
"""Other wishes that were not looked at while the comparison was made."""
