"""Sentences whose words turn what they name.

Each task's sentence stands behind the terms that it must not get and those that its other words ask
for. Where none is forbidden, all of the sentence is understood.
"""

from __future__ import annotations

_TASKS = """
hopper/run
height > forward: run forward. DO NOT JUMP!
height >: run forward instead of jumping
backward forward slow >: do not run backward
height >: stay below 1 m height
forward height >: speed and height should be lower
forward >: walk slowly
alive failure >: make the hopper fall over
upright >: lean forward
effort >: use as much energy as possible
height >: the higher it jumps the worse
forward forward_speed >: run forward at no more than 1 m/s
> forward alive: run forward without falling
> forward alive: run forward as fast as possible, and do not fall
> forward_speed: run forward at least at 1 m/s
> forward smoothness: Drive the hopper in forward direction, quickly and smoothly
ant/run
forward >: walk forward with fewer steps
forward lowness >: slow down
> rightward: run to the right as quickly as possible
> forward: Quadruped locomotion: walk forward
cartpole/balance
upright >: do not balance the pole
centred >: keep the cart away from the middle
upright >: bring the pole down from upright
> alive: prevent the pole from falling
> upright centred: keep the pole standing and the cart near the middle of the track
cartpole/swingup
upright balanced >: do not swing the pole up
quadcopter/hover
reach reach_closely >: do not fly to the goal
reach reach_closely >: maximise the distance from the goal
reach >: keep 2 m off the goal
> reach effort: reach the goal with as little energy as possible
cabinet/open
opening >: leave the drawer closed, don't open it
> opening: pull out the drawer as far as it goes
quadruped/follow
reach reach_closely >: do not follow the commanded velocity
allegro_hand/turn
spin >: turn the cube more slowly
craft/find_tree
forward reach reach_closely >: do not walk to a tree
ball_balance/balance
> centred: keep the ball in the centre of the tray
"""


def _cases() -> list[tuple[str, str, str, str]]:
    found, task = [], ""
    for line in _TASKS.strip().splitlines():
        terms, colon, sentence = line.partition(": ")
        never, _, wanted = terms.partition(">")
        task = task if colon else line
        found += [(task, sentence, never, wanted)] if colon else []
    return found


TASKS = _cases()
"""Task, sentence, forbidden terms, wanted terms."""
_UNREAD = """
do not jump; DON’T JUMP; less effort, less speed; keep the torso lower; slower; walk slowly forward
go faster but stop jumping; faster, without any wobble; use more energy; not so high; too fast
the speed must be at most 1 m/s; nicht springen; bitte langsamer laufen; half the speed
why does it jump?; speed is way over the top; remove the upright term; speed -50%; jump = false
prefer calm over fast; it keeps jumping; speed * 0.5; 0.5x speed; it's jumping around; no-jump policy
max speed 1 m/s; speed < 1 m/s; don't save energy; lowering the speed; reducing speed; anti-jump
still jumping!; I see jumps, I want none; now it only jumps; keeps jumping; jumps are too high
"""
_READ = """
less effort; do not fall; run forward faster; higher; more speed pls; jump higher!!; go faster
Speed it up a bit.; could you make it a little more upright?; use less energy; increase forward speed
raise the weight of upright; it should not fall; avoid jerky motion; max speed!; higher jumps
more forward speed, less energy; can you make it run faster?; more upright. more speed.
I want higher speed; reduce lower_leg_angle; - faster; the torso should stay upright while running
"""
WISHES = [
    (wish.strip(), is_read)
    for block, is_read in ((_UNREAD, False), (_READ, True))
    for line in block.strip().splitlines()
    for wish in line.split(";")
]
"""A wish for hopper/run, and if it is understood, so that it changes the reward."""
